// Tensors of one value: Fill, ZerosLike, OnesLike.
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace fill_ops {

absl::Status FillShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  SLUICE_ASSIGN_OR_RETURN(PartialShape shape, ShapeFromInput(c, 0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status FillKernel(KernelContext& ctx) {
  const Tensor& dims = ctx.input(0);
  const Tensor& value = ctx.input(1);
  if (dims.rank() != 1) {
    return InvalidArgument("dims must be a vector, got shape ",
                           dims.shape().DebugString());
  }
  if (value.rank() != 0) {
    return InvalidArgument("value must be a scalar, got shape ",
                           value.shape().DebugString());
  }
  SLUICE_ASSIGN_OR_RETURN(Shape shape, ShapeOfSizes(dims));
  SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, shape));
  FillWith(ctx, output, value.raw());
  return absl::OkStatus();
}

absl::Status ZerosLikeKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  // Only numbers can be overwritten where they are; objects must be fresh.
  SLUICE_ASSIGN_OR_RETURN(
      Tensor & y, x.bytes() > 0 ? ctx.OutputLike(0) : ctx.Output(0, x.shape()));
  FillWithZeros(ctx, y);
  return absl::OkStatus();
}

absl::Status OnesLikeKernel(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(Tensor & y, ctx.OutputLike(0));
  FillWith(ctx, y, ScalarOfType(y.dtype(), 1).raw());
  return absl::OkStatus();
}

}  // namespace fill_ops
}  // namespace

SLUICE_OP(Fill)
    .Input("dims: index_type")
    .Input("value: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("index_type: {int32, int64} = DT_INT32")
    .Shape(fill_ops::FillShape)
    .Gradient([](Scope& scope, const Node&,
                 std::span<const Output> dy) -> Grads {
      return std::vector<Grad>{Grad(), SumAll(scope, dy[0])};
    });

SLUICE_OP(ZerosLike)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: type")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();

SLUICE_OP(OnesLike)
    .Input("x: T")
    .Output("y: T")
    .Attr(
        "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, "
        "int32, int64, complex64, complex128, bool}")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();

SLUICE_KERNEL(Fill, kCpu).Function(fill_ops::FillKernel);
SLUICE_KERNEL(ZerosLike, kCpu).Function(fill_ops::ZerosLikeKernel);
SLUICE_KERNEL(OnesLike, kCpu).Function(fill_ops::OnesLikeKernel);

}  // namespace sluice
