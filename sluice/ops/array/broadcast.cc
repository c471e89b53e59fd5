// BroadcastTo, and the two ops that compute with shapes for broadcasting:
// BroadcastArgs and BroadcastGradientArgs.
#include "absl/strings/str_join.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace broadcast_ops {

absl::Status ToShape(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(PartialShape out, ShapeFromInput(c, 1));
  const PartialShape& in = c.input(0);
  if (!out.known_rank() || !in.known_rank()) {
    c.set_output(0, std::move(out));
    return absl::OkStatus();
  }
  SLUICE_RETURN_IF_ERROR(CheckRankAtMost(in, out.rank()));
  const int extra = out.rank() - in.rank();
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t size = in.dim(i);
    if (size < 0 || size == 1) continue;
    SLUICE_ASSIGN_OR_RETURN(int64_t merged,
                            MergeDims(size, out.dim(extra + i)));
    out.set_dim(extra + i, merged);
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status ToKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& sizes = ctx.input(1);
  if (sizes.rank() != 1) {
    return InvalidArgument(
        "shape must be a vector of {int32,int64}, got shape ",
        sizes.shape().DebugString());
  }
  SLUICE_ASSIGN_OR_RETURN(const Shape shape, ShapeOfSizes(sizes));
  const int extra = shape.rank() - x.rank();
  if (extra < 0) {
    return InvalidArgument("Rank of input (", x.rank(),
                           ") must be no greater than rank of output shape (",
                           shape.rank(), ").");
  }
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t have = x.dim(i);
    const int64_t want = shape.dim(extra + i);
    if (have == want || have == 1) continue;
    if (want == 1) {
      return InvalidArgument("Unable to broadcast tensor of shape ",
                             x.shape().DebugString(), " to tensor of shape ",
                             shape.DebugString());
    }
    return InvalidArgument("Incompatible shapes: ", x.shape().DebugString(),
                           " vs. ", shape.DebugString());
  }
  if (shape.size() == x.size()) {
    ctx.set_output(0, x.Reshaped(shape));
    return absl::OkStatus();
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & y, ctx.Output(0, shape));
  const Mover mover = MoverOf(x.dtype());
  const auto from = ByteSteps(x.shape(), mover.size);
  const auto to = ByteSteps(shape, mover.size);
  Box box;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool repeated = i < extra || x.dim(i - extra) == 1;
    box.Add(shape.dim(i), to[i], repeated ? 0 : from[i - extra]);
  }
  MoveBox(ctx, mover, std::move(box), ElementAt(y, mover, 0),
          ElementAt(x, mover, 0));
  return absl::OkStatus();
}

// Sums over what was repeated.
Grads ToGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output shape =
      ShapeTensor(scope, op.input(0), BaseType(TypeOf(op.input(1))));
  const std::vector<Output> axes =
      scope.AddMulti("BroadcastGradientArgs", {op.input(1), shape});
  if (!scope.ok()) return scope.status();
  const Output sum = scope.Add("Sum", {dy[0], axes[1]}, {{"keep_dims", true}});
  return std::vector<Grad>{scope.Add("Reshape", {sum, shape}), Grad()};
}

absl::Status ArgsShape(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(const PartialShape a, c.WithRank(0, 1));
  SLUICE_ASSIGN_OR_RETURN(const PartialShape b, c.WithRank(1, 1));
  const bool known = a.dim(0) >= 0 && b.dim(0) >= 0;
  c.set_output(0, {known ? std::max(a.dim(0), b.dim(0)) : -1});
  return absl::OkStatus();
}

absl::Status GradientArgsShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  c.set_output(0, {-1});
  c.set_output(1, {-1});
  return absl::OkStatus();
}

absl::Status CheckVectors(const KernelContext& ctx) {
  for (int i = 0; i < 2; ++i) {
    if (ctx.input(i).rank() != 1) {
      return InvalidArgument("In[", i, "] must be a vector.",
                             ctx.input(i).shape().DebugString());
    }
  }
  return absl::OkStatus();
}

