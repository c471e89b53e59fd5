// Gather and GatherV2: rows of a tensor by their indices.
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/gather_rows.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace gather_ops {

absl::Status GatherShape(ShapeContext& c) {
  const PartialShape& params = c.input(0);
  SLUICE_RETURN_IF_ERROR(CheckRankAtLeast(params, 1));
  if (params.known_rank()) {
    c.set_output(0, JoinShapes(c.input(1), SubShape(params, 1, params.rank())));
  }
  return absl::OkStatus();
}

absl::Status GatherV2Shape(ShapeContext& c) {
  const PartialShape& params = c.input(0);
  const PartialShape& indices = c.input(1);
  SLUICE_RETURN_IF_ERROR(c.WithRank(2, 0).status());
  SLUICE_RETURN_IF_ERROR(CheckRankAtLeast(params, 1));
  int64_t batch_dims = c.attr<int64_t>("batch_dims");
  const std::optional<int64_t> axis = KnownScalar(c, 2);
  if (axis) SLUICE_RETURN_IF_ERROR(CheckHasAxis(params, *axis));
  if (batch_dims > 0) {
    SLUICE_RETURN_IF_ERROR(CheckHasAxis(params, batch_dims));
  }
  if (!params.known_rank() || !indices.known_rank()) return shapes::Unknown(c);
  const int rank = params.rank() + indices.rank() - 1;
  if (batch_dims < 0) batch_dims += indices.rank();
  if (batch_dims < 0 || batch_dims > indices.rank()) return shapes::Unknown(c);
  if (!axis) {
    c.set_output(
        0, PartialShape::UnknownOfRank(rank - static_cast<int>(batch_dims)));
    return absl::OkStatus();
  }
  const int at = AxisFromFront(*axis, params.rank());
  const PartialShape outer = SubShape(params, 0, at);
  const PartialShape middle =
      SubShape(indices, static_cast<int>(batch_dims), indices.rank());
  const PartialShape inner = SubShape(params, at + 1, params.rank());
  c.set_output(0, JoinShapes(JoinShapes(outer, middle), inner));
  return absl::OkStatus();
}

absl::Status BadIndex(const Tensor& indices, int64_t bad, int64_t limit) {
  const int64_t value = IndexAt(indices, bad);
  // The position as in indices[1,0]; nothing for a scalar.
  std::string position;
  for (int d = indices.rank() - 1; d >= 0; --d) {
    position = StrCat(d == 0 ? "[" : ",", bad % indices.dim(d), position);
    bad /= indices.dim(d);
  }
  if (!position.empty()) position += "]";
  return InvalidArgument("indices", position, " = ", value, " is not in [0, ",
                         limit, ")");
}

// Shapes in words: params [batch, outer, rows, inner], indices [batch, count],
// output [batch, outer, count, inner].
struct Sizes {
  int64_t batch, outer, rows, inner, count;
};

template <typename Index>
absl::Status GatherInto(KernelContext& ctx, const Sizes& sizes,
                        Tensor& output) {
  const Tensor& params = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  const Index* at = indices.data<Index>().data();
  const int64_t bad = FindIndexOutside(at, indices.size(), sizes.rows);
  if (bad >= 0) return BadIndex(indices, bad, sizes.rows);
  if (output.size() == 0) return absl::OkStatus();
  const Mover mover = MoverOf(params.dtype());
  const int64_t row_bytes = sizes.inner * mover.size;
  const bool objects = ElementSize(params.dtype()) == 0;
  const char* from = ElementAt(params, mover, 0);
  char* to = ElementAt(output, mover, 0);
  for (int64_t b = 0; b < sizes.batch; ++b) {
    const Index* batch_at = at + b * sizes.count;
    for (int64_t o = 0; o < sizes.outer; ++o) {
      const int64_t block = b * sizes.outer + o;
      const char* block_from = from + block * sizes.rows * row_bytes;
      char* block_to = to + block * sizes.count * row_bytes;
      ctx.ParallelFor(
          sizes.count,
          [&](int64_t begin, int64_t end) {
            char* out = block_to + begin * row_bytes;
            if (!objects) {
              return GatherRowBytes(block_from, row_bytes, batch_at + begin,
                                    end - begin, out);
            }
            for (int64_t i = begin; i < end; ++i, out += row_bytes) {
              mover.run(out, mover.size, block_from + batch_at[i] * row_bytes,
                        mover.size, sizes.inner);
            }
          },
          // A row that is not in the cache costs a miss.
          20 + 0.1 * row_bytes);
    }
  }
  return absl::OkStatus();
}

absl::Status GatherKernel(KernelContext& ctx) {
  const Tensor& params = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  if (params.rank() < 1) {
    return InvalidArgument("params must be at least 1 dimensional");
  }
  int at = 0;
  int64_t batch_dims = 0;
  if (ctx.num_inputs() == 3) {
    if (ctx.input(2).rank() != 0) {
      return InvalidArgument("axis must be scalar");
    }
    const int64_t axis = IndexAt(ctx.input(2), 0);
    at = AxisFromFront(axis, params.rank());
    if (at < 0) {
      return InvalidArgument("Expected axis in the range [", -params.rank(),
                             ", ", params.rank(), "), but got ", axis);
    }
    batch_dims = ctx.attr<int64_t>("batch_dims");
  }
  if (batch_dims != 0) {
    const int rank = indices.rank();
    if (batch_dims < -rank || batch_dims >= rank) {
      return InvalidArgument("Expected batch_dims in the range [", -rank, ", ",
                             rank, "), but got ", batch_dims);
    }
    if (batch_dims < 0) batch_dims += rank;
    if (batch_dims >= params.rank()) {
      return InvalidArgument("batch_dims (", batch_dims,
                             ") must be less than rank(params) (",
                             params.rank(), ").");
    }
    if (at < batch_dims) {
      return InvalidArgument("batch_dims (", batch_dims,
                             ") must be less than or equal to axis (", at,
                             ").");
    }
    for (int i = 0; i < batch_dims; ++i) {
      if (params.dim(i) != indices.dim(i)) {
        return InvalidArgument("params.shape[", i, "]: ", params.dim(i),
                               " should be equal to indices.shape[", i,
                               "]: ", indices.dim(i));
      }
    }
  }
  const int batch = static_cast<int>(batch_dims);
  const Sizes sizes = {SizeBetween(params.shape(), 0, batch),
                       SizeBetween(params.shape(), batch, at), params.dim(at),
                       SizeBetween(params.shape(), at + 1, params.rank()),
                       SizeBetween(indices.shape(), batch, indices.rank())};
  IndexVector dims;
  const auto add = [&](const Shape& shape, int begin, int end) {
    for (int i = begin; i < end; ++i) dims.push_back(shape.dim(i));
  };
  add(params.shape(), 0, at);
  add(indices.shape(), batch, indices.rank());
  add(params.shape(), at + 1, params.rank());
  SLUICE_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::Create(std::span<const int64_t>(dims.data(), dims.size())));
  SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, shape));
  return indices.dtype() == DType::kInt64
             ? GatherInto<int64_t>(ctx, sizes, output)
             : GatherInto<int32_t>(ctx, sizes, output);
}

