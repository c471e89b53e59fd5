// SparseToDense: values at indices, a default elsewhere. SparseReorder: indices
// in row-major order.

#include <algorithm>
#include <numeric>

#include "absl/strings/str_join.h"
#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/scope.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/sparse/sparse_parts.h"
#include "sluice/ops/state/elements.h"

namespace sluice {
namespace {
namespace sparse_to_dense {

// The rows of an index matrix; a vector is one column, a scalar one index.
class IndexRows {
 public:
  explicit IndexRows(const Tensor& indices)
      : indices_(indices),
        rows_(indices.rank() == 0 ? 1 : indices.dim(0)),
        rank_(indices.rank() < 2 ? 1 : indices.dim(1)) {}
  int64_t rows() const { return rows_; }
  int64_t rank() const { return rank_; }
  int64_t at(int64_t row, int64_t d) const { return indices_[row * rank_ + d]; }
  std::string Text(int64_t row) const {
    std::vector<int64_t> index;
    for (int64_t d = 0; d < rank_; ++d) index.push_back(at(row, d));
    return StrCat("[", absl::StrJoin(index, ","), "]");
  }

 private:
  const IndexInput indices_;
  const int64_t rows_;
  const int64_t rank_;
};

absl::StatusOr<Shape> OutputShape(const Tensor& sizes) {
  const IndexInput input(sizes);
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < input.size(); ++i) dims.push_back(input[i]);
  return Shape::Create(dims);
}

// Where the value of `row` goes; an error if that is outside.
absl::StatusOr<int64_t> Position(const IndexRows& indices, int64_t row,
                                 const Shape& shape) {
  int64_t position = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t index = indices.at(row, d);
    if (index < 0 || index >= shape.dim(d)) {
      return InvalidArgument("indices[", row, "] = ", indices.Text(row),
                             " is out of bounds: need 0 <= index < ",
                             shape.DebugString());
    }
    position = position * shape.dim(d) + index;
  }
  return position;
}

absl::Status ToDense(KernelContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& sizes = ctx.input(1);
  const Tensor& values = ctx.input(2);
  const Tensor& missing = ctx.input(3);
  if (indices.rank() > 2) {
    return InvalidArgument(
        "sparse_indices should be a scalar, vector, or matrix, got shape ",
        indices.shape().DebugString());
  }
  if (sizes.rank() != 1) {
    return InvalidArgument("output_shape should be a vector, got shape ",
                           sizes.shape().DebugString());
  }
  const IndexRows rows(indices);
  if (rows.rank() != sizes.size()) {
    return InvalidArgument("output_shape has incorrect number of elements: ",
                           sizes.size(), " should be: ", rows.rank());
  }
  if (values.rank() != 0 &&
      (values.rank() != 1 || values.size() != rows.rows())) {
    return InvalidArgument("sparse_values has incorrect shape ",
                           values.shape().DebugString(), ", should be [] or [",
                           rows.rows(), "]");
  }
  if (missing.rank() != 0) {
    return InvalidArgument("default_value should be a scalar.");
  }
  SLUICE_ASSIGN_OR_RETURN(const Shape shape, OutputShape(sizes));
  SLUICE_ASSIGN_OR_RETURN(Tensor & dense, ctx.Output(0, shape));
  FillElements(missing, &dense, 0, dense.size());
  const bool validate = ctx.attr<bool>("validate_indices");
  int64_t last = -1;
  // Rows without columns all mean the only element; the last one stays.
  const bool same = shape.rank() == 0 && !validate;
  for (int64_t row = same ? std::max<int64_t>(rows.rows() - 1, 0) : 0;
       row < rows.rows(); ++row) {
    SLUICE_ASSIGN_OR_RETURN(const int64_t at, Position(rows, row, shape));
    if (validate && at < last) {
      return InvalidArgument(
          "indices[", row, "] = ", rows.Text(row),
          " is out of order. Many sparse ops require sorted indices.\n"
          "    Use `tf.sparse.reorder` to create a correctly ordered copy."
          "\n\n");
    }
    if (validate && at == last) {
      return InvalidArgument("indices[", row, "] = ", rows.Text(row),
                             " is repeated");
    }
    last = at;
    CopyElements(values, values.rank() == 0 ? 0 : row, &dense, at, 1);
  }
  return absl::OkStatus();
}

absl::Status Reorder(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const SparseParts parts, SparseInput(ctx));
  const int64_t rank = parts.rank();
  const auto indices = parts.indices.data<int64_t>();
  std::vector<int64_t> order(parts.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
    return std::lexicographical_compare(
        indices.begin() + a * rank, indices.begin() + (a + 1) * rank,
        indices.begin() + b * rank, indices.begin() + (b + 1) * rank);
  });
  SLUICE_ASSIGN_OR_RETURN(Tensor & sorted,
                          ctx.Output(0, parts.indices.shape()));
  SLUICE_ASSIGN_OR_RETURN(Tensor & values, ctx.Output(1, parts.values.shape()));
  for (int64_t i = 0; i < parts.size(); ++i) {
    CopyElements(parts.indices, order[i] * rank, &sorted, i * rank, rank);
    CopyElements(parts.values, order[i], &values, i, 1);
  }
  return absl::OkStatus();
}

