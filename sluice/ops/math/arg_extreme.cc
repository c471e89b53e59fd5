// ArgMax and ArgMin: where the extreme along a dimension is.

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/reduce.h"
#include "sluice/ops/array/index_values.h"

namespace sluice {
namespace {
namespace arg_extreme {

absl::Status ShapeFunction(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  if (c.input(1).known_rank() && c.input(1).rank() != 0) {
    return InvalidArgument("Shape must be rank 0 but is rank ",
                           c.input(1).rank());
  }
  if (!input.known_rank()) {
    c.set_output(0, PartialShape());
    return absl::OkStatus();
  }
  if (input.rank() <= 1) {
    c.set_output(0, PartialShape::Scalar());
    return absl::OkStatus();
  }
  const std::optional<Tensor> dimension = c.input_value(1);
  if (!dimension || dimension->size() != 1) {
    c.set_output(0, PartialShape::UnknownOfRank(input.rank() - 1));
    return absl::OkStatus();
  }
  const int axis = AxisFromFront(IndexAt(*dimension, 0), input.rank());
  if (axis < 0) {
    return InvalidArgument("Dimension (", IndexAt(*dimension, 0),
                           ") must be in the range [", -input.rank(), ", ",
                           input.rank(), "), where ", input.rank(),
                           " is the number of dimensions in the input.");
  }
  PartialShape result = PartialShape::Scalar();
  for (int d = 0; d < input.rank(); ++d) {
    if (d != axis) result.AddDim(input.dim(d));
  }
  c.set_output(0, std::move(result));
  return absl::OkStatus();
}

Grads NoGradient(Scope&, const Node&, std::span<const Output>) {
  return std::vector<Grad>(2);
}

template <typename T>
absl::Status Run(KernelContext& ctx, bool largest) {
  const Tensor& x = ctx.input(0);
  const Tensor& dimension = ctx.input(1);
  if (dimension.rank() != 0) {
    return InvalidArgument(
        "dim must be a scalar, but received tensor of shape: ",
        dimension.shape().DebugString());
  }
  const int axis = AxisFromFront(IndexAt(dimension, 0), x.rank());
  if (axis < 0) {
    return InvalidArgument("Expected dimension in the range [", -x.rank(), ", ",
                           x.rank(), "), but got ", IndexAt(dimension, 0));
  }
  if (x.dim(axis) == 0) {
    return InvalidArgument("Reduction axis ", axis, " is empty in shape ",
                           x.shape().DebugString());
  }
  Shape shape = x.shape();
  shape.RemoveDim(axis);
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, shape));
  const int64_t outer = SizeBetween(x.shape(), 0, axis);
  const int64_t inner = SizeBetween(x.shape(), axis + 1, x.rank());
  const int64_t size = x.dim(axis);
  const T* from = x.data<T>().data();
  ctx.ParallelFor(
      outer,
      [&](int64_t begin, int64_t end) {
        const T* part = from + begin * size * inner;
        if (out.dtype() == DType::kInt64) {
          numeric::ArgExtreme(
              out.mutable_data<int64_t>().data() + begin * inner, part,
              end - begin, size, inner, largest);
        } else {
          numeric::ArgExtreme(
              out.mutable_data<int32_t>().data() + begin * inner, part,
              end - begin, size, inner, largest);
        }
      },
      static_cast<double>(size * inner));
  return absl::OkStatus();
}

}  // namespace arg_extreme
}  // namespace

SLUICE_OP(ArgMax)
    .Input("input: T")
    .Input("dimension: Tidx")
    .Output("output: output_type")
    .Attr("T: numbertype")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Attr("output_type: {int32, int64} = DT_INT64")
    .Shape(arg_extreme::ShapeFunction)
    .Gradient(arg_extreme::NoGradient);
SLUICE_KERNEL(ArgMax, kCpu)
    .HostMemory("dimension")
    .ForTypes<RealTypes>("T", []<typename T>(KernelContext& ctx) {
      return arg_extreme::Run<T>(ctx, /*largest=*/true);
    });

SLUICE_OP(ArgMin)
    .Input("input: T")
    .Input("dimension: Tidx")
    .Output("output: output_type")
    .Attr("T: numbertype")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Attr("output_type: {int32, int64} = DT_INT64")
    .Shape(arg_extreme::ShapeFunction)
    .Gradient(arg_extreme::NoGradient);
SLUICE_KERNEL(ArgMin, kCpu)
    .HostMemory("dimension")
    .ForTypes<RealTypes>("T", []<typename T>(KernelContext& ctx) {
      return arg_extreme::Run<T>(ctx, /*largest=*/false);
    });

}  // namespace sluice
