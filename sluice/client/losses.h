// Losses as one number: the mean over all elements (tf.losses without weights).
#pragma once

#include "sluice/client/input.h"
#include "sluice/graph/scope.h"

namespace sluice::losses {

Output MeanSquaredError(const Scope& scope, const Input& labels,
                        const Input& predictions);
Output AbsoluteDifference(const Scope& scope, const Input& labels,
                          const Input& predictions);
// `labels` are probabilities, one row per row of `logits`.
Output SoftmaxCrossEntropy(const Scope& scope, const Input& labels,
                           const Input& logits);
// `labels` are the numbers of the true classes.
Output SparseSoftmaxCrossEntropy(const Scope& scope, const Input& labels,
                                 const Input& logits);
Output SigmoidCrossEntropy(const Scope& scope, const Input& labels,
                           const Input& logits);

}  // namespace sluice::losses
