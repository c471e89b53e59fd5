// Select: elements, or whole rows, of one tensor or another. SelectV2
// broadcasts all three instead.
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

absl::Status BroadcastAll(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(PartialShape shape,
                          BroadcastShapes(c.input(1), c.input(2)));
  SLUICE_ASSIGN_OR_RETURN(shape, BroadcastShapes(c.input(0), shape));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Elements between neighbours along each dimension of the result; 0 where an
// input is repeated.
using Steps = absl::InlinedVector<int64_t, 6>;

// The shape all three inputs are repeated to, and how each is walked through.
struct Broadcast3 {
  Shape shape;
  Steps steps[3];

  static absl::StatusOr<Broadcast3> Make(const KernelContext& ctx) {
    int rank = 0;
    for (int i = 0; i < 3; ++i) rank = std::max(rank, ctx.input(i).rank());
    std::vector<int64_t> dims(rank, 1);
    for (int i = 0; i < 3; ++i) {
      const Shape& in = ctx.input(i).shape();
      for (int d = 0; d < in.rank(); ++d) {
        int64_t& out = dims[rank - in.rank() + d];
        if (in.dim(d) == 1 || in.dim(d) == out) continue;
        if (out != 1) {
          return InvalidArgument(
              "condition ", ctx.input(0).shape().DebugString(), ", then ",
              ctx.input(1).shape().DebugString(), ", and else ",
              ctx.input(2).shape().DebugString(), " must be broadcastable");
        }
        out = in.dim(d);
      }
    }
    Broadcast3 result;
    SLUICE_ASSIGN_OR_RETURN(result.shape, Shape::Create(dims));
    for (int i = 0; i < 3; ++i) {
      const Shape& in = ctx.input(i).shape();
      result.steps[i].assign(rank, 0);
      int64_t step = 1;
      for (int d = in.rank() - 1; d >= 0; --d) {
        if (in.dim(d) != 1) result.steps[i][rank - in.rank() + d] = step;
        step *= in.dim(d);
      }
    }
    return result;
  }

  // Where row `row` of the result begins in input i.
  int64_t RowBegin(int i, int64_t row) const {
    int64_t at = 0;
    for (int d = shape.rank() - 2; d >= 0; --d) {
      at += row % shape.dim(d) * steps[i][d];
      row /= shape.dim(d);
    }
    return at;
  }
};

absl::Status SelectV2Kernel(KernelContext& ctx) {
  const Tensor& condition = ctx.input(0);
  if (condition.shape() == ctx.input(1).shape() &&
      condition.shape() == ctx.input(2).shape()) {
    return SelectEach(ctx);
  }
  SLUICE_ASSIGN_OR_RETURN(const Broadcast3 all, Broadcast3::Make(ctx));
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, all.shape));
  if (out.size() == 0) return absl::OkStatus();
  const int last = all.shape.rank() - 1;
  const int64_t width = last < 0 ? 1 : all.shape.dim(last);
  const auto step = [&](int i) { return last < 0 ? 0 : all.steps[i][last]; };
  const Mover mover = MoverOf(out.dtype());
  const bool* chosen = condition.data<bool>().data();
  ctx.ParallelFor(
      out.size() / width,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const bool* choose = chosen + all.RowBegin(0, row);
          const int64_t starts[] = {all.RowBegin(1, row), all.RowBegin(2, row)};
          // Neighbours that come from the same input move together.
          for (int64_t i = 0, next; i < width; i = next) {
            const bool then = choose[i * step(0)];
            next = i + 1;
            while (next < width && choose[next * step(0)] == then) ++next;
            const int from = then ? 1 : 2;
            mover.run(ElementAt(out, mover, row * width + i), mover.size,
                      ElementAt(ctx.input(from), mover,
                                starts[from - 1] + i * step(from)),
                      mover.size * step(from), next - i);
          }
        }
      },
      5 + 0.5 * width);
  return absl::OkStatus();
}

// The part of the gradient that went to one input, summed over what was
// repeated.
Output SumTo(const Scope& scope, Output grad, Output input) {
  const Output shape = ShapeTensor(scope, input, DType::kInt32);
  const std::vector<Output> axes =
      scope.AddMulti("BroadcastGradientArgs",
                     {ShapeTensor(scope, grad, DType::kInt32), shape});
  if (!scope.ok()) return {};
  const Output sum = scope.Add("Sum", {grad, axes[1]}, {{"keep_dims", true}});
  return scope.Add("Reshape", {sum, shape});
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

SLUICE_OP(SelectV2)
    .Input("condition: bool")
    .Input("t: T")
    .Input("e: T")
    .Output("output: T")
    .Attr("T: type")
    .Shape(select_op::BroadcastAll)
    .Gradient([](Scope& scope, const Node& op,
                 std::span<const Output> dy) -> Grads {
      const Output zero = scope.Const(*Tensor::Zeros(TypeOf(dy[0]), Shape()));
      const Output dt = scope.Add("SelectV2", {op.input(0), dy[0], zero});
      const Output de = scope.Add("SelectV2", {op.input(0), zero, dy[0]});
      return std::vector<Grad>{Grad(), select_op::SumTo(scope, dt, op.input(1)),
                               select_op::SumTo(scope, de, op.input(2))};
    });

SLUICE_KERNEL(SelectV2, kCpu).Function(select_op::SelectV2Kernel);
SLUICE_KERNEL(Select, kCpu).Function(select_op::SelectKernel);

}  // namespace sluice
