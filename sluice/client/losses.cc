#include "sluice/client/losses.h"

#include "sluice/client/math.h"
#include "sluice/client/nn.h"
#include "sluice/client/ops/math.h"

namespace sluice::losses {

Output MeanSquaredError(const Scope& scope, const Input& labels,
                        const Input& predictions) {
  const Scope inner = scope.NameScope("mean_squared_error");
  return ops::ReduceMean(inner,
                         ops::SquaredDifference(inner, predictions, labels));
}

Output AbsoluteDifference(const Scope& scope, const Input& labels,
                          const Input& predictions) {
  const Scope inner = scope.NameScope("absolute_difference");
  return ops::ReduceMean(inner,
                         ops::Abs(inner, ops::Sub(inner, predictions, labels)));
}

Output SoftmaxCrossEntropy(const Scope& scope, const Input& labels,
                           const Input& logits) {
  const Scope inner = scope.NameScope("softmax_cross_entropy_loss");
  return ops::ReduceMean(
      inner, nn::SoftmaxCrossEntropyWithLogits(inner, labels, logits));
}

Output SparseSoftmaxCrossEntropy(const Scope& scope, const Input& labels,
                                 const Input& logits) {
  const Scope inner = scope.NameScope("sparse_softmax_cross_entropy_loss");
  return ops::ReduceMean(
      inner, nn::SparseSoftmaxCrossEntropyWithLogits(inner, labels, logits));
}

Output SigmoidCrossEntropy(const Scope& scope, const Input& labels,
                           const Input& logits) {
  const Scope inner = scope.NameScope("sigmoid_cross_entropy_loss");
  return ops::ReduceMean(
      inner, nn::SigmoidCrossEntropyWithLogits(inner, labels, logits));
}

}  // namespace sluice::losses