// The numbers of the entries are sorted as the values were; their inverse says
// where the gradient of each value went.
Grads ReorderGradient(Scope& scope, const Node& op,
                      std::span<const Output> dy) {
  const Output indices = op.input(0);
  const Output dense_shape = op.input(2);
  const Output count = ElementOf(scope, ShapeTensor(scope, indices), 0);
  const Output numbers = RangeOf(scope, 0, count, 1);
  // Python makes a sparse tensor of the numbers, and one of what is sorted.
  scope.NameScope("SparseTensor");
  Node* sorted =
      scope.AddNode("SparseReorder", {indices, numbers, dense_shape});
  if (sorted == nullptr) return scope.status();
  const auto shape = ConstantValueAsShape(dense_shape);
  if (shape && shape->FullyDefined()) {
    scope.NameScope("SparseTensor")
        .Named("dense_shape")
        .Const(Tensor::Of<int64_t>({shape->rank()}, shape->dims()));
  } else {
    scope.Add("Identity", {dense_shape});
  }
  const Output places = scope.Add("InvertPermutation", {sorted->output(1)});
  return std::vector<Grad>{Grad(), GatherRows(scope, dy[1], places), Grad()};
}

}  // namespace sparse_to_dense
}  // namespace

SLUICE_OP(SparseToDense)
    .Input("sparse_indices: Tindices")
    .Input("output_shape: Tindices")
    .Input("sparse_values: T")
    .Input("default_value: T")
    .Output("dense: T")
    .Attr("validate_indices: bool = true")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64}")
    .Shape([](ShapeContext& c) -> absl::Status {
      SLUICE_ASSIGN_OR_RETURN(PartialShape shape, c.input_as_shape(1));
      c.set_output(0, std::move(shape));
      return absl::OkStatus();
    })
    .Gradient([](Scope& scope, const Node& op,
                 std::span<const Output> dy) -> Grads {
      // Of the values, and of the default all that is left.
      const Output values = scope.Add("GatherNd", {dy[0], op.input(0)});
      const auto sum = [&](Output x) {
        const Scope inside = scope.NameScope("Sum");
        const Output rank = inside.Add("Rank", {x});
        const Output axes = inside.Add(
            "Range",
            {inside.Scalar<int32_t>(0), rank, inside.Scalar<int32_t>(1)});
        return inside.Add("Sum", {x, axes});
      };
      const Output rest = scope.Add("Sub", {sum(dy[0]), sum(values)});
      return std::vector<Grad>{Grad(), Grad(), values, rest};
    });

SLUICE_OP(SparseReorder)
    .Input("input_indices: int64")
    .Input("input_values: T")
    .Input("input_shape: int64")
    .Output("output_indices: int64")
    .Output("output_values: T")
    .Attr("T: type")
    .Shape([](ShapeContext& c) -> absl::Status {
      SLUICE_ASSIGN_OR_RETURN(PartialShape indices, c.WithRank(0, 2));
      SLUICE_ASSIGN_OR_RETURN(PartialShape values, c.WithRank(1, 1));
      SLUICE_RETURN_IF_ERROR(c.WithRank(2, 1).status());
      c.set_output(0, std::move(indices));
      c.set_output(1, std::move(values));
      return absl::OkStatus();
    })
    .Gradient(sparse_to_dense::ReorderGradient);

SLUICE_KERNEL(SparseToDense, kCpu).Function(sparse_to_dense::ToDense);
SLUICE_KERNEL(SparseReorder, kCpu).Function(sparse_to_dense::Reorder);

}  // namespace sluice
