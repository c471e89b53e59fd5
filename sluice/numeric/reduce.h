// Reductions of an array over some of its dimensions, and scans along one.
#pragma once

#include <cstdint>
#include <span>

#include "absl/container/inlined_vector.h"

namespace sluice::numeric {

enum class ReduceOp { kSum, kProd, kMax, kMin, kAnd, kOr };

// The shape of a reduction: sizes of alternating runs of reduced and kept
// dimensions, outermost first. A value.
struct ReducePlan {
  // `reduced[i]` says whether dimension i goes away.
  ReducePlan(std::span<const int64_t> dims, std::span<const bool> reduced);

  absl::InlinedVector<int64_t, 8> sizes;
  bool first_is_reduced = false;
  int64_t kept = 1;     // Elements of the result.
  int64_t reduced = 1;  // Elements that make one of the result.
};

// in has plan.kept * plan.reduced elements, out plan.kept. Of nothing the
// result is the neutral element. Large ones are split over the compute pool;
// how the sums are grouped does not depend on the number of threads.
template <ReduceOp op, typename T>
void Reduce(T* out, const T* in, const ReducePlan& plan);

// The index of the first largest (smallest) along the middle of
// [outer, size, inner]. A NaN is never chosen unless it comes first.
template <typename T, typename Index>
void ArgExtreme(Index* out, const T* in, int64_t outer, int64_t size,
                int64_t inner, bool largest);

// Running sums (products) along the middle of [outer, size, inner].
struct ScanOptions {
  bool product = false;
  bool exclusive = false;  // Element i is left out of result i.
  bool reverse = false;    // From the end.
};
template <typename T>
void Scan(T* out, const T* in, int64_t outer, int64_t size, int64_t inner,
          ScanOptions options);

}  // namespace sluice::numeric
