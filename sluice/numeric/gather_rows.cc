#include "sluice/numeric/gather_rows.h"

#include <algorithm>
#include <cstring>

#include "sluice/numeric/prefetch.h"

namespace sluice {
namespace {

// Looked at whole and without branches, so that the loop becomes vector code.
constexpr int64_t kBlock = 1024;

template <typename Index>
int64_t FindOutside(const Index* indices, int64_t n, int64_t limit) {
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    bool outside = false;
    for (int64_t i = begin; i < end; ++i) {
      outside |= indices[i] < 0 || indices[i] >= limit;
    }
    if (!outside) continue;
    for (int64_t i = begin; i < end; ++i) {
      if (indices[i] < 0 || indices[i] >= limit) return i;
    }
  }
  return -1;
}

// kBytes is the size of a row if it is one of the common small ones, else 0.
template <int64_t kBytes, typename Index>
void CopyRows(const char* table, int64_t row_bytes, const Index* indices,
              int64_t n, char* out) {
  const int64_t bytes = kBytes == 0 ? row_bytes : kBytes;
  for (int64_t i = 0; i < n; ++i) {
    if (i + kRowsAhead < n) {
      PrefetchRow<false>(table + indices[i + kRowsAhead] * bytes, bytes);
    }
    std::memcpy(out + i * bytes, table + indices[i] * bytes, bytes);
  }
}

template <typename Index>
void Gather(const char* table, int64_t row_bytes, const Index* indices,
            int64_t n, char* out) {
  switch (row_bytes) {
    case 4:
      return CopyRows<4>(table, row_bytes, indices, n, out);
    case 8:
      return CopyRows<8>(table, row_bytes, indices, n, out);
    case 16:
      return CopyRows<16>(table, row_bytes, indices, n, out);
    case 32:
      return CopyRows<32>(table, row_bytes, indices, n, out);
    case 64:
      return CopyRows<64>(table, row_bytes, indices, n, out);
    default:
      return CopyRows<0>(table, row_bytes, indices, n, out);
  }
}

}  // namespace

int64_t FindIndexOutside(const int32_t* indices, int64_t n, int64_t limit) {
  return FindOutside(indices, n, limit);
}
int64_t FindIndexOutside(const int64_t* indices, int64_t n, int64_t limit) {
  return FindOutside(indices, n, limit);
}

void GatherRowBytes(const char* table, int64_t row_bytes,
                    const int32_t* indices, int64_t n, char* out) {
  Gather(table, row_bytes, indices, n, out);
}
void GatherRowBytes(const char* table, int64_t row_bytes,
                    const int64_t* indices, int64_t n, char* out) {
  Gather(table, row_bytes, indices, n, out);
}

}  // namespace sluice
