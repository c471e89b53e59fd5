#include "sluice/numeric/gemm.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "sluice/base/thread_pool.h"
#include "sluice/numeric/simd.h"

namespace sluice::numeric {
namespace {

// The product is built of tiles of kTileRows x kTileColumns<T> results, which
// stay in registers: with AVX2 12 of the 16 hold them, two a part of b.
constexpr int kTileRows = 6;
constexpr int kVectorBytes = 32;
template <typename T>
constexpr int kLanes = kVectorBytes / sizeof(T);
template <typename T>
constexpr int kTileColumns = 2 * kLanes<T>;

// Blocks that fit the caches: a panel of b with kDepth rows the first level, a
// block of a the second, a block of b the third.
constexpr int64_t kDepth = 256;
constexpr int64_t kBlockRows = 12 * kTileRows;
constexpr int64_t kBlockColumns = 1024;

// Element (i, j) is data[i * row_step + j * column_step].
template <typename T>
struct Strided {
  const T* data;
  int64_t row_step;
  int64_t column_step;
  const T* at(int64_t i, int64_t j) const {
    return data + i * row_step + j * column_step;
  }
};

template <typename T>
Strided<T> MakeStrided(MatrixView<T> view, int64_t rows, int64_t columns) {
  if (view.transposed) return {view.data, 1, rows};
  return {view.data, columns, 1};
}

int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Copies rows [0, rows) x depth of `a` in panels of kTileRows rows, each with
// its columns one after the other; missing rows are 0.
template <typename T>
void PackRows(T* to, Strided<T> a, int64_t rows, int64_t depth) {
  for (int64_t i = 0; i < rows; i += kTileRows) {
    const int64_t count = std::min<int64_t>(kTileRows, rows - i);
    if (count == kTileRows && a.row_step == 1) {
      for (int64_t p = 0; p < depth; ++p, to += kTileRows) {
        std::memcpy(to, a.at(i, p), kTileRows * sizeof(T));
      }
      continue;
    }
    for (int64_t r = 0; r < kTileRows; ++r) {
      T* column = to + r;
      const T* from = a.at(i + r, 0);
      for (int64_t p = 0; p < depth; ++p, column += kTileRows) {
        *column = r < count ? from[p * a.column_step] : T(0);
      }
    }
    to += kTileRows * depth;
  }
}

// Copies depth x columns [0, columns) of `b` in panels of kTileColumns columns,
// each with its rows one after the other; missing columns are 0.
template <typename T>
void PackColumns(T* to, Strided<T> b, int64_t depth, int64_t columns) {
  constexpr int kColumns = kTileColumns<T>;
  for (int64_t j = 0; j < columns; j += kColumns) {
    const int64_t count = std::min<int64_t>(kColumns, columns - j);
    if (b.column_step == 1) {
      for (int64_t p = 0; p < depth; ++p, to += kColumns) {
        const T* from = b.at(p, j);
        if (count == kColumns) {
          std::memcpy(to, from, kColumns * sizeof(T));
        } else {
          for (int64_t c = 0; c < kColumns; ++c) {
            to[c] = c < count ? from[c] : T(0);
          }
        }
      }
      continue;
    }
    for (int64_t c = 0; c < kColumns; ++c) {
      T* row = to + c;
      const T* from = b.at(0, j + c);
      for (int64_t p = 0; p < depth; ++p, row += kColumns) {
        *row = c < count ? from[p * b.row_step] : T(0);
      }
    }
    to += kColumns * depth;
  }
}

// One tile from kTileRows rows of a and a packed panel of b. `add` says whether
// c already holds a part of the sum; only rows x columns of the tile exist in
// c.
template <typename T>
void Tile(T* c, int64_t c_step, Strided<T> left, const T* b, int64_t depth,
          bool add, int64_t rows, int64_t columns) {
  typedef T Vector
      __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
  constexpr int kWide = kLanes<T>;
  Vector sums[kTileRows][2] = {};
  const T* a = left.data;
  for (int64_t p = 0; p < depth; ++p) {
    const Vector b0 = *reinterpret_cast<const Vector*>(b);
    const Vector b1 = *reinterpret_cast<const Vector*>(b + kWide);
#pragma GCC unroll 6
    for (int i = 0; i < kTileRows; ++i) {
      sums[i][0] += a[i * left.row_step] * b0;
      sums[i][1] += a[i * left.row_step] * b1;
    }
    a += left.column_step;
    b += kTileColumns<T>;
  }
  if (rows == kTileRows && columns == kTileColumns<T>) {
#pragma GCC unroll 6
    for (int i = 0; i < kTileRows; ++i) {
      Vector* to = reinterpret_cast<Vector*>(c + i * c_step);
      to[0] = add ? to[0] + sums[i][0] : sums[i][0];
      to[1] = add ? to[1] + sums[i][1] : sums[i][1];
    }
    return;
  }
  alignas(kVectorBytes) T whole[kTileRows][kTileColumns<T>];
  std::memcpy(whole, sums, sizeof(whole));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      T& to = c[i * c_step + j];
      to = add ? to + whole[i][j] : whole[i][j];
    }
  }
}

