// Tile: a tensor repeated along its dimensions.
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace tile_op {

absl::Status TileShape(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(const PartialShape vector, c.WithRank(1, 1));
  PartialShape in = c.input(0);
  if (vector.dim(0) > kMaxRank) {
    return InvalidArgument("multiples has ", vector.dim(0), " elements");
  }
  if (vector.dim(0) >= 0) {
    const int rank = static_cast<int>(vector.dim(0));
    if (!in.known_rank()) in = PartialShape::UnknownOfRank(rank);
    // This way round: the message calls the input's rank the right one.
    SLUICE_RETURN_IF_ERROR(
        WithRank(PartialShape::UnknownOfRank(rank), in.rank()).status());
  }
  if (!in.known_rank()) return shapes::Unknown(c);
  const std::optional<Tensor> multiples = c.input_value(1);
  const bool known = multiples && multiples->size() == in.rank();
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t times = known ? IndexAt(*multiples, i) : -1;
    in.set_dim(i, times < 0 ? -1 : MultiplyDims(in.dim(i), times));
  }
  c.set_output(0, std::move(in));
  return absl::OkStatus();
}

absl::Status TileKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& multiples = ctx.input(1);
  if (multiples.rank() != 1) {
    return InvalidArgument("Expected multiples to be 1-D, but got shape ",
                           multiples.shape().DebugString());
  }
  if (multiples.size() != x.rank()) {
    return InvalidArgument(
        "Expected multiples argument to be a vector of length ", x.rank(),
        " but got length ", multiples.size());
  }
  IndexVector dims(x.shape().dims().begin(), x.shape().dims().end());
  bool same = true;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t times = IndexAt(multiples, i);
    if (times < 0) {
      return InvalidArgument("Expected multiples[", i, "] >= 0, but got ",
                             times);
    }
    same &= times == 1;
    if (__builtin_mul_overflow(dims[i], times, &dims[i])) {
      return InvalidArgument("The tiled dimension ", i, " is too large");
    }
  }
  if (same) {
    ctx.set_output(0, x);
    return absl::OkStatus();
  }
  SLUICE_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::Create(std::span<const int64_t>(dims.data(), dims.size())));
  SLUICE_ASSIGN_OR_RETURN(Tensor & y, ctx.Output(0, shape));
  if (shape.size() == 0) return absl::OkStatus();
  const Mover mover = MoverOf(x.dtype());
  const auto from = ByteSteps(x.shape(), mover.size);
  const auto to = ByteSteps(shape, mover.size);
  Box box;
  for (int i = 0; i < x.rank(); ++i) {
    box.Add(IndexAt(multiples, i), to[i] * x.dim(i), 0);
    box.Add(x.dim(i), to[i], from[i]);
  }
  MoveBox(ctx, mover, std::move(box), ElementAt(y, mover, 0),
          ElementAt(x, mover, 0));
  return absl::OkStatus();
}

// dy seen as [times, size, times, size, …], summed over the times.
Grads TileGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output multiples = op.input(1);
  const Output shape =
      ShapeTensor(scope, op.input(0), BaseType(TypeOf(multiples)));
  const Output pairs =
      scope.Named("stack").Add("Pack", {multiples, shape}, {{"axis", 0}});
  const Scope transpose = scope.NameScope("transpose");
  const Output by_dim = AddAs(transpose, "Transpose",
                              {pairs, transpose.Named("perm").Ints({1, 0})});
  const Output split = Flatten(scope, by_dim);
  const Output axes = RangeOf(scope, 0, SizeTensor(scope, split), 2);
  const Output sum =
      scope.Add("Sum", {scope.Add("Reshape", {dy[0], split}), axes});
  if (!sum) return scope.status();
  SLUICE_RETURN_IF_ERROR(
      sum.node->RefineOutputShape(sum.index, ShapeOf(op.input(0))));
  return std::vector<Grad>{sum, Grad()};
}

}  // namespace tile_op
}  // namespace

SLUICE_OP(Tile)
    .Input("input: T")
    .Input("multiples: Tmultiples")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tmultiples: {int32, int64} = DT_INT32")
    .Shape(tile_op::TileShape)
    .Gradient(tile_op::TileGradient);

SLUICE_KERNEL(Tile, kCpu).Function(tile_op::TileKernel);

}  // namespace sluice
