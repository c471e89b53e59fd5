// TensorSlice: a block of a tensor, a range in each dimension. Checkpoints hold
// partitioned variables as slices of the whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/proto/bundle.pb.h"
#include "sluice/tensor/shape.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

// A value. A full dimension is kept apart from the range that covers it, since
// the two have different keys in a checkpoint.
class TensorSlice {
 public:
  static constexpr int64_t kFull = -1;
  struct Extent {
    int64_t start = 0;
    int64_t length = kFull;
    bool operator==(const Extent&) const = default;
  };

  TensorSlice() = default;  // Of a scalar.
  // All of a tensor with `rank` dimensions.
  static TensorSlice Full(int rank);
  // "-:0,10:14,1": per dimension '-' or "start,length".
  static absl::StatusOr<TensorSlice> Parse(std::string_view text);
  static absl::StatusOr<TensorSlice> FromProto(
      const pb::TensorSliceProto& proto);
  void ToProto(pb::TensorSliceProto* proto) const;

  int rank() const { return static_cast<int>(extents_.size()); }
  const Extent& extent(int i) const { return extents_[i]; }
  void Add(Extent extent) { extents_.push_back(extent); }

  // The sizes it has within a tensor of `shape`; INTERNAL if it does not fit
  // in, as from TensorFlow.
  absl::StatusOr<Shape> ShapeWithin(const Shape& shape) const;
  // Whether it covers all of `shape`, into which it fits.
  bool Covers(const Shape& shape) const;
  // The same block of `shape` without full dimensions.
  TensorSlice Resolved(const Shape& shape) const;
  // What two resolved slices share, if anything.
  std::optional<TensorSlice> Intersect(const TensorSlice& other) const;

  // As Parse takes it.
  std::string DebugString() const;
  bool operator==(const TensorSlice&) const = default;

 private:
  absl::InlinedVector<Extent, 4> extents_;
};

// A shape_and_slices item of SaveV2 and RestoreV2: "100 20 0,50:0,20".
struct ShapeAndSlice {
  Shape full;         // Of the whole tensor: [100,20].
  TensorSlice slice;  // 0,50:0,20.
  Shape part;         // Of the slice: [50,20].
};
absl::StatusOr<ShapeAndSlice> ParseShapeAndSlice(std::string_view text);

// The key under which a checkpoint keeps a slice of tensor `name`. Keys sort
// by name, then rank, then extents; all come before the names themselves.
std::string SliceKey(std::string_view name, const TensorSlice& slice);

// Copies the elements that the resolved slice `region` of a whole names from
// `source`, which holds the resolved slice `source_at` of that whole, to
// `target`, which holds `target_at`. `region` must lie in both; the types must
// be equal.
void CopyRegion(const TensorSlice& region, const Tensor& source,
                const TensorSlice& source_at, const TensorSlice& target_at,
                Tensor* target);

}  // namespace sluice
