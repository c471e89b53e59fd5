#include "sluice/io/slice_assembly.h"

#include <algorithm>

#include "sluice/base/status.h"

namespace sluice {
namespace {

struct Piece {
  size_t index;        // Into the stored slices.
  TensorSlice stored;  // Resolved.
  TensorSlice region;  // What it gives to the wanted part.
};

int64_t Volume(const TensorSlice& slice) {
  int64_t volume = 1;
  for (int i = 0; i < slice.rank(); ++i) volume *= slice.extent(i).length;
  return volume;
}

// Sorts the pieces by their start and tells whether two of them overlap.
bool Overlap(std::vector<Piece>* pieces) {
  if (pieces->size() < 2) return false;
  if (pieces->front().region.rank() == 0) return true;
  std::sort(pieces->begin(), pieces->end(), [](const auto& a, const auto& b) {
    return a.region.extent(0).start < b.region.extent(0).start;
  });
  for (size_t i = 0; i < pieces->size(); ++i) {
    const TensorSlice& a = (*pieces)[i].region;
    const int64_t end = a.extent(0).start + a.extent(0).length;
    for (size_t j = i + 1; j < pieces->size(); ++j) {
      const TensorSlice& b = (*pieces)[j].region;
      if (b.extent(0).start >= end) break;
      if (a.Intersect(b).has_value()) return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<Tensor> AssembleSlices(
    std::string_view name, DType dtype, const Shape& full,
    const TensorSlice& wanted, const std::vector<TensorSlice>& stored,
    absl::FunctionRef<absl::StatusOr<Tensor>(size_t)> load) {
  SLUICE_ASSIGN_OR_RETURN(const Shape shape, wanted.ShapeWithin(full));
  if (shape.size() == 0) return Tensor::Create(dtype, shape);
  const TensorSlice target_at = wanted.Resolved(full);
  std::vector<Piece> pieces;
  int64_t covered = 0;
  for (size_t i = 0; i < stored.size(); ++i) {
    // Also a check that no sum of start and length overflows.
    SLUICE_RETURN_IF_ERROR(stored[i].ShapeWithin(full).status());
    TensorSlice resolved = stored[i].Resolved(full);
    std::optional<TensorSlice> region = resolved.Intersect(target_at);
    if (!region.has_value()) continue;
    // Each is at most the wanted volume; stop before a sum of many overflows.
    covered = std::min(covered + Volume(*region), shape.size() + 1);
    pieces.push_back({i, std::move(resolved), *std::move(region)});
  }
  if (covered < shape.size()) {
    return InvalidArgument(
        "Does not have sufficient slices for partitioned "
        "tensor ",
        name, " to restore in slice_spec: ", wanted.DebugString());
  }
  if (Overlap(&pieces)) {
    return DataLoss("Slices of tensor ", name,
                    " in the checkpoint overlap each other");
  }
  // A stored slice that is just what was asked for needs no copy.
  if (pieces.size() == 1 && pieces[0].stored == target_at) {
    return load(pieces[0].index);
  }
  Tensor target;
  for (const Piece& piece : pieces) {
    SLUICE_ASSIGN_OR_RETURN(const Tensor source, load(piece.index));
    if (!target.initialized()) {
      // Not before a first slice was read: a shape alone proves nothing.
      SLUICE_ASSIGN_OR_RETURN(target, Tensor::Create(dtype, shape));
    }
    CopyRegion(piece.region, source, piece.stored, target_at, &target);
  }
  return target;
}

}  // namespace sluice
