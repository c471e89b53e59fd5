// StridedSlice (x[…] in Python) and its gradient.
#include "sluice/graph/scope.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/shape_rules.h"
#include "sluice/ops/array/strided_slice_spec.h"

namespace sluice {
namespace {
namespace strided_slice_ops {

// A smaller slice is copied: sharing would keep the whole tensor alive for it.
constexpr int64_t kMinSharedBytes = 1024;

absl::Status StridedSliceShape(ShapeContext& c) {
  PartialShape bounds = PartialShape::UnknownOfRank(1);
  for (int i = 1; i <= 3; ++i) {
    SLUICE_ASSIGN_OR_RETURN(PartialShape shape, c.WithRank(i, 1));
    SLUICE_ASSIGN_OR_RETURN(bounds, MergeShapes(bounds, shape));
  }
  const PartialShape& in = c.input(0);
  const std::optional<Tensor> strides = c.input_value(3);
  if (!in.known_rank() || !strides) return shapes::Unknown(c);
  StridedSliceSpec spec;
  spec.strides = IndexValues(*strides);
  spec.masks = StridedSliceMasks::Of(c.node().attrs());
  // Values may be known where the shape is not, so lengths can differ.
  const auto value = [&](int i) -> std::optional<IndexVector> {
    const std::optional<Tensor> known = c.input_value(i);
    if (!known || known->shape() != strides->shape()) return std::nullopt;
    return IndexValues(*known);
  };
  spec.begin = value(1);
  spec.end = value(2);
  SLUICE_ASSIGN_OR_RETURN(const StridedSlicePlan plan,
                          PlanStridedSlice(in.dims(), spec));
  c.set_output(0, PartialShape(std::span<const int64_t>(plan.shape.data(),
                                                        plan.shape.size())));
  return absl::OkStatus();
}

Shape ShapeOfPlan(const StridedSlicePlan& plan) {
  return Shape(std::span<const int64_t>(plan.shape.data(), plan.shape.size()));
}

// The box of the slice; `sliced_is_source` says which of the two sides is the
// whole tensor, `*at` becomes the slice's first element in it, in bytes.
Box SliceBox(const Shape& whole, const StridedSlicePlan& plan,
             int64_t element_size, bool sliced_is_source, int64_t* at) {
  const auto steps = ByteSteps(whole, element_size);
  int64_t packed = element_size;
  for (int64_t size : plan.sizes) packed *= size;
  *at = 0;
  Box box;
  for (int i = 0; i < whole.rank(); ++i) {
    const int64_t size = plan.sizes[i];
    packed /= size;
    const int64_t step = plan.stride[i] * steps[i];
    *at += plan.begin[i] * steps[i];
    box.Add(size, sliced_is_source ? packed : step,
            sliced_is_source ? step : packed);
  }
  return box;
}

class StridedSliceKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<StridedSliceKernel>(
        StridedSliceMasks::Of(construction.node().attrs()));
  }
  explicit StridedSliceKernel(StridedSliceMasks masks) : masks_(masks) {}

  absl::Status Run(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    SLUICE_ASSIGN_OR_RETURN(
        const StridedSliceSpec spec,
        StridedSliceSpec::Of(ctx.input(1), ctx.input(2), ctx.input(3), masks_));
    SLUICE_ASSIGN_OR_RETURN(const StridedSlicePlan plan,
                            PlanStridedSlice(x.shape().dims(), spec));
    const Shape shape = ShapeOfPlan(plan);
    const Mover mover = MoverOf(x.dtype());
    if (plan.whole) {
      ctx.set_output(0, x.Reshaped(shape));
      return absl::OkStatus();
    }
    if (plan.rows && x.rank() > 0 &&
        shape.size() * mover.size >= kMinSharedBytes) {
      ctx.set_output(
          0,
          x.Rows(plan.begin[0], plan.begin[0] + plan.sizes[0]).Reshaped(shape));
      return absl::OkStatus();
    }
    SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, shape));
    if (shape.size() == 0) return absl::OkStatus();
    int64_t at;
    Box box = SliceBox(x.shape(), plan, mover.size, true, &at);
    MoveBox(ctx, mover, std::move(box), ElementAt(output, mover, 0),
            ElementAt(x, mover, 0) + at);
    return absl::OkStatus();
  }

 private:
  const StridedSliceMasks masks_;
};

