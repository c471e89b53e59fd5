// Neural-network functions with Python's signatures (tf.nn). Activations and
// the like are plain ops: ops::Relu, ops::Softmax, ops::BiasAdd, ….
#pragma once

#include "sluice/client/input.h"
#include "sluice/graph/scope.h"

namespace sluice::nn {

// One loss per row; the last dimension holds the classes. `labels` are
// probabilities, to which no gradient flows.
Output SoftmaxCrossEntropyWithLogits(const Scope& scope, const Input& labels,
                                     const Input& logits);
// The same with the number of the true class as label.
Output SparseSoftmaxCrossEntropyWithLogits(const Scope& scope,
                                           const Input& labels,
                                           const Input& logits);
// One loss per element, for classes that do not exclude each other.
Output SigmoidCrossEntropyWithLogits(const Scope& scope, const Input& labels,
                                     const Input& logits);
// Zeroes a part `rate` of the elements and scales the others up for it.
Output Dropout(const Scope& scope, const Input& x, float rate);

}  // namespace sluice::nn
