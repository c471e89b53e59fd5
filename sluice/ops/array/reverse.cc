// ReverseV2: a tensor read backwards along some of its dimensions.
#include "sluice/graph/scope.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/move.h"

namespace sluice {
namespace {
namespace reverse_op {

absl::StatusOr<absl::InlinedVector<bool, 8>> Reversed(const Tensor& axes,
                                                      int rank) {
  absl::InlinedVector<bool, 8> reversed(rank);
  for (int64_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = IndexAt(axes, i);
    const int at = AxisFromFront(axis, rank);
    if (at < 0) {
      return InvalidArgument("'axis'[", i, "] = ", axis,
                             " is out of valid range [0, ", rank - 1);
    }
    if (reversed[at]) {
      return InvalidArgument("axis ", at, " specified more than once.");
    }
    reversed[at] = true;
  }
  return reversed;
}

absl::Status ReverseShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  const PartialShape& in = c.input(0);
  if (const std::optional<Tensor> axes = c.input_value(1);
      axes && in.known_rank()) {
    SLUICE_RETURN_IF_ERROR(Reversed(*axes, in.rank()).status());
  }
  c.set_output(0, in);
  return absl::OkStatus();
}

absl::Status ReverseKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& axes = ctx.input(1);
  if (axes.rank() != 1) {
    return InvalidArgument("'dims' must be 1-dimension, not ", axes.rank());
  }
  SLUICE_ASSIGN_OR_RETURN(const auto reversed, Reversed(axes, x.rank()));
  bool moves = false;
  for (int i = 0; i < x.rank(); ++i) moves |= reversed[i] && x.dim(i) > 1;
  if (!moves || x.size() == 0) {
    ctx.set_output(0, x);
    return absl::OkStatus();
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & y, ctx.Output(0, x.shape()));
  const Mover mover = MoverOf(x.dtype());
  const auto steps = ByteSteps(x.shape(), mover.size);
  int64_t at = 0;
  Box box;
  for (int i = 0; i < x.rank(); ++i) {
    if (reversed[i]) at += (x.dim(i) - 1) * steps[i];
    box.Add(x.dim(i), steps[i], reversed[i] ? -steps[i] : steps[i]);
  }
  MoveBox(ctx, mover, std::move(box), ElementAt(y, mover, 0),
          ElementAt(x, mover, 0) + at);
  return absl::OkStatus();
}

}  // namespace reverse_op
}  // namespace

SLUICE_OP(ReverseV2)
    .Input("tensor: T")
    .Input("axis: Tidx")
    .Output("output: T")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Attr(
        "T: {uint8, int8, uint16, int16, int32, int64, bool, bfloat16, half, "
        "float, double, complex64, complex128, string}")
    .Shape(reverse_op::ReverseShape)
    .Gradient([](Scope& scope, const Node& op,
                 std::span<const Output> dy) -> Grads {
      return std::vector<Grad>{scope.Add("ReverseV2", {dy[0], op.input(1)}),
                               Grad()};
    });

SLUICE_KERNEL(ReverseV2, kCpu).Function(reverse_op::ReverseKernel);

}  // namespace sluice
