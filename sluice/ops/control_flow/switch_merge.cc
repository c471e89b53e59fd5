// Switch, Merge, Enter, Exit, NextIteration, LoopCond and their ref forms: the
// primitives of cond and while. Executors know them and do most of their work
// themselves (frames, dead values); the kernels here say what happens to one
// live value.

#include <optional>

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"

namespace sluice {
namespace {
namespace switch_merge {

void CopyShape(ShapeContext& c, int input, int output) {
  c.set_output(output, c.input(input));
  if (c.input_handle(input).dtype != DType::kInvalid) {
    c.set_output_handle(output, c.input_handle(input));
  }
}

absl::Status SwitchShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  CopyShape(c, 0, 0);
  CopyShape(c, 0, 1);
  return absl::OkStatus();
}

// What two inputs of a Merge agree on.
PartialShape Common(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || !b.known_rank() || a.rank() != b.rank()) return {};
  PartialShape common = a;
  for (int d = 0; d < a.rank(); ++d) {
    if (a.dim(d) != b.dim(d)) common.set_dim(d, PartialShape::kUnknownDim);
  }
  return common;
}

// The back edge of a loop may not be there yet; it cannot contradict then.
absl::Status MergeShape(ShapeContext& c) {
  std::optional<PartialShape> shape;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.node().input(i)) continue;
    if (!shape) CopyShape(c, i, 0);
    shape.emplace(shape ? Common(*shape, c.input(i)) : c.input(i));
  }
  if (shape) c.set_output(0, *std::move(shape));
  c.set_output(1, PartialShape::Scalar());
  return absl::OkStatus();
}

// What enters a loop may change its shape there, unless it is constant.
absl::Status EnterShape(ShapeContext& c) {
  if (c.input_handle(0).dtype != DType::kInvalid) {
    c.set_output_handle(0, c.input_handle(0));
  } else if (c.attr<bool>("is_constant")) {
    c.set_output(0, c.input(0));
  }
  return absl::OkStatus();
}

absl::Status LoopCondShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  return shapes::Scalar(c);
}

absl::StatusOr<int> TakenBranch(const KernelContext& ctx) {
  const Tensor& pred = ctx.input(1);
  if (pred.rank() != 0) {
    return InvalidArgument(
        "The second input must be a scalar, but it has shape ",
        pred.shape().DebugString());
  }
  return pred.scalar<bool>() ? 1 : 0;
}

absl::Status Switch(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const int taken, TakenBranch(ctx));
  ctx.set_output(taken, ctx.input(0));
  ctx.set_output_dead(1 - taken);
  return absl::OkStatus();
}

absl::Status RefSwitch(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const int taken, TakenBranch(ctx));
  ctx.ForwardRef(0, taken);
  ctx.set_output_dead(1 - taken);
  return absl::OkStatus();
}

template <bool kRef>
absl::Status Merge(KernelContext& ctx) {
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    if (!ctx.has_input(i)) continue;
    if constexpr (kRef) {
      ctx.ForwardRef(i, 0);
    } else {
      ctx.set_output(0, ctx.input(i));
    }
    ctx.set_output(1, Tensor::Scalar<int32_t>(i));
    return absl::OkStatus();
  }
  return Internal("Merge ", ctx.node().name(), " ran without a live input");
}

absl::Status Identity(KernelContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  return absl::OkStatus();
}

absl::Status RefIdentity(KernelContext& ctx) {
  ctx.ForwardRef(0, 0);
  return absl::OkStatus();
}

absl::Status LoopCond(KernelContext& ctx) {
  if (ctx.step().cancellation != nullptr &&
      ctx.step().cancellation->cancelled()) {
    return Cancelled("Loop execution was cancelled.");
  }
  return Identity(ctx);
}

absl::Status Nothing(KernelContext&) { return absl::OkStatus(); }

}  // namespace switch_merge
}  // namespace

