#include "sluice/numeric/broadcast.h"

#include <algorithm>

namespace sluice::numeric {

bool BroadcastPlan::Make(std::span<const int64_t> a,
                         std::span<const int64_t> b) {
  const size_t rank = std::max(a.size(), b.size());
  dims_.assign(rank, 1);
  outer_.clear();
  rows_ = 1;
  int64_t a_size = 1;  // Of the dimensions passed so far.
  int64_t b_size = 1;
  absl::InlinedVector<Loop, 4> loops;
  for (size_t i = 1; i <= rank; ++i) {  // From the innermost.
    const int64_t x = i <= a.size() ? a[a.size() - i] : 1;
    const int64_t y = i <= b.size() ? b[b.size() - i] : 1;
    if (x != y && x != 1 && y != 1) return false;
    const int64_t size = x == 1 ? y : x;
    dims_[rank - i] = size;
    if (size == 1) continue;
    const Loop loop{size, x == 1 ? 0 : a_size, y == 1 ? 0 : b_size};
    a_size *= x;
    b_size *= y;
    const auto continues = [&](int64_t step, int64_t inner_step) {
      return step == inner_step * loops.back().size;
    };
    if (!loops.empty() && continues(loop.a_step, loops.back().a_step) &&
        continues(loop.b_step, loops.back().b_step)) {
      loops.back().size *= size;
    } else {
      loops.push_back(loop);
    }
  }
  if (loops.empty()) {
    row_ = {1, 1, 1};
    return true;
  }
  row_ = loops.front();
  outer_.assign(loops.begin() + 1, loops.end());
  for (const Loop& loop : outer_) rows_ *= loop.size;
  return true;
}

void BroadcastPlan::ForRows(
    int64_t begin, int64_t end,
    absl::FunctionRef<void(int64_t row, int64_t a, int64_t b)> body) const {
  if (begin >= end) return;  // Also where a size is 0.
  absl::InlinedVector<int64_t, 4> at(outer_.size());
  int64_t a = 0;
  int64_t b = 0;
  int64_t rest = begin;
  for (size_t d = 0; d < outer_.size(); ++d) {
    at[d] = rest % outer_[d].size;
    rest /= outer_[d].size;
    a += at[d] * outer_[d].a_step;
    b += at[d] * outer_[d].b_step;
  }
  for (int64_t row = begin; row < end; ++row) {
    body(row, a, b);
    for (size_t d = 0; d < outer_.size(); ++d) {
      a += outer_[d].a_step;
      b += outer_[d].b_step;
      if (++at[d] < outer_[d].size) break;
      a -= outer_[d].a_step * outer_[d].size;
      b -= outer_[d].b_step * outer_[d].size;
      at[d] = 0;
    }
  }
}

}  // namespace sluice::numeric
