// ForEachRow: visits the rows of a table that indices name, and asks for them
// ahead of their visit.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sluice/numeric/prefetch.h"
#include "sluice/ops/state/elements.h"

namespace sluice {

// Calls visit(i, row) for each item of the indices in their order, so that
// repeated ones take effect one after the other, and prefetch(row) some rows
// before. One thread does it all: a core keeps the memory busy, and what is
// split by rows reads the updates in no order.
template <typename Prefetch, typename Visit>
void ForEachRow(const IndexInput& index, const Prefetch& prefetch,
                const Visit& visit) {
  const int64_t n = index.size();
  for (int64_t i = 0; i < std::min(kRowsAhead, n); ++i) prefetch(index[i]);
  for (int64_t i = 0; i < n; ++i) {
    if (i + kRowsAhead < n) prefetch(index[i + kRowsAhead]);
    visit(i, index[i]);
  }
}

}  // namespace sluice
