#include "sluice/numeric/strided_copy.h"

#include <algorithm>
#include <cstring>

namespace sluice {
namespace {

constexpr int64_t kCacheLine = 64;
// Runs shorter than this cost more in calls than in copying.
constexpr int64_t kShortRun = 8;

template <int kSize>
void RunOfSize(char* dst, int64_t dst_step, const char* src, int64_t src_step,
               int64_t n) {
  if (dst_step == kSize && src_step == kSize) {
    std::memcpy(dst, src, n * kSize);
  } else if (dst_step == kSize && src_step == 0) {
    char value[kSize];
    std::memcpy(value, src, kSize);
    for (int64_t i = 0; i < n; ++i) std::memcpy(dst + i * kSize, value, kSize);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      std::memcpy(dst + i * dst_step, src + i * src_step, kSize);
    }
  }
}

// A crossed pair: blocks as wide as a few lines of the source are used whole
// before they leave the cache.
void CopyBlocks(const Box::Dim& row, const Box::Dim& column, int64_t block,
                char* dst, const char* src, CopyRun run) {
  for (int64_t c = 0; c < column.size; c += block) {
    const int64_t columns = std::min(block, column.size - c);
    for (int64_t r = 0; r < row.size; ++r) {
      run(dst + r * row.dst_step + c * column.dst_step, column.dst_step,
          src + r * row.src_step + c * column.src_step, column.src_step,
          columns);
    }
  }
}

// `block` is 0 unless the last two dimensions are crossed.
void CopyDims(Box::Dim outer, const Box::Dim* rest, size_t rank, int64_t block,
              char* dst, const char* src, CopyRun run) {
  if (rank == 0) {
    return run(dst, outer.dst_step, src, outer.src_step, outer.size);
  }
  if (rank == 1 && block > 0) {
    return CopyBlocks(outer, *rest, block, dst, src, run);
  }
  for (int64_t i = 0; i < outer.size; ++i) {
    CopyDims(*rest, rest + 1, rank - 1, block, dst + i * outer.dst_step,
             src + i * outer.src_step, run);
  }
}

}  // namespace

CopyRun CopyRunOfSize(int64_t element_size) {
  switch (element_size) {
    case 1:
      return RunOfSize<1>;
    case 2:
      return RunOfSize<2>;
    case 4:
      return RunOfSize<4>;
    case 8:
      return RunOfSize<8>;
    case 16:
      return RunOfSize<16>;
    default:
      return nullptr;
  }
}

int64_t Box::size() const {
  int64_t size = 1;
  for (const Dim& dim : dims_) size *= dim.size;
  return size;
}

void Box::Simplify(int64_t element_size) {
  size_t kept = 0;
  for (const Dim& dim : dims_) {
    if (dim.size == 1) continue;
    Dim* outer = kept == 0 ? nullptr : &dims_[kept - 1];
    if (outer != nullptr && dim.size > 0 &&
        outer->dst_step == dim.dst_step * dim.size &&
        outer->src_step == dim.src_step * dim.size) {
      *outer = {outer->size * dim.size, dim.dst_step, dim.src_step};
    } else {
      dims_[kept++] = dim;
    }
  }
  dims_.erase(dims_.begin() + kept, dims_.end());
  if (kept > 1) OrderForRuns(element_size);
}

void Box::OrderForRuns(int64_t element_size) {
  const auto run = dims_.end() - 1;
  if (run->src_step == element_size && run->dst_step == element_size) return;
  // The dimension that the source has innermost.
  const auto crossing = std::find_if(dims_.begin(), run, [&](const Dim& dim) {
    return dim.src_step == element_size;
  });
  if (run->size >= kShortRun) {
    if (crossing == run) return;
    std::rotate(crossing, crossing + 1, run);
    block_ = 4 * std::max<int64_t>(1, kCacheLine / element_size);
    return;
  }
  auto inner = crossing;
  if (crossing == run || crossing->size < kShortRun) {
    inner = std::max_element(
        dims_.begin(), dims_.end(),
        [](const Dim& a, const Dim& b) { return a.size < b.size; });
  }
  std::rotate(inner, inner + 1, dims_.end());
}

void Box::Copy(char* dst, const char* src, CopyRun run, int64_t begin,
               int64_t end) const {
  if (dims_.empty()) return run(dst, 0, src, 0, end - begin);
  Dim outer = dims_[0];
  outer.size = end - begin;
  CopyDims(outer, dims_.data() + 1, dims_.size() - 1, block_,
           dst + begin * outer.dst_step, src + begin * outer.src_step, run);
}

}  // namespace sluice
