// CopyBox: moves a box of elements between two arrays of any layout. Slices,
// transposes, tiles, pads, broadcasts and reversals are all such moves; they
// differ only in the steps.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace sluice {

// Copies n elements that lie `dst_step` and `src_step` bytes apart. Steps may
// be negative; a src_step of 0 repeats one element. The two must not overlap.
using CopyRun = void (*)(char* dst, int64_t dst_step, const char* src,
                         int64_t src_step, int64_t n);

// For elements of 1, 2, 4, 8 or 16 bytes; nullptr for other sizes.
CopyRun CopyRunOfSize(int64_t element_size);

// A value. Dimensions are added outermost first.
class Box {
 public:
  struct Dim {
    int64_t size;
    int64_t dst_step;  // In bytes, like src_step.
    int64_t src_step;
  };

  void Add(int64_t size, int64_t dst_step, int64_t src_step) {
    dims_.push_back({size, dst_step, src_step});
  }
  // Joins and orders the dimensions so that there are few long runs. The same
  // elements go to the same places.
  void Simplify(int64_t element_size);

  // After Simplify at least 1; what Copy is split by.
  int64_t outer_size() const { return dims_.empty() ? 1 : dims_[0].size; }
  int64_t size() const;
  // Copies the part of the box with outermost index in [begin, end).
  void Copy(char* dst, const char* src, CopyRun run, int64_t begin,
            int64_t end) const;

 private:
  void OrderForRuns(int64_t element_size);

  absl::InlinedVector<Dim, 6> dims_;
  // More than 0 if the last two dimensions are crossed, as in a transpose, and
  // copied by blocks of this width.
  int64_t block_ = 0;
};

}  // namespace sluice
