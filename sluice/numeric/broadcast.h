// How two arrays of different shapes go together, NumPy-style.
#pragma once

#include <cstdint>
#include <span>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"

namespace sluice::numeric {

// The loops behind a broadcast: neighbouring dimensions that both arrays walk
// through in the same way are one loop. A value.
class BroadcastPlan {
 public:
  // False if the shapes do not fit.
  bool Make(std::span<const int64_t> a, std::span<const int64_t> b);

  // The sizes of the result.
  std::span<const int64_t> dims() const { return {dims_.data(), dims_.size()}; }

  // A row is the innermost loop: `row_size` elements through which a and b go
  // by steps of 0 or 1.
  int64_t row_size() const { return row_.size; }
  int64_t a_step() const { return row_.a_step; }
  int64_t b_step() const { return row_.b_step; }
  int64_t rows() const { return rows_; }

  // Calls body(row, a, b) for each of [begin, end) rows, with the offsets of
  // its first elements in a and b.
  void ForRows(
      int64_t begin, int64_t end,
      absl::FunctionRef<void(int64_t row, int64_t a, int64_t b)> body) const;

 private:
  struct Loop {
    int64_t size;
    int64_t a_step;
    int64_t b_step;
  };

  absl::InlinedVector<int64_t, 4> dims_;
  absl::InlinedVector<Loop, 4> outer_;  // Innermost first.
  Loop row_{1, 1, 1};
  int64_t rows_ = 1;
};

}  // namespace sluice::numeric
