#include "sluice/ops/array/strided_slice_spec.h"

#include <algorithm>

namespace sluice {
namespace {

// What an entry of the final shape comes from, if not from a dimension of x.
constexpr int kNewAxis = -1;

// The spec with one entry for each dimension of x.
struct DenseSpec {
  struct Entry {
    std::optional<int64_t> begin, end;
    int64_t stride = 1;
    bool begin_masked = true;
    bool end_masked = true;
    bool shrink = false;
  };
  absl::InlinedVector<Entry, 8> entries;
  absl::InlinedVector<int, 8> shape_from;  // Dimensions of x, or kNewAxis.
};

bool Bit(int64_t mask, int i) { return i < 64 && (mask >> i & 1) != 0; }

// The ellipsis stands at `ellipsis`, or at the end if there is none.
absl::StatusOr<DenseSpec> Spread(int rank, const StridedSliceSpec& spec) {
  const int count = static_cast<int>(spec.strides.size());
  int ellipsis = count;
  int new_axes_after = 0;
  for (int i = 0; i < count; ++i) {
    if (Bit(spec.masks.ellipsis, i)) {
      if (ellipsis < count) {
        return InvalidArgument("Multiple ellipses in slice spec not allowed");
      }
      ellipsis = i;
    } else if (ellipsis < count && Bit(spec.masks.new_axis, i)) {
      ++new_axes_after;
    }
  }
  DenseSpec dense;
  const auto take_whole_until = [&](int end) {
    while (static_cast<int>(dense.entries.size()) < end) {
      dense.shape_from.push_back(static_cast<int>(dense.entries.size()));
      dense.entries.emplace_back();
    }
  };
  for (int i = 0; i < count; ++i) {
    const int at = static_cast<int>(dense.entries.size());
    if (i == ellipsis) {
      // What stands after it needs its own dimensions; new axes need none.
      take_whole_until(std::min(rank - (count - i - 1) + new_axes_after, rank));
    } else if (Bit(spec.masks.new_axis, i)) {
      dense.shape_from.push_back(kNewAxis);
    } else if (at == rank) {
      return InvalidArgument("Index out of range using input dim ", at,
                             "; input has only ", rank, " dims");
    } else {
      DenseSpec::Entry entry;
      if (spec.begin) entry.begin = (*spec.begin)[i];
      if (spec.end) entry.end = (*spec.end)[i];
      entry.stride = spec.strides[i];
      entry.shrink = Bit(spec.masks.shrink_axis, i);
      entry.begin_masked = Bit(spec.masks.begin, i);
      entry.end_masked = Bit(spec.masks.end, i);
      if (!entry.shrink) dense.shape_from.push_back(at);
      dense.entries.push_back(entry);
    }
  }
  take_whole_until(rank);
  return dense;
}

// A bound counted from the front and kept inside of what the stride can reach.
int64_t Clamp(int64_t at, int64_t dim, int64_t stride) {
  if (at < 0) at += dim;
  return stride > 0 ? std::clamp<int64_t>(at, 0, dim)
                    : std::clamp<int64_t>(at, -1, dim - 1);
}

int64_t RangeSize(int64_t begin, int64_t end, int64_t stride) {
  const int64_t length = end - begin;
  if (length == 0 || (length < 0) != (stride < 0)) return 0;
  return length / stride + (length % stride != 0 ? 1 : 0);
}

absl::Status PlanDim(int i, int64_t dim, const DenseSpec::Entry& entry,
                     StridedSlicePlan* plan) {
  const int64_t stride = entry.stride;
  if (stride == 0) {
    return InvalidArgument("strides[", i, "] must be non-zero");
  }
  if (entry.shrink && stride <= 0) {
    return InvalidArgument("only stride 1 allowed on non-range indexing.");
  }
  int64_t begin = stride > 0 ? 0 : dim - 1;
  int64_t end = stride > 0 ? dim : -1;
  bool known = dim >= 0;
  if (entry.shrink) {
    if (known && entry.begin) {
      begin = *entry.begin < 0 ? *entry.begin + dim : *entry.begin;
      if (begin < 0 || begin >= dim) {
        return InvalidArgument("slice index ", *entry.begin, " of dimension ",
                               i, " out of bounds.");
      }
    }
    end = begin + 1;
    known = true;
  } else if (known) {
    const bool both_masked = entry.begin_masked && entry.end_masked;
    known = both_masked || (entry.begin && entry.end);
    if (!entry.begin_masked && entry.begin) {
      begin = Clamp(*entry.begin, dim, stride);
    }
    if (!entry.end_masked && entry.end) end = Clamp(*entry.end, dim, stride);
  }
  const int64_t size = known ? RangeSize(begin, end, stride) : -1;
  plan->sizes.push_back(size);
  plan->begin.push_back(begin);
  // The stride to the next of at most one element does not matter and may be
  // too large to compute with.
  plan->stride.push_back(size > 1 ? stride : 1);
  const bool range = plan->stride.back() == 1;
  const bool all = range && size == dim;
  plan->whole &= all;
  plan->rows &= i == 0 ? range : all;
  return absl::OkStatus();
}

}  // namespace

StridedSliceMasks StridedSliceMasks::Of(const AttrMap& attrs) {
  const auto mask = [&](std::string_view name) {
    const int64_t* value = attrs.Find<int64_t>(name);
    return value == nullptr ? 0 : *value;
  };
  return {mask("begin_mask"), mask("end_mask"), mask("ellipsis_mask"),
          mask("new_axis_mask"), mask("shrink_axis_mask")};
}

absl::StatusOr<StridedSliceSpec> StridedSliceSpec::Of(
    const Tensor& begin, const Tensor& end, const Tensor& strides,
    const StridedSliceMasks& masks) {
  if (begin.rank() != 1 || end.shape() != begin.shape() ||
      strides.shape() != begin.shape()) {
    return InvalidArgument(
        "Expected begin, end, and strides to be 1D equal size tensors, but "
        "got shapes ",
        begin.shape().DebugString(), ", ", end.shape().DebugString(), ", and ",
        strides.shape().DebugString(), " instead.");
  }
  return StridedSliceSpec{IndexValues(begin), IndexValues(end),
                          IndexValues(strides), masks};
}

absl::StatusOr<StridedSlicePlan> PlanStridedSlice(
    std::span<const int64_t> dims, const StridedSliceSpec& spec) {
  const int rank = static_cast<int>(dims.size());
  SLUICE_ASSIGN_OR_RETURN(const DenseSpec dense, Spread(rank, spec));
  StridedSlicePlan plan;
  for (int i = 0; i < rank; ++i) {
    SLUICE_RETURN_IF_ERROR(PlanDim(i, dims[i], dense.entries[i], &plan));
  }
  for (int from : dense.shape_from) {
    plan.shape.push_back(from == kNewAxis ? 1 : plan.sizes[from]);
  }
  if (plan.shape.size() > kMaxRank) {
    return InvalidArgument("The slice would have ", plan.shape.size(),
                           " dimensions; at most 254 are possible");
  }
  return plan;
}

}  // namespace sluice
