#include "sluice/ops/array/shape_rules.h"

#include "sluice/ops/array/index_values.h"

namespace sluice {
namespace {

constexpr int64_t kUnknown = PartialShape::kUnknownDim;

}  // namespace

absl::StatusOr<PartialShape> MergeShapes(const PartialShape& a,
                                         const PartialShape& b) {
  if (a.known_rank() && b.known_rank()) {
    if (a.rank() != b.rank()) {
      return InvalidArgument("Shapes must be equal rank, but are ", a.rank(),
                             " and ", b.rank());
    }
    for (int i = 0; i < a.rank(); ++i) {
      if (a.dim(i) >= 0 && b.dim(i) >= 0 && a.dim(i) != b.dim(i)) {
        return InvalidArgument("Dimension ", i,
                               " in both shapes must be equal, but are ",
                               a.dim(i), " and ", b.dim(i), ". Shapes are ",
                               a.DebugString(), " and ", b.DebugString(), ".");
      }
    }
  }
  return a.MergeWith(b);
}

absl::StatusOr<int64_t> MergeDims(int64_t a, int64_t b) {
  if (a >= 0 && b >= 0 && a != b) {
    return InvalidArgument("Dimensions must be equal, but are ", a, " and ", b);
  }
  return a >= 0 ? a : b;
}

absl::StatusOr<PartialShape> WithRank(const PartialShape& shape, int rank) {
  if (!shape.known_rank()) return PartialShape::UnknownOfRank(rank);
  if (shape.rank() == rank) return shape;
  return InvalidArgument("Shape must be rank ", rank, " but is rank ",
                         shape.rank());
}

absl::Status CheckRankAtLeast(const PartialShape& shape, int rank) {
  if (!shape.known_rank() || shape.rank() >= rank) return absl::OkStatus();
  return InvalidArgument("Shape must be at least rank ", rank, " but is rank ",
                         shape.rank());
}

absl::Status CheckRankAtMost(const PartialShape& shape, int rank) {
  if (!shape.known_rank() || shape.rank() <= rank) return absl::OkStatus();
  return InvalidArgument("Shape must be at most rank ", rank, " but is rank ",
                         shape.rank());
}

absl::Status CheckHasAxis(const PartialShape& shape, int64_t axis) {
  if (axis < -kMaxRank || axis >= kMaxRank) {
    return InvalidArgument("No shape has a dimension ", axis);
  }
  return CheckRankAtLeast(shape, static_cast<int>(axis < 0 ? -axis : axis + 1));
}

absl::Status CheckDim(int64_t dim, int64_t value) {
  if (dim < 0 || dim == value) return absl::OkStatus();
  return InvalidArgument("Dimension must be ", value, " but is ", dim);
}

int64_t AddDims(int64_t a, int64_t b) {
  int64_t sum;
  if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum)) return kUnknown;
  return sum;
}

int64_t MultiplyDims(int64_t a, int64_t b) {
  int64_t product;
  if (a == 0 || b == 0) return 0;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product)) {
    return kUnknown;
  }
  return product;
}

absl::StatusOr<int64_t> SubtractDims(int64_t a, int64_t b) {
  if (b == 0) return a;
  if (a < 0 || b < 0) return kUnknown;
  if (a < b) {
    return InvalidArgument("Negative dimension size caused by subtracting ", b,
                           " from ", a);
  }
  return a - b;
}

absl::StatusOr<int64_t> DivideEvenly(int64_t dim, int64_t by) {
  if (by == 1) return dim;
  if (dim < 0 || by < 0) return kUnknown;
  if (by == 0 || dim % by != 0) {
    return InvalidArgument("Dimension size must be evenly divisible by ", by,
                           " but is ", dim);
  }
  return dim / by;
}

PartialShape SubShape(const PartialShape& shape, int begin, int end) {
  return PartialShape(shape.dims().subspan(begin, end - begin));
}

PartialShape JoinShapes(const PartialShape& a, const PartialShape& b) {
  if (!a.known_rank() || !b.known_rank()) return PartialShape();
  PartialShape joined = a;
  for (int64_t dim : b.dims()) joined.AddDim(dim);
  return joined;
}

absl::Status CheckScalarInput(const ShapeContext& c, int input) {
  const PartialShape& shape = c.input(input);
  if (!shape.known_rank() || shape.rank() == 0) return absl::OkStatus();
  return InvalidArgument("Input must be scalar but has rank ", shape.rank());
}

std::optional<int64_t> KnownScalar(const ShapeContext& c, int input) {
  const std::optional<Tensor> value = c.input_value(input);
  if (!value || value->size() != 1) return std::nullopt;
  return IndexAt(*value, 0);
}

absl::StatusOr<PartialShape> ShapeFromInput(const ShapeContext& c, int input) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(input, 1).status());
  return c.input_as_shape(input);
}

}  // namespace sluice