absl::Status StridedSliceGradShape(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(PartialShape shape, ShapeFromInput(c, 0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class StridedSliceGradKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<StridedSliceGradKernel>(
        StridedSliceMasks::Of(construction.node().attrs()));
  }
  explicit StridedSliceGradKernel(StridedSliceMasks masks) : masks_(masks) {}

  absl::Status Run(KernelContext& ctx) override {
    const Tensor& sizes = ctx.input(0);
    const Tensor& dy = ctx.input(4);
    if (sizes.rank() != 1) {
      return InvalidArgument("shape must be 1-D, got shape.shape = ",
                             sizes.shape().DebugString());
    }
    SLUICE_ASSIGN_OR_RETURN(Shape shape, ShapeOfSizes(sizes));
    SLUICE_ASSIGN_OR_RETURN(
        const StridedSliceSpec spec,
        StridedSliceSpec::Of(ctx.input(1), ctx.input(2), ctx.input(3), masks_));
    SLUICE_ASSIGN_OR_RETURN(const StridedSlicePlan plan,
                            PlanStridedSlice(shape.dims(), spec));
    const Shape expected = ShapeOfPlan(plan);
    if (dy.shape() != expected) {
      return InvalidArgument("shape of dy was ", dy.shape().DebugString(),
                             " instead of ", expected.DebugString());
    }
    if (plan.whole) {
      ctx.set_output(0, dy.Reshaped(shape));
      return absl::OkStatus();
    }
    SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, shape));
    FillWithZeros(ctx, output);
    if (dy.size() == 0) return absl::OkStatus();
    const Mover mover = MoverOf(dy.dtype());
    int64_t at;
    Box box = SliceBox(shape, plan, mover.size, false, &at);
    MoveBox(ctx, mover, std::move(box), ElementAt(output, mover, 0) + at,
            ElementAt(dy, mover, 0));
    return absl::OkStatus();
  }

 private:
  const StridedSliceMasks masks_;
};

AttrMap MaskAttrs(const Node& op) {
  const StridedSliceMasks masks = StridedSliceMasks::Of(op.attrs());
  return {{"begin_mask", masks.begin},
          {"end_mask", masks.end},
          {"ellipsis_mask", masks.ellipsis},
          {"new_axis_mask", masks.new_axis},
          {"shrink_axis_mask", masks.shrink_axis}};
}

Grads SliceGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output shape =
      ShapeTensor(scope, op.input(0), BaseType(TypeOf(op.input(1))));
  return std::vector<Grad>{
      scope.Add("StridedSliceGrad",
                {shape, op.input(1), op.input(2), op.input(3), dy[0]},
                MaskAttrs(op)),
      Grad(), Grad(), Grad()};
}

Grads SliceGradGradient(Scope& scope, const Node& op,
                        std::span<const Output> dy) {
  return std::vector<Grad>{
      Grad(), Grad(), Grad(), Grad(),
      scope.Add("StridedSlice", {dy[0], op.input(1), op.input(2), op.input(3)},
                MaskAttrs(op))};
}

}  // namespace strided_slice_ops
}  // namespace

SLUICE_OP(StridedSlice)
    .Input("input: T")
    .Input("begin: Index")
    .Input("end: Index")
    .Input("strides: Index")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Index: {int32, int64}")
    .Attr("begin_mask: int = 0")
    .Attr("end_mask: int = 0")
    .Attr("ellipsis_mask: int = 0")
    .Attr("new_axis_mask: int = 0")
    .Attr("shrink_axis_mask: int = 0")
    .Shape(strided_slice_ops::StridedSliceShape)
    .Gradient(strided_slice_ops::SliceGradient);

SLUICE_OP(StridedSliceGrad)
    .Input("shape: Index")
    .Input("begin: Index")
    .Input("end: Index")
    .Input("strides: Index")
    .Input("dy: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Index: {int32, int64}")
    .Attr("begin_mask: int = 0")
    .Attr("end_mask: int = 0")
    .Attr("ellipsis_mask: int = 0")
    .Attr("new_axis_mask: int = 0")
    .Attr("shrink_axis_mask: int = 0")
    .Shape(strided_slice_ops::StridedSliceGradShape)
    .Gradient(strided_slice_ops::SliceGradGradient);

SLUICE_KERNEL(StridedSlice, kCpu)
    .Class<strided_slice_ops::StridedSliceKernel>();
SLUICE_KERNEL(StridedSliceGrad, kCpu)
    .Class<strided_slice_ops::StridedSliceGradKernel>();

}  // namespace sluice
