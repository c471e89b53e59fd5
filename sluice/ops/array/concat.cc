// Concat, ConcatV2 and ConcatOffset.
#include "absl/strings/str_join.h"
#include "sluice/graph/control_flow.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace concat_ops {

// The first value and the axis change places between the two versions.
struct Arguments {
  int first;
  int count;
  int axis;
};
Arguments ArgumentsOf(const Node& node) {
  const int count = node.num_inputs() - 1;
  return node.type() == "Concat" ? Arguments{1, count, 0}
                                 : Arguments{0, count, count};
}

absl::Status ConcatShape(ShapeContext& c) {
  const Arguments args = ArgumentsOf(c.node());
  SLUICE_RETURN_IF_ERROR(c.WithRank(args.axis, 0).status());
  // Every input has the rank of the first whose rank is known.
  PartialShape known;
  for (int i = 0; i < args.count && !known.known_rank(); ++i) {
    known = c.input(args.first + i);
  }
  if (known.known_rank() && known.rank() == 0) {
    return InvalidArgument("Can't concatenate scalars (use tf.stack instead)");
  }
  const std::optional<int64_t> axis = KnownScalar(c, args.axis);
  if (!axis) {
    c.set_output(0, known.known_rank()
                        ? PartialShape::UnknownOfRank(known.rank())
                        : PartialShape());
    return absl::OkStatus();
  }
  for (int i = 0; i < args.count; ++i) {
    const PartialShape& shape = c.input(args.first + i);
    SLUICE_RETURN_IF_ERROR(CheckHasAxis(shape, *axis));
    if (known.known_rank()) {
      SLUICE_RETURN_IF_ERROR(WithRank(shape, known.rank()).status());
    }
  }
  if (!known.known_rank()) return shapes::Unknown(c);

  const int rank = known.rank();
  const int at = AxisFromFront(*axis, rank);
  PartialShape before = PartialShape::UnknownOfRank(at);
  PartialShape after = PartialShape::UnknownOfRank(rank - at - 1);
  int64_t size = 0;
  for (int i = 0; i < args.count; ++i) {
    SLUICE_ASSIGN_OR_RETURN(PartialShape shape,
                            WithRank(c.input(args.first + i), rank));
    SLUICE_ASSIGN_OR_RETURN(before,
                            MergeShapes(before, SubShape(shape, 0, at)));
    SLUICE_ASSIGN_OR_RETURN(after,
                            MergeShapes(after, SubShape(shape, at + 1, rank)));
    size = AddDims(size, shape.dim(at));
  }
  before.AddDim(size);
  c.set_output(0, JoinShapes(before, after));
  return absl::OkStatus();
}

absl::Status ConcatKernel(KernelContext& ctx) {
  const Arguments args = ArgumentsOf(ctx.node());
  const Tensor& axis_tensor = ctx.input(args.axis);
  if (axis_tensor.rank() != 0) {
    return InvalidArgument(args.axis == 0 ? "concat_dim" : "axis",
                           " tensor should be a scalar integer, but got shape ",
                           axis_tensor.shape().DebugString());
  }
  const Shape& first = ctx.input(args.first).shape();
  const int64_t axis = IndexAt(axis_tensor, 0);
  const int at = AxisFromFront(axis, first.rank());
  if (at < 0) {
    return InvalidArgument(
        "ConcatOp : Expected concatenating dimensions in the range [",
        -first.rank(), ", ", first.rank(), "), but got ", axis);
  }
  int64_t total = 0;
  for (int i = 0; i < args.count; ++i) {
    const Shape& shape = ctx.input(args.first + i).shape();
    if (shape.rank() != first.rank()) {
      return InvalidArgument(
          "ConcatOp : Ranks of all input tensors should match: shape[0] = ",
          first.DebugString(), " vs. shape[", i, "] = ", shape.DebugString());
    }
    for (int d = 0; d < shape.rank(); ++d) {
      if (d != at && shape.dim(d) != first.dim(d)) {
        return InvalidArgument(
            "ConcatOp : Dimensions of inputs should match: shape[0] = ",
            first.DebugString(), " vs. shape[", i, "] = ", shape.DebugString());
      }
    }
    if (__builtin_add_overflow(total, shape.dim(at), &total)) {
      return InvalidArgument("ConcatOp : The result is too large");
    }
  }
  IndexVector dims(first.dims().begin(), first.dims().end());
  dims[at] = total;
  SLUICE_ASSIGN_OR_RETURN(Shape shape, Shape::Create(std::span<const int64_t>(
                                           dims.data(), dims.size())));
  SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, shape));
  if (shape.size() == 0) return absl::OkStatus();

  const Mover mover = MoverOf(output.dtype());
  const int64_t rows = SizeBetween(shape, 0, at);
  const int64_t inner = SizeBetween(shape, at + 1, shape.rank());
  const int64_t row_bytes = total * inner * mover.size;
  char* to = ElementAt(output, mover, 0);
  for (int i = 0; i < args.count; ++i) {
    const Tensor& part = ctx.input(args.first + i);
    const int64_t run = part.dim(at) * inner;
    Box box;
    box.Add(rows, row_bytes, run * mover.size);
    box.Add(run, mover.size, mover.size);
    MoveBox(ctx, mover, std::move(box), to, ElementAt(part, mover, 0));
    to += run * mover.size;
  }
  return absl::OkStatus();
}

