// Small rules that shape functions share, with TensorFlow's messages.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/tensor/shape.h"

namespace sluice {

// What both say; an error if they contradict each other.
absl::StatusOr<PartialShape> MergeShapes(const PartialShape& a,
                                         const PartialShape& b);
absl::StatusOr<int64_t> MergeDims(int64_t a, int64_t b);

absl::StatusOr<PartialShape> WithRank(const PartialShape& shape, int rank);
absl::Status CheckRankAtLeast(const PartialShape& shape, int rank);
absl::Status CheckRankAtMost(const PartialShape& shape, int rank);
// The shape must have a dimension `axis`, which may be counted from the back.
absl::Status CheckHasAxis(const PartialShape& shape, int64_t axis);
// `dim` must be `value` or unknown.
absl::Status CheckDim(int64_t dim, int64_t value);

// Sizes, -1 if a part is unknown.
int64_t AddDims(int64_t a, int64_t b);
int64_t MultiplyDims(int64_t a, int64_t b);
absl::StatusOr<int64_t> SubtractDims(int64_t a, int64_t b);
absl::StatusOr<int64_t> DivideEvenly(int64_t dim, int64_t by);

// Dimensions [begin, end) of a shape of known rank.
PartialShape SubShape(const PartialShape& shape, int begin, int end);
PartialShape JoinShapes(const PartialShape& a, const PartialShape& b);

// An error unless input i is or could be a scalar.
absl::Status CheckScalarInput(const ShapeContext& c, int input);
// Scalar input i if its value is known.
std::optional<int64_t> KnownScalar(const ShapeContext& c, int input);

// Input i, a vector of sizes, as a shape.
absl::StatusOr<PartialShape> ShapeFromInput(const ShapeContext& c, int input);

}  // namespace sluice
