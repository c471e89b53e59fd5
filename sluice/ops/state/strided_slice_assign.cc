// StridedSliceAssign: x[begin:end:stride, …] = value for a variable x, ref or
// resource.

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/strided_slice_spec.h"
#include "sluice/ops/state/variable_access.h"
#include "sluice/ops/state/variable_shapes.h"

namespace sluice {
namespace {
namespace strided_slice_assign {

absl::StatusOr<StridedSlicePlan> PlanFor(const KernelContext& ctx,
                                         const Shape& variable) {
  SLUICE_ASSIGN_OR_RETURN(
      const StridedSliceSpec spec,
      StridedSliceSpec::Of(ctx.input(1), ctx.input(2), ctx.input(3),
                           StridedSliceMasks::Of(ctx.node().attrs())));
  return PlanStridedSlice(variable.dims(), spec);
}

void CopyIntoSlice(const KernelContext& ctx, const StridedSlicePlan& plan,
                   const Tensor& value, Tensor* variable) {
  const Mover mover = MoverOf(value.dtype());
  const auto steps = ByteSteps(variable->shape(), mover.size);
  int64_t packed = mover.size * value.size();
  int64_t at = 0;
  Box box;
  for (int i = 0; i < variable->rank(); ++i) {
    packed /= plan.sizes[i];
    at += plan.begin[i] * steps[i];
    box.Add(plan.sizes[i], plan.stride[i] * steps[i], packed);
  }
  MoveBox(ctx, mover, std::move(box), ElementAt(*variable, mover, 0) + at,
          ElementAt(value, mover, 0));
}

absl::Status Assign(KernelContext& ctx, LockedVariables::Caches& caches) {
  const Tensor& value = ctx.input(4);
  LockedVariables locked;
  SLUICE_RETURN_IF_ERROR(locked.Lock(ctx, 1, value.dtype(), caches));
  SLUICE_ASSIGN_OR_RETURN(const StridedSlicePlan plan,
                          PlanFor(ctx, locked.value(0).shape()));
  const Shape slice(
      std::span<const int64_t>(plan.shape.data(), plan.shape.size()));
  if (value.shape() != slice) {
    return Unimplemented("sliced l-value shape ", slice.DebugString(),
                         " does not match r-value shape ",
                         value.shape().DebugString(),
                         ". Automatic broadcasting not yet implemented.");
  }
  if (value.size() > 0) {
    SLUICE_ASSIGN_OR_RETURN(Tensor * variable, locked.mutable_value(0));
    CopyIntoSlice(ctx, plan, value, variable);
  }
  ForwardUpdatedRef(ctx);
  return absl::OkStatus();
}

absl::Status AssignShape(ShapeContext& c) {
  if (c.num_outputs() > 0) c.set_output(0, VariableShapeAt(c, 0));
  return absl::OkStatus();
}

}  // namespace strided_slice_assign
}  // namespace

#define SLUICE_STRIDED_SLICE_ASSIGN_OP(NAME, VAR) \
  SLUICE_OP(NAME)                                 \
      .Input("ref: " VAR)                         \
      .Input("begin: Index")                      \
      .Input("end: Index")                        \
      .Input("strides: Index")                    \
      .Input("value: T")                          \
      .Attr("T: type")                            \
      .Attr("Index: {int32, int64}")              \
      .Attr("begin_mask: int = 0")                \
      .Attr("end_mask: int = 0")                  \
      .Attr("ellipsis_mask: int = 0")             \
      .Attr("new_axis_mask: int = 0")             \
      .Attr("shrink_axis_mask: int = 0")          \
      .Shape(strided_slice_assign::AssignShape)
SLUICE_STRIDED_SLICE_ASSIGN_OP(StridedSliceAssign, "Ref(T)")
    .Output("output_ref: Ref(T)");
SLUICE_STRIDED_SLICE_ASSIGN_OP(ResourceStridedSliceAssign, "resource")
    .Stateful();
#undef SLUICE_STRIDED_SLICE_ASSIGN_OP

SLUICE_KERNEL(StridedSliceAssign, kCpu)
    .Class<VariableKernel<strided_slice_assign::Assign>>();
SLUICE_KERNEL(ResourceStridedSliceAssign, kCpu)
    .Class<VariableKernel<strided_slice_assign::Assign>>();

}  // namespace sluice
