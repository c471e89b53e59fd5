// L2Loss: half the sum of squares.

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/unary.h"
#include "sluice/ops/math/python_math.h"

namespace sluice {
namespace {
namespace l2_loss {

Grads Gradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  return std::vector<Grad>{python::Mul(scope, op.input(0), dy[0])};
}

template <typename T>
absl::Status Run(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, Shape()));
  out.mutable_data<T>()[0] =
      numeric::HalfSquaredNorm(x.data<T>().data(), x.size());
  return absl::OkStatus();
}

}  // namespace l2_loss
}  // namespace

SLUICE_OP(L2Loss)
    .Input("t: T")
    .Output("output: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Shape(shapes::Scalar)
    .Gradient(l2_loss::Gradient);
SLUICE_KERNEL(L2Loss, kCpu)
    .ForTypes<FloatTypes>("T", []<typename T>(KernelContext& ctx) {
      return l2_loss::Run<T>(ctx);
    });

}  // namespace sluice
