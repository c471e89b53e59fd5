#include "sluice/numeric/reduce.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "sluice/base/thread_pool.h"
#include "sluice/numeric/simd.h"

namespace sluice::numeric {
namespace {

// Elements that one part of a split reduction takes; about 20 µs of work.
constexpr int64_t kPart = 64 << 10;
// Sums of floats run this far in float before they go to a double.
constexpr int64_t kBlock = 1024;

template <ReduceOp op, typename T>
constexpr T Neutral() {
  using Limits = std::numeric_limits<T>;
  if constexpr (op == ReduceOp::kSum || op == ReduceOp::kOr) return T(0);
  if constexpr (op == ReduceOp::kProd || op == ReduceOp::kAnd) return T(1);
  if constexpr (op == ReduceOp::kMax) {
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  if constexpr (op == ReduceOp::kMin) {
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
}

template <ReduceOp op, typename T>
inline T Combine(T a, T b) {
  if constexpr (op == ReduceOp::kSum) return static_cast<T>(a + b);
  if constexpr (op == ReduceOp::kProd) return static_cast<T>(a * b);
  // A NaN is kept on whichever side it comes.
  if constexpr (op == ReduceOp::kMax) return a > b || a != a ? a : b;
  if constexpr (op == ReduceOp::kMin) return a < b || a != a ? a : b;
  if constexpr (op == ReduceOp::kAnd) return a & b;
  if constexpr (op == ReduceOp::kOr) return a | b;
}

// Several results side by side, or each step would wait for the one before.
template <ReduceOp op, typename T>
inline T ReduceBlock(const T* in, int64_t n) {
  constexpr int kLanes = 64 / sizeof(T) < 16 ? 16 : 64 / sizeof(T);
  T total = Neutral<op, T>();
  int64_t i = 0;
  if (n >= kLanes) {
    T lanes[kLanes];
    for (int j = 0; j < kLanes; ++j) lanes[j] = in[j];
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      for (int j = 0; j < kLanes; ++j) {
        lanes[j] = Combine<op>(lanes[j], in[i + j]);
      }
    }
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int j = 0; j < width; ++j) {
        lanes[j] = Combine<op>(lanes[j], lanes[j + width]);
      }
    }
    total = lanes[0];
  }
  for (; i < n; ++i) total = Combine<op>(total, in[i]);
  return total;
}

// One result from `n` elements that follow each other.
template <ReduceOp op, typename T>
T ReduceRow(const T* in, int64_t n) {
  T result;
  Wide(n, [=, &result] {
    if constexpr (op == ReduceOp::kSum && std::is_same_v<T, float>) {
      double total = 0;
      for (int64_t i = 0; i < n; i += kBlock) {
        total += ReduceBlock<op>(in + i, std::min(kBlock, n - i));
      }
      result = static_cast<float>(total);
    } else {
      result = ReduceBlock<op>(in, n);
    }
  });
  return result;
}

// out[j] = out[j] op in[r][j] for all rows r.
template <ReduceOp op, typename T>
void ReduceRows(T* out, const T* in, int64_t rows, int64_t columns) {
  Wide(columns, [=] {
    const T* row = in;
    for (int64_t r = 0; r < rows; ++r, row += columns) {
      SLUICE_INDEPENDENT
      for (int64_t j = 0; j < columns; ++j) {
        out[j] = Combine<op>(out[j], row[j]);
      }
    }
  });
}

// `out` holds neutral elements or earlier results.
template <ReduceOp op, typename T>
void ReduceInto(T* out, const T* in, std::span<const int64_t> sizes,
                bool reduced) {
  if (sizes.size() == 1) {
    if (reduced) {
      *out = Combine<op>(*out, ReduceRow<op>(in, sizes[0]));
    } else {
      ReduceRows<op>(out, in, 1, sizes[0]);
    }
    return;
  }
  if (sizes.size() == 2 && reduced) {
    ReduceRows<op>(out, in, sizes[0], sizes[1]);
    return;
  }
  if (sizes.size() == 2) {
    for (int64_t i = 0; i < sizes[0]; ++i) {
      out[i] = Combine<op>(out[i], ReduceRow<op>(in + i * sizes[1], sizes[1]));
    }
    return;
  }
  int64_t in_step = 1;
  int64_t out_step = 1;
  for (size_t i = 1; i < sizes.size(); ++i) {
    in_step *= sizes[i];
    const bool kept = (i % 2 == 1) == reduced;
    if (kept) out_step *= sizes[i];
  }
  for (int64_t i = 0; i < sizes[0]; ++i) {
    ReduceInto<op>(reduced ? out : out + i * out_step, in + i * in_step,
                   sizes.subspan(1), !reduced);
  }
}

// Splits the outermost dimension, which is kept: the parts are independent.
template <ReduceOp op, typename T>
void ReduceKept(T* out, const T* in, std::span<const int64_t> sizes,
                int64_t in_step, int64_t out_step) {
  const int64_t grain =
      std::max<int64_t>(1, kPart / std::max<int64_t>(1, in_step));
  ComputePool().ParallelFor(sizes[0], grain, [&](int64_t begin, int64_t end) {
    absl::InlinedVector<int64_t, 8> part(sizes.begin(), sizes.end());
    part[0] = end - begin;
    ReduceInto<op>(out + begin * out_step, in + begin * in_step,
                   std::span<const int64_t>(part.data(), part.size()), false);
  });
}

// Splits the outermost dimension, which is reduced: each part gets a result of
// its own, and these are combined in order.
template <ReduceOp op, typename T>
void ReduceParts(T* out, const T* in, std::span<const int64_t> sizes,
                 int64_t in_step, int64_t kept) {
  const int64_t rows =
      std::max<int64_t>(1, kPart / std::max<int64_t>(1, in_step));
  const int64_t parts = (sizes[0] + rows - 1) / rows;
  // Not std::vector: that of bool has no elements to point to.
  const auto partial = std::make_unique<T[]>(parts * kept);
  std::fill_n(partial.get(), parts * kept, Neutral<op, T>());
  ComputePool().ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
    absl::InlinedVector<int64_t, 8> part(sizes.begin(), sizes.end());
    for (int64_t p = begin; p < end; ++p) {
      part[0] = std::min(rows, sizes[0] - p * rows);
      ReduceInto<op>(partial.get() + p * kept, in + p * rows * in_step,
                     std::span<const int64_t>(part.data(), part.size()), true);
    }
  });
  ReduceRows<op>(out, partial.get(), parts, kept);
}

}  // namespace