absl::Status OffsetShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(i + 1));
  return absl::OkStatus();
}

absl::Status OffsetKernel(KernelContext& ctx) {
  const Tensor& dim_tensor = ctx.input(0);
  if (dim_tensor.rank() != 0) {
    return InvalidArgument(
        "Concat dim tensor should be a scalar integer, but got shape ",
        dim_tensor.shape().DebugString());
  }
  const Tensor& first = ctx.input(1);
  const int64_t rank = first.size();
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    const Tensor& sizes = ctx.input(i);
    if (sizes.rank() != 1) {
      return InvalidArgument("input ", i, " should be a vector, but got shape ",
                             sizes.shape().DebugString());
    }
    if (sizes.size() != rank) {
      return InvalidArgument("input ", i - 1, " should contain ", rank,
                             " elements, but got ", sizes.size());
    }
  }
  const int32_t dim = dim_tensor.data<int32_t>()[0];
  const int at = AxisFromFront(dim, static_cast<int>(rank));
  if (at < 0) {
    return InvalidArgument("Concat dim is out of range: ", dim, " vs. ", rank);
  }
  const auto want = first.data<int32_t>();
  int64_t offset = 0;
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    const auto sizes = ctx.input(i).data<int32_t>();
    for (int64_t d = 0; d < rank; ++d) {
      if (d != at && sizes[d] != want[d]) {
        return InvalidArgument("All dimensions except ", at,
                               " must match. Input ", i - 1, " has shape [",
                               absl::StrJoin(sizes, " "),
                               "] and doesn't match input 0 with shape [",
                               absl::StrJoin(want, " "), "].");
      }
    }
    SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(i - 1, {rank}));
    for (int64_t d = 0; d < rank; ++d) {
      output.mutable_data<int32_t>()[d] =
          d == at ? static_cast<int32_t>(offset) : 0;
    }
    offset += sizes[at];
  }
  return absl::OkStatus();
}

// The values' gradients with "none" where the axis stands.
std::vector<Grad> WithAxis(const Arguments& args, std::vector<Grad> grads) {
  grads.insert(args.axis == 0 ? grads.begin() : grads.end(), Grad());
  return grads;
}

std::vector<Output> Values(const Node& op, const Arguments& args) {
  const auto values = op.inputs().subspan(args.first, args.count);
  return {values.begin(), values.end()};
}

// Past this many values one SplitV is made instead of a Slice for each.
constexpr int kManyValues = 16;

// Shapes as constants, or, when one of them is not static, all from one ShapeN.
std::vector<Output> InputShapes(Scope& scope, const std::vector<Output>& xs) {
  std::vector<Output> shapes;
  for (const Output& x : xs) {
    shapes.push_back(ShapeTensor(scope, x));
    if (!shapes.back()) return {};
    if (shapes.back().node->type() != "Const") {
      return scope.AddMulti("ShapeN", xs, {{"out_type", DType::kInt32}});
    }
  }
  return shapes;
}

