// Softmax and LogSoftmax, along the last dimension.

#include "sluice/numeric/softmax.h"

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/math/python_math.h"

namespace sluice {
namespace {
namespace softmax {

absl::Status ShapeFunction(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(PartialShape shape, c.WithRankAtLeast(0, 1));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// (dy - sum(dy y)) y.
Grads Gradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output y = op.output(0);
  const Output sum =
      python::SumKeepingDims(scope, python::Mul(scope, dy[0], y), -1);
  const Output difference = python::Sub(scope, dy[0], sum);
  return std::vector<Grad>{python::Mul(scope, difference, y)};
}

// dy - sum(dy) softmax.
Grads LogGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output y = scope.Add("Exp", {op.output(0)});
  const Output sum = python::SumKeepingDims(scope, dy[0], -1);
  return std::vector<Grad>{
      python::Sub(scope, dy[0], python::Mul(scope, sum, y))};
}

template <typename T>
absl::Status Run(KernelContext& ctx, bool logarithm) {
  const Tensor& x = ctx.input(0);
  if (x.rank() < 1) {
    return InvalidArgument("logits must have >= 1 dimension, got ",
                           x.shape().DebugString());
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.OutputLike(0));
  if (x.size() == 0) return absl::OkStatus();
  const int64_t classes = x.dim(x.rank() - 1);
  const T* from = x.data<T>().data();
  T* to = out.mutable_data<T>().data();
  ctx.ParallelFor(
      x.size() / classes,
      [&](int64_t begin, int64_t end) {
        numeric::Softmax(to + begin * classes, from + begin * classes,
                         end - begin, classes, logarithm);
      },
      static_cast<double>(classes) * 1.5 + 5);
  return absl::OkStatus();
}

}  // namespace softmax
}  // namespace

SLUICE_OP(Softmax)
    .Input("logits: T")
    .Output("softmax: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Shape(softmax::ShapeFunction)
    .Gradient(softmax::Gradient);
SLUICE_KERNEL(Softmax, kCpu)
    .ForTypes<FloatTypes>("T", []<typename T>(KernelContext& ctx) {
      return softmax::Run<T>(ctx, /*logarithm=*/false);
    });

SLUICE_OP(LogSoftmax)
    .Input("logits: T")
    .Output("logsoftmax: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Shape(softmax::ShapeFunction)
    .Gradient(softmax::LogGradient);
SLUICE_KERNEL(LogSoftmax, kCpu)
    .ForTypes<FloatTypes>("T", []<typename T>(KernelContext& ctx) {
      return softmax::Run<T>(ctx, /*logarithm=*/true);
    });

}  // namespace sluice
