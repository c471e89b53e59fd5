// SparseFillEmptyRows: gives every row of a sparse matrix at least one element.
// What safe_embedding_lookup_sparse is made of.

#include <vector>

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/scope.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace sparse_fill {

absl::Status FillShape(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(0, 2));
  SLUICE_ASSIGN_OR_RETURN(const PartialShape values, c.WithRank(1, 1));
  SLUICE_ASSIGN_OR_RETURN(const PartialShape shape, c.WithRank(2, 1));
  SLUICE_RETURN_IF_ERROR(c.WithRank(3, 0).status());
  SLUICE_ASSIGN_OR_RETURN(const int64_t n,
                          MergeDims(indices.dim(0), values.dim(0)));
  SLUICE_ASSIGN_OR_RETURN(const int64_t rank,
                          MergeDims(indices.dim(1), shape.dim(0)));
  c.set_output(0, PartialShape({-1, rank}));
  c.set_output(1, PartialShape({-1}));
  c.set_output(2, PartialShape({-1}));
  c.set_output(3, PartialShape({n}));
  return absl::OkStatus();
}

absl::Status Check(const Tensor& indices, const Tensor& values,
                   const Tensor& shape, const Tensor& value) {
  if (shape.rank() != 1 || shape.size() == 0) {
    return InvalidArgument(
        "dense_shape must be a vector of 1 element or more, "
        "saw: ",
        shape.shape().DebugString());
  }
  if (indices.rank() != 2 || indices.dim(1) != shape.dim(0)) {
    return InvalidArgument(
        "indices must be a matrix with a column for each dimension, saw: ",
        indices.shape().DebugString());
  }
  if (values.rank() != 1 || values.dim(0) != indices.dim(0)) {
    return InvalidArgument(
        "values must be a vector with an element for each "
        "row of indices, saw: ",
        values.shape().DebugString());
  }
  if (value.rank() != 0) {
    return InvalidArgument("default_value must be a scalar, saw: ",
                           value.shape().DebugString());
  }
  return absl::OkStatus();
}

// Elements before each row of the result; the last entry is their number.
absl::StatusOr<std::vector<int64_t>> RowStarts(const Tensor& indices,
                                               int64_t rows, Tensor& empty) {
  const auto index = indices.data<int64_t>();
  const int64_t rank = indices.dim(1);
  std::vector<int64_t> starts(rows + 1, 0);
  for (int64_t i = 0; i < indices.dim(0); ++i) {
    const int64_t row = index[i * rank];
    if (row < 0 || row >= rows) {
      return InvalidArgument("indices(", i, ", 0) is invalid: ", row,
                             " >= ", rows);
    }
    ++starts[row + 1];
  }
  for (int64_t row = 0; row < rows; ++row) {
    const bool none = starts[row + 1] == 0;
    empty.mutable_data<bool>()[row] = none;
    starts[row + 1] += starts[row] + (none ? 1 : 0);
  }
  return starts;
}