std::vector<Output> SplitEvenMany(Scope& scope, Output dy, Output axis,
                                  const std::vector<Output>& shapes) {
  const Output table = scope.Named("stack").Add("Pack", shapes, {{"axis", 1}});
  const Scope slice = scope.NameScope("Slice");
  const Scope begin = slice.NameScope("begin");
  const Output from =
      AddAs(begin, "Pack", {axis, begin.Named("1").Scalar<int32_t>(0)},
            {{"axis", 0}});
  const Output size = slice.Named("size").Ints({1, -1});
  const Output row = AddAs(slice, "Slice", {table, from, size});
  const Output sizes = scope.Add("Squeeze", {row});
  return scope.Named("split").AddMulti(
      "SplitV", {dy, sizes, axis},
      {{"num_split", static_cast<int64_t>(shapes.size())}});
}

Grads ConcatGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Arguments args = ArgumentsOf(op);
  const std::vector<Output> values = Values(op, args);
  Output axis = op.input(args.axis);
  if (axis.node->type() == "Const" &&
      OutputContext(*axis.node) != OutputContext(*dy[0].node)) {
    // A copy in this context spares the constant its way into a loop.
    axis = scope.Const(axis.node->attr<Tensor>("value"));
  }
  // Python has no gradient for an int64 axis; offsets are int32.
  if (TypeOf(axis) != DType::kInt32) {
    axis = scope.Add("Cast", {axis}, {{"DstT", DType::kInt32}});
  }
  const Output rank = RankTensor(scope, values[0]);
  axis = scope.Named("mod").Add("FloorMod", {axis, rank});
  const std::vector<Output> shapes = InputShapes(scope, values);
  if (!scope.ok()) return scope.status();
  std::vector<Grad> grads;
  if (shapes.size() > kManyValues) {
    for (Output part : SplitEvenMany(scope, dy[0], axis, shapes)) {
      grads.push_back(part);
    }
  } else {
    std::vector<Output> inputs = {axis};
    inputs.insert(inputs.end(), shapes.begin(), shapes.end());
    const std::vector<Output> offsets = scope.AddMulti("ConcatOffset", inputs);
    if (!scope.ok()) return scope.status();
    for (size_t i = 0; i < shapes.size(); ++i) {
      grads.push_back(scope.Add("Slice", {dy[0], offsets[i], shapes[i]}));
    }
  }
  if (!scope.ok()) return scope.status();
  return WithAxis(args, std::move(grads));
}

// Rows that were concatenated: each value gets the slices of its rows.
std::vector<Grad> RowsOfEach(Scope& scope, const Grad& dy, Output axis,
                             const std::vector<Output>& shapes) {
  const DType index_type = TypeOf(dy.indices);
  std::vector<Grad> grads;
  Output start = scope.Const(ScalarOfType(index_type, 0));
  for (const Output& shape : shapes) {
    Output size = GatherRows(scope, shape, axis);
    if (index_type != DType::kInt32) {
      size = scope.Add("Cast", {size}, {{"DstT", index_type}});
    }
    const Output end = scope.Named("add").Add("AddV2", {start, size});
    const Output after = scope.Add("GreaterEqual", {dy.indices, start});
    const Output before = scope.Add("Less", {dy.indices, end});
    const Output inside = scope.Add("LogicalAnd", {after, before});
    const Output where = scope.Add("Where", {inside});
    const Output selected = scope.Add(
        "Squeeze", {where}, {{"squeeze_dims", std::vector<int64_t>{1}}});
    const Output indices = scope.Named("sub").Add(
        "Sub", {GatherRows(scope, dy.indices, selected), start});
    const Output values = GatherRows(scope, dy.values, selected);
    grads.push_back(Grad::Slices(values, indices, shape));
    start = end;
  }
  return grads;
}

Output FillZeros(Scope& scope, Output dims) {
  const Scope inner = scope.NameScope("Fill");
  return AddAs(inner, "Fill", {dims, inner.Named("value").Scalar<int32_t>(0)});
}