// The shape of params as int32, where params is.
Output ParamsShape(Scope& scope, Output params) {
  const Scope there = scope.Colocate(params.node);
  return there.Add("Cast", {ShapeTensor(there, params, DType::kInt64)},
                   {{"DstT", DType::kInt32}});
}

// For axis 0: the rows of dy belong to the rows that were read.
Grad RowSlices(Scope& scope, const Node& op, Output dy, Output params_shape,
               Output count) {
  const Output rest = SliceVector(scope, params_shape, 1, {});
  const Output shape = ConcatAt(scope, {count, rest}, 0);
  const Output values = scope.Add("Reshape", {dy, shape});
  const Output indices = scope.Add("Reshape", {op.input(1), count});
  return Grad::Slices(values, indices, params_shape);
}

Grads GatherGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output params_shape = ParamsShape(scope, op.input(0));
  const Output count = ExpandFront(scope, SizeTensor(scope, op.input(1)));
  return std::vector<Grad>{RowSlices(scope, op, dy[0], params_shape, count),
                           Grad()};
}

Output IntRange(Scope& scope, int32_t start, int32_t limit) {
  const Scope inner = scope.NameScope("range");
  const Output first = inner.Named("start").Scalar(start);
  const Output end = inner.Named("limit").Scalar(limit);
  return AddAs(inner, "Range",
               {first, end, inner.Named("delta").Scalar<int32_t>(1)});
}