template <typename T>
struct Scratch {
  T* a;
  T* b;
};

// Memory for `size` elements; the thread's own, kept for the next call.
template <typename T>
T* ThreadScratch(int64_t size) {
  thread_local std::unique_ptr<T[]> memory;
  thread_local int64_t capacity = 0;
  if (size > capacity) {
    memory.reset(new T[size]);
    capacity = size;
  }
  return memory.get();
}

// Rows [0, rows) of c from a packed block of b.
template <typename T>
void RowsMatMul(T* c, int64_t c_step, Strided<T> a, int64_t rows,
                const T* b_block, int64_t columns, int64_t depth, bool add,
                T* a_scratch) {
  // A copy of a pays only when it is used several times.
  const bool pack = columns > 2 * kTileColumns<T>;
  if (pack) PackRows(a_scratch, a, rows, depth);
  for (int64_t j = 0; j < columns; j += kTileColumns<T>) {
    for (int64_t i = 0; i < rows; i += kTileRows) {
      const int64_t tile_rows = std::min<int64_t>(kTileRows, rows - i);
      Strided<T> panel{a.at(i, 0), a.row_step, a.column_step};
      if (pack) {
        panel = {a_scratch + i * depth, 1, kTileRows};
      } else if (tile_rows < kTileRows) {
        PackRows(a_scratch, panel, tile_rows, depth);
        panel = {a_scratch, 1, kTileRows};
      }
      Tile(c + i * c_step + j, c_step, panel, b_block + j * depth, depth, add,
           tile_rows, std::min<int64_t>(kTileColumns<T>, columns - j));
    }
  }
}

template <typename T>
void BlockedMatMul(T* c, int64_t c_step, Strided<T> a, Strided<T> b, int64_t m,
                   int64_t n, int64_t k, Scratch<T> scratch) {
  for (int64_t j0 = 0; j0 < n; j0 += kBlockColumns) {
    const int64_t columns = std::min(kBlockColumns, n - j0);
    for (int64_t p0 = 0; p0 < k; p0 += kDepth) {
      const int64_t depth = std::min(kDepth, k - p0);
      PackColumns(scratch.b, {b.at(p0, j0), b.row_step, b.column_step}, depth,
                  columns);
      for (int64_t i0 = 0; i0 < m; i0 += kBlockRows) {
        RowsMatMul(c + i0 * c_step + j0, c_step,
                   {a.at(i0, p0), a.row_step, a.column_step},
                   std::min(kBlockRows, m - i0), scratch.b, columns, depth,
                   p0 > 0, scratch.a);
      }
    }
  }
}

template <typename T>
T Dot(const T* x, const T* y, int64_t n) {
  constexpr int kSums = 4 * kLanes<T>;
  T sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (int j = 0; j < kSums; ++j) sums[j] += x[i + j] * y[i + j];
  }
  T total = 0;
  for (; i < n; ++i) total += x[i] * y[i];
  for (int width = kSums / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) sums[j] += sums[j + width];
  }
  return total + sums[0];
}

// y = x M for a vector x of k elements and M of [k, n].
template <typename T>
void VectorTimes(T* y, const T* x, int64_t x_step, Strided<T> matrix, int64_t n,
                 int64_t k) {
  if (matrix.row_step == 1 && x_step == 1 &&
      (n < kLanes<T> || matrix.column_step != 1)) {
    for (int64_t j = 0; j < n; ++j) y[j] = Dot(x, matrix.at(0, j), k);
    return;
  }
  if (matrix.column_step != 1) {
    for (int64_t j = 0; j < n; ++j) {
      T sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += x[p * x_step] * *matrix.at(p, j);
      y[j] = sum;
    }
    return;
  }
  // Rows of M one after the other, four at a time to save passes over y.
  std::fill_n(y, n, T(0));
  int64_t p = 0;
  for (; p + 4 <= k; p += 4) {
    const T x0 = x[p * x_step];
    const T x1 = x[(p + 1) * x_step];
    const T x2 = x[(p + 2) * x_step];
    const T x3 = x[(p + 3) * x_step];
    const T* r0 = matrix.at(p, 0);
    const T* r1 = r0 + matrix.row_step;
    const T* r2 = r1 + matrix.row_step;
    const T* r3 = r2 + matrix.row_step;
    SLUICE_INDEPENDENT
    for (int64_t j = 0; j < n; ++j) {
      y[j] += (x0 * r0[j] + x1 * r1[j]) + (x2 * r2[j] + x3 * r3[j]);
    }
  }
  for (; p < k; ++p) {
    const T x0 = x[p * x_step];
    const T* row = matrix.at(p, 0);
    SLUICE_INDEPENDENT
    for (int64_t j = 0; j < n; ++j) y[j] += x0 * row[j];
  }
}