// Columns that were concatenated: each value gets all rows, cut to its columns.
std::vector<Grad> ColumnsOfEach(Scope& scope, const Grad& dy, Output axis,
                                const std::vector<Output>& shapes) {
  // 1 at the axis, 0 elsewhere.
  const Output rank = ShapeTensor(scope, shapes[0]);
  const Output zeros_before = FillZeros(scope, ExpandFront(scope, axis));
  const Output rest = scope.Named("sub").Add("Sub", {rank, axis});
  const Scope sub = scope.NameScope("sub");
  const Output count_after =
      AddAs(sub, "Sub", {rest, sub.Named("y").Scalar<int32_t>(1)});
  const Output zeros_after = FillZeros(scope, count_after);
  const Scope concat = scope.NameScope("concat");
  const Output one = concat.Named("values_1").Ints({1});
  const Output mask = AddAs(concat, "ConcatV2",
                            {zeros_before, one, zeros_after,
                             concat.Named("axis").Scalar<int32_t>(0)});
  Output begin = FillZeros(scope, rank);
  std::vector<Grad> grads;
  for (const Output& shape : shapes) {
    const Scope slice = scope.NameScope("Slice");
    const Output from = slice.Named("begin").Ints({1});
    const Output all = slice.Named("size").Ints({-1});
    const Output columns = AddAs(slice, "Slice", {shape, from, all});
    const Scope join = scope.NameScope("concat");
    const Output any = join.Named("values_0").Ints({-1});
    const Output size =
        AddAs(join, "ConcatV2",
              {any, columns, join.Named("axis").Scalar<int32_t>(0)});
    grads.push_back(Grad::Slices(scope.Add("Slice", {dy.values, begin, size}),
                                 dy.indices, shape));
    begin =
        scope.Add("Add", {begin, scope.Named("mul").Add("Mul", {shape, mask})});
  }
  return grads;
}

Grads ConcatSlicesGradient(Scope& scope, const Node& op,
                           std::span<const Grad> dy) {
  if (!dy[0].is_slices()) {
    return ConcatGradient(scope, op, std::vector<Output>{dy[0].values});
  }
  const Arguments args = ArgumentsOf(op);
  const std::vector<Output> values = Values(op, args);
  std::optional<Tensor> axis_value = ConstantValue(op.input(args.axis));
  if (!axis_value || axis_value->size() != 1) {
    return InvalidArgument(
        "Can only compute IndexedSlices gradient with statically-known "
        "concat_dim");
  }
  const Output axis = scope.Named("mod").Add(
      "FloorMod", {op.input(args.axis), RankTensor(scope, values[0])});
  int64_t at = IndexAt(*axis_value, 0);
  if (at < 0) {
    const Output rank = RankTensor(scope, values[0]);
    std::optional<Tensor> rank_value;
    if (rank) rank_value = ConstantValue(rank);
    if (!rank_value) {
      return InvalidArgument(
          "Can only compute IndexedSlices gradient with negative concat_dim "
          "when first value rank is statically-known.");
    }
    at += IndexAt(*rank_value, 0);
  }
  std::vector<Output> shapes;
  for (const Output& value : values) {
    shapes.push_back(ShapeTensor(scope, value));
  }
  if (!scope.ok()) return scope.status();
  std::vector<Grad> grads = at == 0 ? RowsOfEach(scope, dy[0], axis, shapes)
                                    : ColumnsOfEach(scope, dy[0], axis, shapes);
  if (!scope.ok()) return scope.status();
  return WithAxis(args, std::move(grads));
}

}  // namespace concat_ops
}  // namespace

SLUICE_OP(Concat)
    .Input("concat_dim: int32")
    .Input("values: N * T")
    .Output("output: T")
    .Attr("N: int >= 2")
    .Attr("T: type")
    .Shape(concat_ops::ConcatShape)
    .Gradient(concat_ops::ConcatGradient)
    .SlicesGradient(concat_ops::ConcatSlicesGradient);

SLUICE_OP(ConcatV2)
    .Input("values: N * T")
    .Input("axis: Tidx")
    .Output("output: T")
    .Attr("N: int >= 2")
    .Attr("T: type")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Shape(concat_ops::ConcatShape)
    .Gradient(concat_ops::ConcatGradient)
    .SlicesGradient(concat_ops::ConcatSlicesGradient);

SLUICE_OP(ConcatOffset)
    .Input("concat_dim: int32")
    .Input("shape: N * int32")
    .Output("offset: N * int32")
    .Attr("N: int >= 2")
    .Shape(concat_ops::OffsetShape)
    .NotDifferentiable();

SLUICE_KERNEL(Concat, kCpu).Function(concat_ops::ConcatKernel);
SLUICE_KERNEL(ConcatV2, kCpu).Function(concat_ops::ConcatKernel);
SLUICE_KERNEL(ConcatOffset, kCpu).Function(concat_ops::OffsetKernel);

}  // namespace sluice