// indices + (which batch it is) * (rows of one batch), for each batch
// dimension.
Output BatchIndices(Scope& scope, Output params_shape, Output indices,
                    int batch_dims) {
  const DType type = BaseType(TypeOf(indices));
  const int rank = ShapeOf(indices).rank();
  const auto cast = [&](Output x) {
    return type == DType::kInt32 ? x : scope.Add("Cast", {x}, {{"DstT", type}});
  };
  const Output shape = cast(params_shape);
  Output product = scope.Named("ones").Const(ScalarOfType(type, 1));
  for (int dim = batch_dims; dim > 0; --dim) {
    const Output size = ElementOf(scope, shape, dim - 1);
    product =
        scope.Named("mul").Add("Mul", {product, ElementOf(scope, shape, dim)});
    const Output zero = scope.Named("zeros").Const(ScalarOfType(type, 0));
    const Output one = scope.Named("ones").Const(ScalarOfType(type, 1));
    const Output numbers = scope.Named("range").Add("Range", {zero, size, one});
    const Output offsets = scope.Named("mul").Add("Mul", {numbers, product});
    const Scope stack = scope.NameScope("stack");
    std::vector<Output> dims;
    for (int i = 0; i < rank; ++i) {
      if (i == dim - 1) {
        dims.push_back(size);
      } else {
        dims.push_back(stack.Named(StrCat(i)).Const(ScalarOfType(type, 1)));
      }
    }
    const Output column = scope.Add(
        "Reshape", {offsets, AddAs(stack, "Pack", dims, {{"axis", 0}})});
    indices = scope.Named("add").Add("AddV2", {indices, column});
  }
  return indices;
}

// Sums the rows of `values`, whose gathered dimension comes right after the
// batch dimensions.
Output SumOfRows(Scope& scope, Output params_shape, Output values,
                 Output indices, int batch_dims, Output rows) {
  const Output count = ExpandFront(scope, SizeTensor(scope, indices));
  Output batch_shape, flat_shape;
  if (batch_dims > 0) {
    const Output shape = ShapeTensor(scope, values);
    batch_shape = SliceVector(scope, shape, {}, batch_dims);
    const Output inner =
        SliceVector(scope, SliceVector(scope, shape, batch_dims, {}), 1, {});
    const Scope prod = scope.NameScope("Prod");
    const Output batches = AddAs(
        prod, "Prod", {batch_shape, prod.Named("reduction_indices").Ints({0})});
    const Scope concat = scope.NameScope("concat");
    const Output any = concat.Named("values_0").Ints({-1});
    flat_shape = AddAs(concat, "ConcatV2",
                       {any, inner, concat.Named("axis").Scalar<int32_t>(0)});
    rows = scope.Named("mul").Add("Mul", {rows, batches});
    indices = BatchIndices(scope, params_shape, indices, batch_dims);
    values = scope.Add("Reshape", {values, flat_shape});
  }
  indices = scope.Add("Reshape", {indices, count});
  Output sum = scope.Add("UnsortedSegmentSum", {values, indices, rows});
  if (batch_dims > 0) {
    const Output shape = ConcatAt(scope, {batch_shape, flat_shape}, 0);
    sum = scope.Add("Reshape", {sum, shape});
  }
  return sum;
}

