// OneHot: a dimension of `depth` with on_value where the index says.
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace one_hot_op {

absl::Status OneHotShape(ShapeContext& c) {
  const int64_t axis = c.attr<int64_t>("axis");
  if (axis < -1) return InvalidArgument("axis must be >= -1");
  SLUICE_RETURN_IF_ERROR(CheckScalarInput(c, 1));
  const std::optional<int64_t> depth = KnownScalar(c, 1);
  if (depth && *depth < 0) {
    return InvalidArgument(
        "Dimension size, given by scalar input 1, must be "
        "non-negative but is ",
        *depth);
  }
  const PartialShape& indices = c.input(0);
  // A bad axis is left to the kernel, as in TensorFlow.
  if (!indices.known_rank() || axis > indices.rank()) return shapes::Unknown(c);
  const int at = axis == -1 ? indices.rank() : static_cast<int>(axis);
  PartialShape out = SubShape(indices, 0, at);
  out.AddDim(depth.value_or(-1));
  c.set_output(0, JoinShapes(out, SubShape(indices, at, indices.rank())));
  return absl::OkStatus();
}

int64_t ValueAt(const Tensor& indices, int64_t i) {
  return indices.dtype() == DType::kUint8 ? indices.data<uint8_t>()[i]
                                          : IndexAt(indices, i);
}

absl::Status OneHotKernel(KernelContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const int64_t axis = ctx.attr<int64_t>("axis");
  constexpr std::string_view kNames[] = {"", "depth", "on_value", "off_value"};
  if (axis < -1 || axis > indices.rank()) {
    return InvalidArgument("Expected axis to be -1 or between [0, ",
                           indices.rank() + 1, ").  But received: ", axis);
  }
  for (int i = 1; i <= 3; ++i) {
    if (ctx.input(i).rank() != 0) {
      return InvalidArgument(kNames[i], " must be a scalar, but got: ",
                             ctx.input(i).shape().DebugString());
    }
  }
  const int64_t depth = ctx.input(1).data<int32_t>()[0];
  if (depth < 0) {
    return InvalidArgument("depth must be non-negative, got: ", depth);
  }
  const int at = axis == -1 ? indices.rank() : static_cast<int>(axis);
  IndexVector dims(indices.shape().dims().begin(),
                   indices.shape().dims().end());
  dims.insert(dims.begin() + at, depth);
  SLUICE_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::Create(std::span<const int64_t>(dims.data(), dims.size())));
  SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, shape));
  FillWith(ctx, output, ctx.input(3).raw());
  if (indices.size() == 0) return absl::OkStatus();
  const Mover mover = MoverOf(output.dtype());
  const char* on = ElementAt(ctx.input(2), mover, 0);
  const int64_t prefix = SizeBetween(indices.shape(), 0, at);
  const int64_t suffix = SizeBetween(indices.shape(), at, indices.rank());
  for (int64_t p = 0, i = 0; p < prefix; ++p) {
    for (int64_t s = 0; s < suffix; ++s, ++i) {
      const int64_t hot = ValueAt(indices, i);
      if (hot < 0 || hot >= depth) continue;
      mover.run(ElementAt(output, mover, (p * depth + hot) * suffix + s),
                mover.size, on, mover.size, 1);
    }
  }
  return absl::OkStatus();
}

}  // namespace one_hot_op
}  // namespace

SLUICE_OP(OneHot)
    .Input("indices: TI")
    .Input("depth: int32")
    .Input("on_value: T")
    .Input("off_value: T")
    .Output("output: T")
    .Attr("axis: int = -1")
    .Attr("T: type")
    .Attr("TI: {uint8, int32, int64} = DT_INT64")
    .Shape(one_hot_op::OneHotShape)
    .NotDifferentiable();

SLUICE_KERNEL(OneHot, kCpu).Function(one_hot_op::OneHotKernel);

}  // namespace sluice
