// What a tensor's shape says, as tensors: Shape, ShapeN, Size, Rank.
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/index_values.h"

namespace sluice {
namespace {
namespace shape_ops {

absl::Status VectorsOfRank(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    const PartialShape& shape = c.input(i);
    c.set_output(i, {shape.known_rank() ? shape.rank() : -1});
  }
  return absl::OkStatus();
}

absl::Status ShapeKernel(KernelContext& ctx) {
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const Shape& shape = ctx.input(i).shape();
    SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(i, {shape.rank()}));
    for (int d = 0; d < shape.rank(); ++d) {
      if (output.dtype() == DType::kInt32 && shape.dim(d) > INT32_MAX) {
        return InvalidArgument("Shape output type is 32-bit but dim ", d,
                               " is ", shape.dim(d));
      }
      SetIndexAt(output, d, shape.dim(d));
    }
  }
  return absl::OkStatus();
}

absl::Status SizeKernel(KernelContext& ctx) {
  const int64_t size = ctx.input(0).size();
  SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, {}));
  if (output.dtype() == DType::kInt32 && size > INT32_MAX) {
    return InvalidArgument(
        "Number of elements was larger than representable "
        "by 32-bit output type");
  }
  SetIndexAt(output, 0, size);
  return absl::OkStatus();
}

absl::Status RankKernel(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, {}));
  output.mutable_data<int32_t>()[0] = ctx.input(0).rank();
  return absl::OkStatus();
}

}  // namespace shape_ops
}  // namespace

SLUICE_OP(Shape)
    .Input("input: T")
    .Output("output: out_type")
    .Attr("T: type")
    .Attr("out_type: {int32, int64} = DT_INT32")
    .Shape(shape_ops::VectorsOfRank)
    .NotDifferentiable();

SLUICE_OP(ShapeN)
    .Input("input: N * T")
    .Output("output: N * out_type")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .Attr("out_type: {int32, int64} = DT_INT32")
    .Shape(shape_ops::VectorsOfRank)
    .NotDifferentiable();

SLUICE_OP(Size)
    .Input("input: T")
    .Output("output: out_type")
    .Attr("T: type")
    .Attr("out_type: {int32, int64} = DT_INT32")
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_OP(Rank)
    .Input("input: T")
    .Output("output: int32")
    .Attr("T: type")
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_KERNEL(Shape, kCpu).Function(shape_ops::ShapeKernel);
SLUICE_KERNEL(ShapeN, kCpu).Function(shape_ops::ShapeKernel);
SLUICE_KERNEL(Size, kCpu).Function(shape_ops::SizeKernel);
SLUICE_KERNEL(Rank, kCpu).Function(shape_ops::RankKernel);

}  // namespace sluice
