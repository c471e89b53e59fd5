// SparseTensorDenseMatMul: a sparse matrix times a dense one.

#include <algorithm>

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/math/python_math.h"

namespace sluice {
namespace {
namespace sparse_matmul {

absl::Status ShapeFunction(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(0, 2).status());
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  SLUICE_ASSIGN_OR_RETURN(PartialShape a, c.input_as_shape(2));
  if (!a.known_rank()) a = PartialShape({-1, -1});
  if (a.rank() != 2) {
    return InvalidArgument("Shape must be rank 2 but is rank ", a.rank());
  }
  SLUICE_ASSIGN_OR_RETURN(PartialShape b, c.WithRank(3, 2));
  if (!b.known_rank()) b = PartialShape({-1, -1});
  const bool adjoint_a = c.attr<bool>("adjoint_a");
  const bool adjoint_b = c.attr<bool>("adjoint_b");
  const int64_t inner_a = a.dim(adjoint_a ? 0 : 1);
  const int64_t inner_b = b.dim(adjoint_b ? 1 : 0);
  if (inner_a >= 0 && inner_b >= 0 && inner_a != inner_b) {
    return InvalidArgument("Dimensions must be equal, but are ", inner_a,
                           " and ", inner_b);
  }
  c.set_output(
      0, PartialShape({a.dim(adjoint_a ? 1 : 0), b.dim(adjoint_b ? 0 : 1)}));
  return absl::OkStatus();
}

// indices[:, column].
Output Column(const Scope& scope, Output indices, int32_t column) {
  const Scope inner = scope.NameScope("strided_slice");
  const Output begin = inner.Named("stack").Ints({0, column});
  const Output end = inner.Named("stack_1").Ints({0, column + 1});
  const Output strides = inner.Named("stack_2").Ints({1, 1});
  return AddAs(inner, "StridedSlice", {indices, begin, end, strides},
               {{"begin_mask", int64_t{1}},
                {"end_mask", int64_t{1}},
                {"shrink_axis_mask", int64_t{2}}});
}

// tf.transpose(x) of a matrix.
Output TransposeMatrix(const Scope& scope, Output x) {
  const Scope inner = scope.NameScope("transpose");
  if (x && ShapeOf(x).known_rank()) {
    return AddAs(inner, "Transpose", {x, inner.Named("perm").Ints({1, 0})});
  }
  const Output rank = RankTensor(inner, x);
  const Output last = python::Sub(inner, rank, 1);
  const Scope range = inner.NameScope("Range");
  const Output forward = AddAs(range, "Range",
                               {range.Named("start").Scalar<int32_t>(0), rank,
                                range.Named("delta").Scalar<int32_t>(1)});
  return AddAs(inner, "Transpose", {x, python::Sub(inner, last, forward)});
}

// tf.reduce_sum(x, axis=1).
Output SumRows(const Scope& scope, Output x) {
  const Scope inner = scope.NameScope("Sum");
  return AddAs(inner, "Sum",
               {x, inner.Named("reduction_indices").Scalar<int32_t>(1)});
}

// The values of the sparse matrix have a gradient, its indices and shape none.
Grads Gradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output indices = op.input(0), b = op.input(3);
  const bool adjoint_a = op.attr<bool>("adjoint_a");
  const bool adjoint_b = op.attr<bool>("adjoint_b");
  Output b_grad = scope.Add("SparseTensorDenseMatMul",
                            {indices, op.input(1), op.input(2), dy[0]},
                            {{"adjoint_a", !adjoint_a}});
  if (adjoint_b) b_grad = TransposeMatrix(scope, b_grad);
  const Output rows = Column(scope, indices, 0);
  const Output columns = Column(scope, indices, 1);
  const Output from_grad = GatherRows(scope, dy[0], adjoint_a ? columns : rows);
  const Output dense = adjoint_b ? TransposeMatrix(scope, b) : b;
  const Output from_b = GatherRows(scope, dense, adjoint_a ? rows : columns);
  const Output values_grad =
      SumRows(scope, python::Mul(scope, from_grad, from_b));
  return std::vector<Grad>{Grad(), values_grad, Grad(), b_grad};
}

absl::Status CheckInputs(const Tensor& indices, const Tensor& values,
                         const Tensor& shape, const Tensor& b) {
  if (b.rank() != 2) return InvalidArgument("Tensor 'b' is not a matrix");
  if (shape.rank() != 1) {
    return InvalidArgument("Tensor 'a_shape' is not a vector");
  }
  if (shape.size() != 2) {
    return InvalidArgument("Tensor 'a_shape' must have 2 elements");
  }
  if (values.rank() != 1) {
    return InvalidArgument("Tensor 'a_values' is not a vector");
  }
  if (indices.rank() != 2) {
    return InvalidArgument("Tensor 'a_indices' is not a matrix");
  }
  if (indices.dim(0) != values.size()) {
    return InvalidArgument(
        "Number of rows of a_indices does not match number of entries in "
        "a_values");
  }
  if (indices.dim(1) != 2) {
    return InvalidArgument(
        "Number of columns of a_indices does not match number of entries in "
        "a_shape");
  }
  return absl::OkStatus();
}

template <typename Index>
absl::Status CheckIndices(const Index* indices, int64_t count, bool adjoint_a,
                          int64_t rows, int64_t inner) {
  const int row_at = adjoint_a ? 1 : 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t m = indices[2 * i + row_at];
    const int64_t k = indices[2 * i + 1 - row_at];
    if (k < 0 || k >= inner) {
      return InvalidArgument("k (", k, ") from index[", i, ",", 1 - row_at,
                             "] out of bounds (>=", inner, ")");
    }
    if (m < 0 || m >= rows) {
      return InvalidArgument("m (", m, ") from index[", i, ",", row_at,
                             "] out of bounds (>=", rows, ")");
    }
  }
  return absl::OkStatus();
}

