// Slice: a box out of a tensor.
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace slice_op {

// A smaller slice is copied: sharing would keep the whole tensor alive for it.
constexpr int64_t kMinSharedBytes = 1024;

absl::Status SliceShape(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(PartialShape begin_shape, c.WithRank(1, 1));
  SLUICE_ASSIGN_OR_RETURN(PartialShape size_shape, c.WithRank(2, 1));
  SLUICE_ASSIGN_OR_RETURN(PartialShape vector,
                          MergeShapes(begin_shape, size_shape));
  PartialShape in = c.input(0);
  if (vector.dim(0) > kMaxRank) {
    return InvalidArgument("begin has ", vector.dim(0), " elements");
  }
  if (vector.dim(0) >= 0) {
    SLUICE_ASSIGN_OR_RETURN(in, WithRank(in, static_cast<int>(vector.dim(0))));
  }
  SLUICE_ASSIGN_OR_RETURN(const PartialShape begin, ShapeFromInput(c, 1));
  SLUICE_ASSIGN_OR_RETURN(PartialShape out, ShapeFromInput(c, 2));
  const bool sizes_known = c.input_value(2).has_value();
  if (!out.known_rank()) {
    out = in.known_rank() ? PartialShape::UnknownOfRank(in.rank())
                          : PartialShape();
  } else if (sizes_known && in.known_rank() && begin.known_rank()) {
    // Here -1 is not an unknown size but "up to the end".
    SLUICE_RETURN_IF_ERROR(WithRank(in, out.rank()).status());
    for (int i = 0; i < out.rank() && i < begin.rank(); ++i) {
      if (out.dim(i) >= 0) continue;
      SLUICE_ASSIGN_OR_RETURN(int64_t rest,
                              SubtractDims(in.dim(i), begin.dim(i)));
      out.set_dim(i, rest);
    }
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status SliceKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& begins = ctx.input(1);
  const Tensor& sizes = ctx.input(2);
  const int rank = x.rank();
  if (begins.rank() != 1 || sizes.rank() != 1 || begins.size() != rank ||
      sizes.size() != rank) {
    return InvalidArgument(
        "Expected begin and size arguments to be 1-D tensors of size ", rank,
        ", but got shapes ", begins.shape().DebugString(), " and ",
        sizes.shape().DebugString(), " instead.");
  }
  const Mover mover = MoverOf(x.dtype());
  const auto steps = ByteSteps(x.shape(), mover.size);
  Shape shape;
  int64_t at = 0;
  bool whole = true;  // Of every dimension.
  bool rows = true;   // Of every dimension but the first.
  for (int i = 0; i < rank; ++i) {
    const int64_t begin = IndexAt(begins, i);
    if (begin < 0 || begin > x.dim(i)) {
      return InvalidArgument("Expected begin[", i, "] in [0, ", x.dim(i),
                             "], but got ", begin);
    }
    int64_t size = IndexAt(sizes, i);
    if (size == -1) size = x.dim(i) - begin;
    if (size < 0 || size > x.dim(i) - begin) {
      return InvalidArgument("Expected size[", i, "] in [0, ", x.dim(i) - begin,
                             "], but got ", size);
    }
    whole &= size == x.dim(i);
    rows &= i == 0 || size == x.dim(i);
    at += begin * steps[i];
    shape.AddDim(size);
  }
  if (whole) {
    ctx.set_output(0, x);
    return absl::OkStatus();
  }
  if (rows && shape.size() * mover.size >= kMinSharedBytes) {
    const int64_t begin = IndexAt(begins, 0);
    ctx.set_output(0, x.Rows(begin, begin + shape.dim(0)));
    return absl::OkStatus();
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, shape));
  const auto packed = ByteSteps(shape, mover.size);
  Box box;
  for (int i = 0; i < rank; ++i) box.Add(shape.dim(i), packed[i], steps[i]);
  MoveBox(ctx, mover, std::move(box), ElementAt(output, mover, 0),
          ElementAt(x, mover, 0) + at);
  return absl::OkStatus();
}

// Zeros around dy, where the slice was cut out.
Grads SliceGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output begin = op.input(1);
  const DType index = BaseType(TypeOf(begin));
  const Output rank = RankTensor(scope, op.input(0));
  const Output size = ShapeTensor(scope, op.output(0), index);
  const Output column = StackWithInt(scope, rank, 1);
  const Output before = scope.Add("Reshape", {begin, column});
  const Output whole = ShapeTensor(scope, op.input(0), index);
  const Output rest = scope.Named("sub").Add("Sub", {whole, size});
  const Output after = scope.Add(
      "Reshape", {scope.Named("sub").Add("Sub", {rest, begin}), column});
  const Output paddings = ConcatAt(scope, {before, after}, 1);
  return std::vector<Grad>{scope.Add("Pad", {dy[0], paddings}), Grad(), Grad()};
}

}  // namespace slice_op
}  // namespace

SLUICE_OP(Slice)
    .Input("input: T")
    .Input("begin: Index")
    .Input("size: Index")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Index: {int32, int64}")
    .Shape(slice_op::SliceShape)
    .Gradient(slice_op::SliceGradient);

SLUICE_KERNEL(Slice, kCpu).Function(slice_op::SliceKernel);

}  // namespace sluice