absl::Status Fill(KernelContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& values = ctx.input(1);
  const Tensor& shape = ctx.input(2);
  SLUICE_RETURN_IF_ERROR(Check(indices, values, shape, ctx.input(3)));
  const int64_t rows = shape.data<int64_t>()[0];
  const int64_t n = indices.dim(0), rank = indices.dim(1);
  if (rows < 0 || (rows == 0 && n > 0)) {
    return InvalidArgument("Received SparseTensor with dense_shape[0] = ", rows,
                           " but indices.shape[0] = ", n);
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & empty, ctx.Output(2, {rows}));
  SLUICE_ASSIGN_OR_RETURN(std::vector<int64_t> next,
                          RowStarts(indices, rows, empty));
  const int64_t total = next[rows];
  SLUICE_ASSIGN_OR_RETURN(Tensor & out_indices, ctx.Output(0, {total, rank}));
  SLUICE_ASSIGN_OR_RETURN(Tensor & out_values, ctx.Output(1, {total}));
  SLUICE_ASSIGN_OR_RETURN(Tensor & map, ctx.Output(3, {n}));
  FillWithZeros(ctx, out_indices);
  FillWithZeros(ctx, out_values);
  const Mover mover = MoverOf(values.dtype());
  const auto put = [&](int64_t at, const Tensor& from, int64_t i) {
    mover.run(ElementAt(out_values, mover, at), mover.size,
              ElementAt(from, mover, i), mover.size, 1);
  };
  const auto in = indices.data<int64_t>();
  const auto out = out_indices.mutable_data<int64_t>();
  for (int64_t row = 0; row < rows; ++row) {
    if (!empty.data<bool>()[row]) continue;
    out[next[row] * rank] = row;
    put(next[row], ctx.input(3), 0);
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = next[in[i * rank]]++;
    for (int64_t d = 0; d < rank; ++d) out[at * rank + d] = in[i * rank + d];
    put(at, values, i);
    map.mutable_data<int64_t>()[i] = at;
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status FillGrad(KernelContext& ctx) {
  const Tensor& map = ctx.input(0);
  const Tensor& grad = ctx.input(1);
  if (map.rank() != 1 || grad.rank() != 1) {
    return InvalidArgument(
        "reverse_index_map and grad_values must be vectors, "
        "saw: ",
        map.shape().DebugString(), " and ", grad.shape().DebugString());
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & d_values, ctx.Output(0, map.shape()));
  SLUICE_ASSIGN_OR_RETURN(Tensor & d_default, ctx.Output(1, {}));
  const auto g = grad.data<T>();
  std::vector<bool> given(grad.size(), false);
  for (int64_t i = 0; i < map.size(); ++i) {
    const int64_t at = map.data<int64_t>()[i];
    if (at < 0 || at >= grad.size()) {
      return InvalidArgument("Elements in reverse index must be in [0, ",
                             grad.size(), ") but got ", at);
    }
    d_values.mutable_data<T>()[i] = g[at];
    given[at] = true;
  }
  T sum = 0;
  for (int64_t i = 0; i < grad.size(); ++i) {
    if (!given[i]) sum += g[i];
  }
  d_default.mutable_data<T>()[0] = sum;
  return absl::OkStatus();
}

}  // namespace sparse_fill
}  // namespace

SLUICE_OP(SparseFillEmptyRows)
    .Input("indices: int64")
    .Input("values: T")
    .Input("dense_shape: int64")
    .Input("default_value: T")
    .Output("output_indices: int64")
    .Output("output_values: T")
    .Output("empty_row_indicator: bool")
    .Output("reverse_index_map: int64")
    .Attr("T: type")
    .Shape(sparse_fill::FillShape)
    .Gradient([](Scope& scope, const Node& op,
                 std::span<const Output> dy) -> Grads {
      const std::vector<Output> grads =
          scope.AddMulti("SparseFillEmptyRowsGrad", {op.output(3), dy[1]});
      if (grads.size() != 2) return scope.status();
      return std::vector<Grad>{Grad(), grads[0], Grad(), grads[1]};
    });

SLUICE_OP(SparseFillEmptyRowsGrad)
    .Input("reverse_index_map: int64")
    .Input("grad_values: T")
    .Output("d_values: T")
    .Output("d_default_value: T")
    .Attr("T: type")
    .Shape([](ShapeContext& c) -> absl::Status {
      SLUICE_ASSIGN_OR_RETURN(PartialShape map, c.WithRank(0, 1));
      SLUICE_RETURN_IF_ERROR(c.WithRank(1, 1).status());
      c.set_output(0, std::move(map));
      c.set_output(1, PartialShape::Scalar());
      return absl::OkStatus();
    });

SLUICE_KERNEL(SparseFillEmptyRows, kCpu).Function(sparse_fill::Fill);
SLUICE_KERNEL(SparseFillEmptyRowsGrad, kCpu)
    .ForTypes<RealTypes>("T", []<typename T>(KernelContext& ctx) {
      return sparse_fill::FillGrad<T>(ctx);
    });

}  // namespace sluice
