// Select: elements, or whole rows, of one tensor or another.
#include "sluice/numeric/select.h"

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace select_op {

absl::Status SelectShape(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(PartialShape data,
                          MergeShapes(c.input(1), c.input(2)));
  const PartialShape& condition = c.input(0);
  if (condition.known_rank() && data.known_rank() && condition.rank() > 0) {
    if (condition.rank() > 1 || data.rank() == 0) {
      SLUICE_ASSIGN_OR_RETURN(data, MergeShapes(data, condition));
    } else {
      // A vector may choose whole rows.
      SLUICE_ASSIGN_OR_RETURN(PartialShape first,
                              MergeShapes(condition, SubShape(data, 0, 1)));
      data.set_dim(0, first.dim(0));
    }
  }
  c.set_output(0, std::move(data));
  return absl::OkStatus();
}

absl::Status CheckSameSize(const Tensor& a, const Tensor& b) {
  if (a.shape() == b.shape()) return absl::OkStatus();
  return InvalidArgument(
      "'then' and 'else' must have the same size.  but received: ",
      a.shape().DebugString(), " vs. ", b.shape().DebugString());
}

absl::Status SelectRows(KernelContext& ctx) {
  const Tensor& condition = ctx.input(0);
  const Tensor& a = ctx.input(1);
  const Tensor& b = ctx.input(2);
  if (a.rank() == 0) {
    return InvalidArgument("'then' must be at least a vector, but saw shape: ",
                           a.shape().DebugString());
  }
  if (a.dim(0) != condition.size()) {
    return InvalidArgument(
        "Number of batches of 'then' must match size of 'cond', but saw: ",
        a.dim(0), " vs. ", condition.size());
  }
  SLUICE_RETURN_IF_ERROR(CheckSameSize(a, b));
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.OutputFrom({1, 2}, 0, a.shape()));
  if (a.size() == 0) return absl::OkStatus();
  const Mover mover = MoverOf(a.dtype());
  const int64_t row = a.size() / a.dim(0);
  const bool* chosen = condition.data<bool>().data();
  ctx.ParallelFor(
      a.dim(0),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const char* from = ElementAt(chosen[i] ? a : b, mover, i * row);
          char* to = ElementAt(out, mover, i * row);
          if (to != from) mover.run(to, mover.size, from, mover.size, row);
        }
      },
      5 + 0.1 * row * mover.size);
  return absl::OkStatus();
}

absl::Status SelectEach(KernelContext& ctx) {
  const Tensor& condition = ctx.input(0);
  const Tensor& a = ctx.input(1);
  const Tensor& b = ctx.input(2);
  for (int i = 1; i <= 2; ++i) {
    if (ctx.input(i).shape() != condition.shape()) {
      return InvalidArgument("Inputs to operation ", ctx.node().name(),
                             " of type Select must ",
                             "have the same size and shape.  Input 0: ",
                             condition.shape().DebugString(), " != input ", i,
                             ": ", ctx.input(i).shape().DebugString());
    }
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.OutputFrom({1, 2}, 0, a.shape()));
  const bool* chosen = condition.data<bool>().data();
  const Mover mover = MoverOf(a.dtype());
  if (ElementSize(a.dtype()) == 0) {
    for (int64_t i = 0; i < a.size(); ++i) {
      mover.run(ElementAt(out, mover, i), mover.size,
                ElementAt(chosen[i] ? a : b, mover, i), mover.size, 1);
    }
    return absl::OkStatus();
  }
  ctx.ParallelFor(
      a.size(),
      [&](int64_t begin, int64_t end) {
        SelectElements(mover.size, chosen + begin, ElementAt(a, mover, begin),
                       ElementAt(b, mover, begin), ElementAt(out, mover, begin),
                       end - begin);
      },
      0.5);
  return absl::OkStatus();
}

absl::Status SelectKernel(KernelContext& ctx) {
  const Tensor& condition = ctx.input(0);
  if (condition.rank() == 0) {
    SLUICE_RETURN_IF_ERROR(CheckSameSize(ctx.input(1), ctx.input(2)));
    ctx.set_output(0, ctx.input(condition.scalar<bool>() ? 1 : 2));
    return absl::OkStatus();
  }
  if (condition.rank() == 1 && ctx.input(1).rank() != 1) {
    return SelectRows(ctx);
  }
  return SelectEach(ctx);
}

}  // namespace select_op
}  // namespace

SLUICE_OP(Select)
    .Input("condition: bool")
    .Input("t: T")
    .Input("e: T")
    .Output("output: T")
    .Attr("T: type")
    .Shape(select_op::SelectShape)
    .Gradient([](Scope& scope, const Node& op,
                 std::span<const Output> dy) -> Grads {
      const Output condition = op.input(0);
      const Output zeros = ZerosLikeTensor(scope, op.input(1));
      const Output dt = scope.Add("Select", {condition, dy[0], zeros});
      const Output de = scope.Add("Select", {condition, zeros, dy[0]});
      return std::vector<Grad>{Grad(), dt, de};
    });

SLUICE_KERNEL(Select, kCpu).Function(select_op::SelectKernel);

}  // namespace sluice