// Adds each entry's multiple of a row of b to a row of the product. Threads
// share the columns, so that none writes what another does.
template <typename T, typename Index>
void AddProducts(KernelContext& ctx, const Index* indices, const T* values,
                 int64_t count, const T* b, const Shape& b_shape,
                 bool adjoint_a, bool adjoint_b, Tensor& out) {
  const int64_t columns = out.dim(1);
  const int64_t b_columns = b_shape.dim(1);
  const int row_at = adjoint_a ? 1 : 0;
  T* data = out.mutable_data<T>().data();
  ctx.ParallelFor(
      columns,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = 0; i < count; ++i) {
          const int64_t k = indices[2 * i + 1 - row_at];
          T* to = data + indices[2 * i + row_at] * columns;
          const T value = values[i];
          const T* from = adjoint_b ? b + k : b + k * b_columns;
          const int64_t step = adjoint_b ? b_columns : 1;
          for (int64_t n = begin; n < end; ++n) to[n] += value * from[n * step];
        }
      },
      static_cast<double>(count));
}

template <typename T, typename Index>
absl::Status SparseTimesDense(KernelContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& values = ctx.input(1);
  const Tensor& b = ctx.input(3);
  SLUICE_RETURN_IF_ERROR(CheckInputs(indices, values, ctx.input(2), b));
  const bool adjoint_a = ctx.attr<bool>("adjoint_a");
  const bool adjoint_b = ctx.attr<bool>("adjoint_b");
  const auto a_shape = ctx.input(2).data<int64_t>();
  const int64_t rows = a_shape[adjoint_a ? 1 : 0];
  const int64_t inner = a_shape[adjoint_a ? 0 : 1];
  if (inner != b.dim(adjoint_b ? 1 : 0)) {
    return InvalidArgument(
        "Cannot multiply A and B because inner dimension does not match: ",
        inner, " vs. ", b.dim(adjoint_b ? 1 : 0),
        ".  Did you forget a transpose?  Dimensions of A: [", a_shape[0], ", ",
        a_shape[1], ").  Dimensions of B: ", b.shape().DebugString());
  }
  SLUICE_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::Create(std::vector<int64_t>{rows, b.dim(adjoint_b ? 0 : 1)}));
  const Index* at = indices.data<Index>().data();
  SLUICE_RETURN_IF_ERROR(
      CheckIndices(at, values.size(), adjoint_a, rows, inner));
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, shape));
  std::fill_n(out.mutable_data<T>().data(), out.size(), T(0));
  AddProducts(ctx, at, values.data<T>().data(), values.size(),
              b.data<T>().data(), b.shape(), adjoint_a, adjoint_b, out);
  return absl::OkStatus();
}

}  // namespace sparse_matmul
}  // namespace

SLUICE_OP(SparseTensorDenseMatMul)
    .Input("a_indices: Tindices")
    .Input("a_values: T")
    .Input("a_shape: int64")
    .Input("b: T")
    .Output("product: T")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64} = DT_INT64")
    .Attr("adjoint_a: bool = false")
    .Attr("adjoint_b: bool = false")
    .Shape(sparse_matmul::ShapeFunction)
    .Gradient(sparse_matmul::Gradient);
SLUICE_KERNEL(SparseTensorDenseMatMul, kCpu)
    .ForTypePairs<TypeList<float, double, int32_t>, IndexTypes>(
        "T", "Tindices", []<typename T, typename Index>(KernelContext& ctx) {
          return sparse_matmul::SparseTimesDense<T, Index>(ctx);
        });

}  // namespace sluice
