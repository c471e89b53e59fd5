// Reading small integer tensors (axes, sizes, shapes) that may be int32 or
// int64.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "sluice/base/status.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

using IndexVector = absl::InlinedVector<int64_t, 8>;

inline int64_t IndexAt(const Tensor& tensor, int64_t i) {
  return tensor.dtype() == DType::kInt64 ? tensor.data<int64_t>()[i]
                                         : tensor.data<int32_t>()[i];
}

inline IndexVector IndexValues(const Tensor& tensor) {
  IndexVector values(tensor.size());
  for (int64_t i = 0; i < tensor.size(); ++i) values[i] = IndexAt(tensor, i);
  return values;
}

// Writes `value`; the caller has checked that it fits.
inline void SetIndexAt(Tensor& tensor, int64_t i, int64_t value) {
  if (tensor.dtype() == DType::kInt64) {
    tensor.mutable_data<int64_t>()[i] = value;
  } else {
    tensor.mutable_data<int32_t>()[i] = static_cast<int32_t>(value);
  }
}

// A vector of sizes as a shape.
inline absl::StatusOr<Shape> ShapeOfSizes(const Tensor& sizes) {
  const IndexVector values = IndexValues(sizes);
  for (int64_t value : values) {
    if (value < 0) return InvalidArgument("Dimension ", value, " must be >= 0");
  }
  return Shape::Create(std::span<const int64_t>(values.data(), values.size()));
}

// `axis` counted from the front, or -1 if it is not in [-rank, rank).
inline int AxisFromFront(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) return -1;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// The product of dimensions [begin, end).
inline int64_t SizeBetween(const Shape& shape, int begin, int end) {
  int64_t size = 1;
  for (int i = begin; i < end; ++i) size *= shape.dim(i);
  return size;
}

}  // namespace sluice