SLUICE_OP(NoOp).Shape(shapes::NoOutputs);
SLUICE_OP(ControlTrigger).Shape(shapes::NoOutputs);

SLUICE_OP(Switch)
    .Input("data: T")
    .Input("pred: bool")
    .Output("output_false: T")
    .Output("output_true: T")
    .Attr("T: type")
    .Shape(switch_merge::SwitchShape);

SLUICE_OP(RefSwitch)
    .Input("data: Ref(T)")
    .Input("pred: bool")
    .Output("output_false: Ref(T)")
    .Output("output_true: Ref(T)")
    .Attr("T: type")
    .AllowsUninitialized()
    .Shape(switch_merge::SwitchShape);

SLUICE_OP(Merge)
    .Input("inputs: N * T")
    .Output("output: T")
    .Output("value_index: int32")
    .Attr("T: type")
    .Attr("N: int >= 1")
    .Shape(switch_merge::MergeShape);

SLUICE_OP(RefMerge)
    .Input("inputs: Ref(N * T)")
    .Output("output: Ref(T)")
    .Output("value_index: int32")
    .Attr("T: type")
    .Attr("N: int >= 1")
    .Shape(switch_merge::MergeShape);

SLUICE_OP(Enter)
    .Input("data: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("frame_name: string")
    .Attr("is_constant: bool = false")
    .Attr("parallel_iterations: int = 10")
    .Shape(switch_merge::EnterShape);

SLUICE_OP(RefEnter)
    .Input("data: Ref(T)")
    .Output("output: Ref(T)")
    .Attr("T: type")
    .Attr("frame_name: string")
    .Attr("is_constant: bool = false")
    .Attr("parallel_iterations: int = 10")
    .Shape(shapes::SameAsInput);

SLUICE_OP(Exit)
    .Input("data: T")
    .Output("output: T")
    .Attr("T: type")
    .Shape(shapes::SameAsInput);

SLUICE_OP(RefExit)
    .Input("data: Ref(T)")
    .Output("output: Ref(T)")
    .Attr("T: type")
    .Shape(shapes::SameAsInput);

SLUICE_OP(NextIteration)
    .Input("data: T")
    .Output("output: T")
    .Attr("T: type")
    .Shape(shapes::SameAsInput);

SLUICE_OP(RefNextIteration)
    .Input("data: Ref(T)")
    .Output("output: Ref(T)")
    .Attr("T: type")
    .Shape(shapes::SameAsInput);

SLUICE_OP(LoopCond)
    .Input("input: bool")
    .Output("output: bool")
    .Shape(switch_merge::LoopCondShape);

SLUICE_KERNEL(NoOp, kCpu).Function(switch_merge::Nothing);
SLUICE_KERNEL(ControlTrigger, kCpu).Function(switch_merge::Nothing);
SLUICE_KERNEL(Switch, kCpu).Function(switch_merge::Switch);
SLUICE_KERNEL(RefSwitch, kCpu).Function(switch_merge::RefSwitch);
SLUICE_KERNEL(Merge, kCpu).Function(switch_merge::Merge<false>);
SLUICE_KERNEL(RefMerge, kCpu).Function(switch_merge::Merge<true>);
SLUICE_KERNEL(Enter, kCpu).Function(switch_merge::Identity);
SLUICE_KERNEL(RefEnter, kCpu).Function(switch_merge::RefIdentity);
SLUICE_KERNEL(Exit, kCpu).Function(switch_merge::Identity);
SLUICE_KERNEL(RefExit, kCpu).Function(switch_merge::RefIdentity);
SLUICE_KERNEL(NextIteration, kCpu).Function(switch_merge::Identity);
SLUICE_KERNEL(RefNextIteration, kCpu).Function(switch_merge::RefIdentity);
SLUICE_KERNEL(LoopCond, kCpu).Function(switch_merge::LoopCond);

}  // namespace sluice
