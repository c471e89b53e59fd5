// What x[begin:end:stride, ..., newaxis, i] means for a given x. Shared by the
// ops that read, write and differentiate such slices.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "sluice/graph/attr_value.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/tensor/shape.h"

namespace sluice {

// The mask attributes; bit i belongs to entry i of the spec.
struct StridedSliceMasks {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t ellipsis = 0;
  int64_t new_axis = 0;
  int64_t shrink_axis = 0;

  static StridedSliceMasks Of(const AttrMap& attrs);
};

// The entries as they were given. While a graph is built begin and end may be
// unknown.
struct StridedSliceSpec {
  std::optional<IndexVector> begin;
  std::optional<IndexVector> end;
  IndexVector strides;
  StridedSliceMasks masks;

  // Of a kernel's inputs; checks their shapes.
  static absl::StatusOr<StridedSliceSpec> Of(const Tensor& begin,
                                             const Tensor& end,
                                             const Tensor& strides,
                                             const StridedSliceMasks& masks);
};

struct StridedSlicePlan {
  // One entry per dimension of x: element k of the slice is begin + k * stride.
  IndexVector begin;
  IndexVector stride;
  IndexVector sizes;
  // The shape of the slice after dimensions were shrunk and added. -1 if
  // unknown.
  IndexVector shape;
  // Every dimension is taken whole; or every one but the first, of which a
  // range is taken.
  bool whole = true;
  bool rows = true;
};

// `dims` are the sizes of x, -1 for unknown ones.
absl::StatusOr<StridedSlicePlan> PlanStridedSlice(std::span<const int64_t> dims,
                                                  const StridedSliceSpec& spec);

}  // namespace sluice