ReducePlan::ReducePlan(std::span<const int64_t> dims,
                       std::span<const bool> is_reduced) {
  bool last = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    (is_reduced[i] ? reduced : kept) *= dims[i];
    if (dims[i] == 1) continue;
    if (sizes.empty()) {
      first_is_reduced = is_reduced[i];
      sizes.push_back(dims[i]);
    } else if (is_reduced[i] == last) {
      sizes.back() *= dims[i];
    } else {
      sizes.push_back(dims[i]);
    }
    last = is_reduced[i];
  }
  if (sizes.empty()) sizes.push_back(1);
}

template <ReduceOp op, typename T>
void Reduce(T* out, const T* in, const ReducePlan& plan) {
  const int64_t size = plan.kept * plan.reduced;
  const std::span<const int64_t> sizes(plan.sizes.data(), plan.sizes.size());
  // The commonest: everything, not much of it.
  if (plan.kept == 1 && size > 0 && size <= kPart) {
    *out = ReduceRow<op>(in, size);
    return;
  }
  std::fill_n(out, plan.kept, Neutral<op, T>());
  if (size == 0) return;
  if (size <= 2 * kPart || sizes[0] < 2) {
    ReduceInto<op>(out, in, sizes, plan.first_is_reduced);
  } else if (!plan.first_is_reduced) {
    ReduceKept<op>(out, in, sizes, size / sizes[0], plan.kept / sizes[0]);
  } else if (plan.kept <= kPart / 8) {
    ReduceParts<op>(out, in, sizes, size / sizes[0], plan.kept);
  } else {
    ReduceInto<op>(out, in, sizes, true);
  }
}

template <typename T, typename Index>
void ArgExtreme(Index* out, const T* in, int64_t outer, int64_t size,
                int64_t inner, bool largest) {
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const T* at = in + o * size * inner + i;
      T best = at[0];
      int64_t index = 0;
      for (int64_t k = 1; k < size; ++k) {
        const T value = at[k * inner];
        if (largest ? value > best : value < best) {
          best = value;
          index = k;
        }
      }
      out[o * inner + i] = static_cast<Index>(index);
    }
  }
}

template <typename T>
void Scan(T* out, const T* in, int64_t outer, int64_t size, int64_t inner,
          ScanOptions options) {
  const int64_t step = options.reverse ? -inner : inner;
  for (int64_t o = 0; o < outer; ++o) {
    const int64_t first =
        o * size * inner + (options.reverse ? (size - 1) * inner : 0);
    for (int64_t i = 0; i < inner; ++i) {
      const T* from = in + first + i;
      T* to = out + first + i;
      T total = options.product ? T(1) : T(0);
      for (int64_t k = 0; k < size; ++k, from += step, to += step) {
        const T value = *from;
        if (options.exclusive) *to = total;
        total = options.product ? total * value : total + value;
        if (!options.exclusive) *to = total;
      }
    }
  }
}

#define SLUICE_REDUCE(OP, T) \
  template void Reduce<ReduceOp::OP, T>(T*, const T*, const ReducePlan&);
#define SLUICE_REDUCE_REAL(T)                                             \
  SLUICE_REDUCE(kSum, T)                                                  \
  SLUICE_REDUCE(kProd, T)                                                 \
  SLUICE_REDUCE(kMax, T)                                                  \
  SLUICE_REDUCE(kMin, T)                                                  \
  template void ArgExtreme(int32_t*, const T*, int64_t, int64_t, int64_t, \
                           bool);                                         \
  template void ArgExtreme(int64_t*, const T*, int64_t, int64_t, int64_t, \
                           bool);                                         \
  template void Scan(T*, const T*, int64_t, int64_t, int64_t, ScanOptions);

SLUICE_REDUCE_REAL(float)
SLUICE_REDUCE_REAL(double)
SLUICE_REDUCE_REAL(int32_t)
SLUICE_REDUCE_REAL(int64_t)
SLUICE_REDUCE(kAnd, bool)
SLUICE_REDUCE(kOr, bool)

}  // namespace sluice::numeric