// The gathered dimension is brought to the front (behind the batch dimensions),
// summed there, and brought back.
Output DenseGradient(Scope& scope, const Node& op, Output dy,
                     Output params_shape, int batch_dims) {
  const Output axis = op.input(2);
  const Output outer = SliceVector(scope, params_shape, {}, axis);
  const Output inner =
      SliceVector(scope, SliceVector(scope, params_shape, axis, {}), 1, {});
  const Scope concat = scope.NameScope("concat");
  const Output any = concat.Named("values_1").Ints({-1});
  const Output values_shape =
      AddAs(concat, "ConcatV2",
            {outer, any, inner, concat.Named("axis").Scalar<int32_t>(0)});
  const Output rank = SizeTensor(scope, values_shape);
  const Output at = SizeTensor(scope, outer);
  const Output batch_axes = IntRange(scope, 0, batch_dims);
  const Output outer_axes = RangeOf(scope, batch_dims, at, 1);
  const Output after = AddInt(scope, at, 1);
  const Scope range = scope.NameScope("range");
  const Output inner_axes = AddAs(
      range, "Range", {after, rank, range.Named("delta").Scalar<int32_t>(1)});
  const Output values = scope.Add("Reshape", {dy, values_shape});
  const Scope there = scope.NameScope("concat");
  const Output at_vector =
      there.Named("values_1").Add("Pack", {at}, {{"axis", 0}});
  const Output perm = AddAs(there, "ConcatV2",
                            {batch_axes, at_vector, outer_axes, inner_axes,
                             there.Named("axis").Scalar<int32_t>(0)});
  const Output moved =
      scope.Named("transpose").Add("Transpose", {values, perm});
  const Output rows = ElementOf(scope, params_shape, axis);
  const Output sum =
      SumOfRows(scope, params_shape, moved, op.input(1), batch_dims, rows);
  const Output shifted = AddInt(scope, outer_axes, 1);
  const Scope back = scope.NameScope("concat");
  const Output batch_vector = back.Named("values_2").Ints({batch_dims});
  const Output inverse = AddAs(back, "ConcatV2",
                               {batch_axes, shifted, batch_vector, inner_axes,
                                back.Named("axis").Scalar<int32_t>(0)});
  return scope.Named("transpose").Add("Transpose", {sum, inverse});
}

Grads GatherV2Gradient(Scope& scope, const Node& op,
                       std::span<const Output> dy) {
  const Output params_shape = ParamsShape(scope, op.input(0));
  const Output count = ExpandFront(scope, SizeTensor(scope, op.input(1)));
  int64_t batch_dims = op.attr<int64_t>("batch_dims");
  const PartialShape& indices = ShapeOf(op.input(1));
  if (batch_dims != 0 && !indices.known_rank()) {
    return InvalidArgument("The gradient of ", op.name(),
                           " needs to know the rank of its indices");
  }
  if (batch_dims < 0) batch_dims += indices.rank();
  std::optional<Tensor> axis = ConstantValue(op.input(2));
  Grad grad;
  if (axis && axis->size() == 1 && IndexAt(*axis, 0) == 0) {
    grad = RowSlices(scope, op, dy[0], params_shape, count);
  } else {
    grad = DenseGradient(scope, op, dy[0], params_shape,
                         static_cast<int>(batch_dims));
  }
  if (!scope.ok()) return scope.status();
  return std::vector<Grad>{grad, Grad(), Grad()};
}

}  // namespace gather_ops
}  // namespace

SLUICE_OP(Gather)
    .Input("params: Tparams")
    .Input("indices: Tindices")
    .Output("output: Tparams")
    .Attr("validate_indices: bool = true")
    .Attr("Tparams: type")
    .Attr("Tindices: {int32, int64}")
    .Shape(gather_ops::GatherShape)
    .Gradient(gather_ops::GatherGradient);

SLUICE_OP(GatherV2)
    .Input("params: Tparams")
    .Input("indices: Tindices")
    .Input("axis: Taxis")
    .Output("output: Tparams")
    .Attr("batch_dims: int = 0")
    .Attr("Tparams: type")
    .Attr("Tindices: {int32, int64}")
    .Attr("Taxis: {int32, int64}")
    .Shape(gather_ops::GatherV2Shape)
    .Gradient(gather_ops::GatherV2Gradient);

SLUICE_KERNEL(Gather, kCpu).Function(gather_ops::GatherKernel);
SLUICE_KERNEL(GatherV2, kCpu).Function(gather_ops::GatherKernel);

}  // namespace sluice
