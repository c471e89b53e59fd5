// ForEachRow: visits the rows of a table that indices name. Tables are larger
// than caches, so the time goes into waiting for memory; rows are asked for
// ahead of their visit.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/ops/state/elements.h"

namespace sluice {

// Asks for the `bytes` from `data` on, to be written.
inline void PrefetchBytes(const void* data, int64_t bytes) {
  const char* at = static_cast<const char*>(data);
  // More than this and the hardware has seen the direction itself.
  constexpr int64_t kMost = 512;
  for (int64_t i = 0; i < bytes && i < kMost; i += 64) {
    __builtin_prefetch(at + i, /*for writing=*/1);
  }
}

// Calls visit(i, row) for each item of the indices in their order, so that
// repeated ones take effect one after the other, and prefetch(row) some rows
// before. One thread does it all: a core keeps the memory busy, and what is
// split by rows reads the updates in no order.
template <typename Prefetch, typename Visit>
void ForEachRow(const IndexInput& index, const Prefetch& prefetch,
                const Visit& visit) {
  // A miss takes about 100 ns, in which some short rows are done.
  constexpr int64_t kAhead = 16;
  const int64_t n = index.size();
  for (int64_t i = 0; i < std::min(kAhead, n); ++i) prefetch(index[i]);
  for (int64_t i = 0; i < n; ++i) {
    if (i + kAhead < n) prefetch(index[i + kAhead]);
    visit(i, index[i]);
  }
}

}  // namespace sluice
