#include "sluice/client/nn.h"

#include "sluice/base/status.h"
#include "sluice/client/op_call.h"
#include "sluice/client/operators.h"
#include "sluice/client/ops/array.h"
#include "sluice/client/ops/math.h"
#include "sluice/client/ops/nn.h"
#include "sluice/client/ops/random.h"

namespace sluice::nn {
namespace {

bool IsMatrix(Output x) {
  return x && ShapeOf(x).known_rank() && ShapeOf(x).rank() == 2;
}

// All dimensions but the last joined into one.
Output Rows(const Scope& scope, Output x) {
  if (!scope.ok() || IsMatrix(x)) return x;
  const Output shape = ops::Shape(scope, x);
  const Output last =
      ops::StridedSlice(scope, shape, {-1}, {0}, {1}, {.end_mask = 1});
  return ops::Reshape(scope, x, ops::ConcatV2(scope, {{-1}, last}, 0));
}

// The dimensions of x without the last one.
Output LeadingShape(const Scope& scope, Output x) {
  return ops::StridedSlice(scope, ops::Shape(scope, x), {0}, {-1}, {1},
                           {.begin_mask = 1});
}

}  // namespace

Output SoftmaxCrossEntropyWithLogits(const Scope& scope, const Input& labels,
                                     const Input& logits) {
  const Scope inner = scope.NameScope("softmax_cross_entropy_with_logits");
  const Output features = AsOutput(inner, logits, "logits");
  const DType type = features ? TypeOf(features) : DType::kInvalid;
  const Output truth =
      ops::StopGradient(inner, AsOutput(inner, labels, "labels", type));
  const Output loss = ops::SoftmaxCrossEntropyWithLogits(
                          inner, Rows(inner, features), Rows(inner, truth))
                          .loss;
  if (!scope.ok() || IsMatrix(features)) return loss;
  return ops::Reshape(inner, loss, LeadingShape(inner, features));
}

Output SparseSoftmaxCrossEntropyWithLogits(const Scope& scope,
                                           const Input& labels,
                                           const Input& logits) {
  const Scope inner = scope.NameScope("SparseSoftmaxCrossEntropyWithLogits");
  const Output features = AsOutput(inner, logits, "logits");
  const Output truth = AsOutput(inner, labels, "labels");
  if (!scope.ok() || IsMatrix(features)) {
    return ops::SparseSoftmaxCrossEntropyWithLogits(inner, features, truth)
        .loss;
  }
  const Output loss =
      ops::SparseSoftmaxCrossEntropyWithLogits(inner, Rows(inner, features),
                                               ops::Reshape(inner, truth, {-1}))
          .loss;
  return ops::Reshape(inner, loss, ops::Shape(inner, truth));
}

// max(x, 0) - x * z + log(1 + exp(-|x|)), which does not overflow.
Output SigmoidCrossEntropyWithLogits(const Scope& scope, const Input& labels,
                                     const Input& logits) {
  const With inner(scope.NameScope("logistic_loss"));
  const Output x = AsOutput(inner, logits, "logits");
  const Output z =
      AsOutput(inner, labels, "labels", x ? TypeOf(x) : DType::kInvalid);
  const Output zeros = ops::ZerosLike(inner, x);
  const Output positive = ops::GreaterEqual(inner, x, zeros);
  const Output linear = ops::Select(inner, positive, x, zeros) - x * z;
  const Output minus_abs = ops::Select(inner, positive, -x, x);
  return linear + ops::Log1p(inner, ops::Exp(inner, minus_abs));
}

Output Dropout(const Scope& scope, const Input& x, float rate) {
  const With inner(scope.NameScope("dropout"));
  const Output input = AsOutput(inner, x, "x");
  if (!(rate >= 0 && rate < 1)) {
    inner.Fail(InvalidArgument("Dropout: rate must be in [0, 1), got ", rate));
  }
  if (!inner.ok()) return Output();
  const Output noise =
      ops::RandomUniform(inner, ops::Shape(inner, input), TypeOf(input));
  const Output keep = ops::GreaterEqual(inner, noise, rate);
  return input * (1 / (1 - rate)) * ops::Cast(inner, keep, TypeOf(input));
}

}  // namespace sluice::nn
