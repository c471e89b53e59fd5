#include "sluice/tensor/shape.h"

#include "sluice/base/status.h"

namespace sluice {
namespace {

std::string DimsText(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ',';
    text += dims[i] < 0 ? "?" : std::to_string(dims[i]);
  }
  return text + "]";
}

absl::Status CheckDims(std::span<const int64_t> dims, int64_t smallest) {
  if (dims.size() > kMaxRank) {
    return InvalidArgument("Shape has ", dims.size(),
                           " dimensions; at most 254 are possible");
  }
  int64_t size = 1;
  for (int64_t dim : dims) {
    if (dim < smallest) {
      return InvalidArgument("Shape ", DimsText(dims),
                             " has a dimension of size ", dim);
    }
    // Zeros must not hide an overflow: the sizes are multiplied in any order.
    if (dim > 0 && __builtin_mul_overflow(size, dim, &size)) {
      return InvalidArgument("Shape ", DimsText(dims),
                             " is too large (more than 2**63 - 1 elements)");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Shape> Shape::Create(std::span<const int64_t> dims) {
  SLUICE_RETURN_IF_ERROR(CheckDims(dims, 0));
  return Shape(dims);
}

std::string Shape::DebugString() const { return DimsText(dims()); }

PartialShape PartialShape::UnknownOfRank(int rank) {
  PartialShape shape;
  shape.known_rank_ = true;
  shape.dims_.assign(rank, kUnknownDim);
  return shape;
}

absl::StatusOr<PartialShape> PartialShape::Create(
    std::span<const int64_t> dims) {
  SLUICE_RETURN_IF_ERROR(CheckDims(dims, kUnknownDim));
  return PartialShape(dims);
}

bool PartialShape::FullyDefined() const {
  if (!known_rank_) return false;
  for (int64_t dim : dims_) {
    if (dim < 0) return false;
  }
  return true;
}

int64_t PartialShape::NumElements() const {
  return FullyDefined() ? AsShape().size() : -1;
}

bool PartialShape::CompatibleWith(const PartialShape& other) const {
  if (!known_rank_ || !other.known_rank_) return true;
  if (rank() != other.rank()) return false;
  for (int i = 0; i < rank(); ++i) {
    if (dim(i) >= 0 && other.dim(i) >= 0 && dim(i) != other.dim(i)) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<PartialShape> PartialShape::MergeWith(
    const PartialShape& other) const {
  if (!known_rank_) return other;
  if (!other.known_rank_) return *this;
  if (!CompatibleWith(other)) {
    return InvalidArgument("Shapes ", DebugString(), " and ",
                           other.DebugString(), " are not compatible");
  }
  PartialShape merged = *this;
  for (int i = 0; i < rank(); ++i) {
    if (dim(i) < 0) merged.set_dim(i, other.dim(i));
  }
  return merged;
}

std::string PartialShape::DebugString() const {
  return known_rank_ ? DimsText(dims()) : "<unknown>";
}

}  // namespace sluice