// Sizes of both, counted from the back; a missing one is 1.
struct Pair {
  int64_t a, b;
};
Pair PairAt(const IndexVector& a, const IndexVector& b, size_t from_back) {
  return {from_back < a.size() ? a[a.size() - 1 - from_back] : 1,
          from_back < b.size() ? b[b.size() - 1 - from_back] : 1};
}

absl::Status CheckFit(const IndexVector& a, const IndexVector& b) {
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const Pair pair = PairAt(a, b, i);
    if (pair.a != pair.b && pair.a != 1 && pair.b != 1) {
      return InvalidArgument("Incompatible shapes: [", absl::StrJoin(a, ","),
                             "] vs. [", absl::StrJoin(b, ","), "]");
    }
  }
  return absl::OkStatus();
}

absl::Status ArgsKernel(KernelContext& ctx) {
  SLUICE_RETURN_IF_ERROR(CheckVectors(ctx));
  const IndexVector a = IndexValues(ctx.input(0));
  const IndexVector b = IndexValues(ctx.input(1));
  SLUICE_RETURN_IF_ERROR(CheckFit(a, b));
  const size_t rank = std::max(a.size(), b.size());
  SLUICE_ASSIGN_OR_RETURN(Tensor & out,
                          ctx.Output(0, {static_cast<int64_t>(rank)}));
  for (size_t i = 0; i < rank; ++i) {
    const Pair pair = PairAt(a, b, i);
    SetIndexAt(out, static_cast<int64_t>(rank - 1 - i),
               pair.a == 1 ? pair.b : pair.a);
  }
  return absl::OkStatus();
}

absl::Status WriteAxes(KernelContext& ctx, int i, const IndexVector& axes) {
  SLUICE_ASSIGN_OR_RETURN(Tensor & out,
                          ctx.Output(i, {static_cast<int64_t>(axes.size())}));
  for (size_t k = 0; k < axes.size(); ++k) {
    SetIndexAt(out, static_cast<int64_t>(k), axes[k]);
  }
  return absl::OkStatus();
}

// The dimensions of the result that each side's gradient is summed over. A
// dimension where both are 1 counts for both, unless the shapes are equal.
absl::Status GradientArgsKernel(KernelContext& ctx) {
  SLUICE_RETURN_IF_ERROR(CheckVectors(ctx));
  const IndexVector a = IndexValues(ctx.input(0));
  const IndexVector b = IndexValues(ctx.input(1));
  SLUICE_RETURN_IF_ERROR(CheckFit(a, b));
  IndexVector axes_a, axes_b;
  if (a != b) {
    const size_t rank = std::max(a.size(), b.size());
    for (size_t i = 0; i < rank; ++i) {
      const Pair pair = PairAt(a, b, rank - 1 - i);
      if (pair.a == 1) axes_a.push_back(static_cast<int64_t>(i));
      if (pair.b == 1) axes_b.push_back(static_cast<int64_t>(i));
    }
  }
  SLUICE_RETURN_IF_ERROR(WriteAxes(ctx, 0, axes_a));
  return WriteAxes(ctx, 1, axes_b);
}

}  // namespace broadcast_ops
}  // namespace

SLUICE_OP(BroadcastTo)
    .Input("input: T")
    .Input("shape: Tidx")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Shape(broadcast_ops::ToShape)
    .Gradient(broadcast_ops::ToGradient);

SLUICE_OP(BroadcastArgs)
    .Input("s0: T")
    .Input("s1: T")
    .Output("r0: T")
    .Attr("T: {int32, int64} = DT_INT32")
    .Shape(broadcast_ops::ArgsShape);

SLUICE_OP(BroadcastGradientArgs)
    .Input("s0: T")
    .Input("s1: T")
    .Output("r0: T")
    .Output("r1: T")
    .Attr("T: {int32, int64} = DT_INT32")
    .Shape(broadcast_ops::GradientArgsShape)
    .NotDifferentiable();

SLUICE_KERNEL(BroadcastTo, kCpu).Function(broadcast_ops::ToKernel);
SLUICE_KERNEL(BroadcastArgs, kCpu).Function(broadcast_ops::ArgsKernel);
SLUICE_KERNEL(BroadcastGradientArgs, kCpu)
    .Function(broadcast_ops::GradientArgsKernel);

}  // namespace sluice