// For few columns: each is a row of the transposed product. `scratch` has room
// for a column of b and one of c.
template <typename T>
void NarrowMatMul(T* c, int64_t c_step, Strided<T> a, Strided<T> b, int64_t m,
                  int64_t n, int64_t k, T* scratch) {
  const Strided<T> turned{a.data, a.column_step, a.row_step};
  for (int64_t j = 0; j < n; ++j) {
    const T* x = b.at(0, j);
    if (b.row_step != 1) {
      for (int64_t p = 0; p < k; ++p) scratch[p] = x[p * b.row_step];
      x = scratch;
    }
    T* y = c_step == 1 ? c + j : scratch + k;
    VectorTimes(y, x, 1, turned, m, k);
    if (c_step == 1) continue;
    for (int64_t i = 0; i < m; ++i) c[i * c_step + j] = y[i];
  }
}

// c may be a part of the columns of a wider matrix.
template <typename T>
void StridedMatMul(T* c, int64_t c_step, Strided<T> a, Strided<T> b, int64_t m,
                   int64_t n, int64_t k) {
  // Copying b into panels pays only when it is used several times, and for
  // small products costs more than it saves.
  const bool small = m * n * k <= 1024 && b.column_step == 1;
  if (m <= 3 || (small && n > 3)) {
    Wide(n * k, [=] {
      for (int64_t i = 0; i < m; ++i) {
        VectorTimes(c + i * c_step, a.at(i, 0), a.column_step, b, n, k);
      }
    });
    return;
  }
  if (n <= 3) {
    T* scratch = ThreadScratch<T>(k + m);
    Wide(m * k, [=] { NarrowMatMul(c, c_step, a, b, m, n, k, scratch); });
    return;
  }
  const int64_t depth = std::min(k, kDepth);
  const int64_t a_size = RoundUp(std::min(m, kBlockRows), kTileRows) * depth;
  const int64_t b_size =
      RoundUp(std::min(n, kBlockColumns), kTileColumns<T>) * depth;
  T* memory = ThreadScratch<T>(a_size + b_size);
  const Scratch<T> scratch{memory, memory + a_size};
  Wide(kMinWide, [=] { BlockedMatMul(c, c_step, a, b, m, n, k, scratch); });
}

}  // namespace

template <typename T>
void MatMul(T* c, MatrixView<T> a, MatrixView<T> b, int64_t m, int64_t n,
            int64_t k) {
  if (m <= 0 || n <= 0) return;
  if (k <= 0) {
    std::fill_n(c, m * n, T(0));
    return;
  }
  StridedMatMul(c, n, MakeStrided(a, m, k), MakeStrided(b, k, n), m, n, k);
}

template <typename T>
void ParallelMatMul(T* c, MatrixView<T> a, MatrixView<T> b, int64_t m,
                    int64_t n, int64_t k) {
  // About 20 µs of multiplications, the least that is worth another thread.
  constexpr double kPart = 4e5;
  const double work = double(m) * double(n) * double(k);
  if (work < 2 * kPart) return MatMul(c, a, b, m, n, k);
  const Strided<T> left = MakeStrided(a, m, k);
  const Strided<T> right = MakeStrided(b, k, n);
  // Parts along the longer side, in whole tiles.
  const bool by_rows = m >= n;
  const int64_t unit = by_rows ? kTileRows : kTileColumns<T>;
  const int64_t units = ((by_rows ? m : n) + unit - 1) / unit;
  const auto grain = static_cast<int64_t>(kPart / (work / double(units))) + 1;
  ComputePool().ParallelFor(units, grain, [&](int64_t begin, int64_t end) {
    const int64_t from = begin * unit;
    if (by_rows) {
      StridedMatMul(c + from * n, n,
                    {left.at(from, 0), left.row_step, left.column_step}, right,
                    std::min(end * unit, m) - from, n, k);
    } else {
      StridedMatMul(c + from, n, left,
                    {right.at(0, from), right.row_step, right.column_step}, m,
                    std::min(end * unit, n) - from, k);
    }
  });
}

#define SLUICE_MATMUL(T)                                                   \
  template void MatMul(T*, MatrixView<T>, MatrixView<T>, int64_t, int64_t, \
                       int64_t);                                           \
  template void ParallelMatMul(T*, MatrixView<T>, MatrixView<T>, int64_t,  \
                               int64_t, int64_t);
SLUICE_MATMUL(float)
SLUICE_MATMUL(double)
SLUICE_MATMUL(int32_t)
SLUICE_MATMUL(int64_t)

}  // namespace sluice::numeric
