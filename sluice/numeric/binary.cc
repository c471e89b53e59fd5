#include "sluice/numeric/binary.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "sluice/numeric/activations.h"
#include "sluice/numeric/narrow.h"
#include "sluice/numeric/prefetch.h"
#include "sluice/numeric/simd.h"
#include "sluice/numeric/vector_math.h"

namespace sluice::numeric {
namespace {

template <typename T>
T TruncateDivide(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return x / y;
  } else {
    // The smallest integer divided by -1 traps on x86.
    if (y == 0) return 0;
    return y == -1 ? -x : x / y;
  }
}

template <typename T>
T TruncateModulo(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(x, y);
  } else {
    return y == 0 || y == -1 ? T(0) : x % y;
  }
}

template <typename T>
T FloorDivide(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::floor(x / y);
  } else {
    const T q = TruncateDivide(x, y);
    return TruncateModulo(x, y) != 0 && (x < 0) != (y < 0) ? q - 1 : q;
  }
}

template <typename T>
T FloorModulo(T x, T y) {
  const T m = TruncateModulo(x, y);
  return m != 0 && (m < 0) != (y < 0) ? m + y : m;
}

template <typename T>
T Power(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::pow(x, y);
  } else {
    if (y < 0) return 0;
    T result = 1;
    for (; y != 0; y >>= 1, x *= x) {
      if (y & 1) result *= x;
    }
    return result;
  }
}

template <BinaryOp op, typename T>
inline auto Apply(const T& x, const T& y) {
  using enum BinaryOp;
  if constexpr (op == kAdd) return static_cast<T>(x + y);
  if constexpr (op == kSub) return static_cast<T>(x - y);
  if constexpr (op == kMul) return static_cast<T>(x * y);
  if constexpr (op == kDiv) return TruncateDivide(x, y);
  if constexpr (op == kFloorDiv) return FloorDivide(x, y);
  if constexpr (op == kFloorMod) return FloorModulo(x, y);
  if constexpr (op == kTruncateMod) return TruncateModulo(x, y);
  // A NaN on the left stays, one on the right does not, as in TensorFlow.
  if constexpr (op == kMaximum) return x < y ? y : x;
  if constexpr (op == kMinimum) return y < x ? y : x;
  if constexpr (op == kPow) return Power(x, y);
  if constexpr (op == kSquaredDifference) {
    const T d = x - y;
    return static_cast<T>(d * d);
  }
  if constexpr (op == kAtan2) return std::atan2(x, y);
  if constexpr (op == kXdivy) return x == 0 ? T(0) : x / y;
  if constexpr (op == kXlogy) return x == 0 ? T(0) : x * Log(y);
  if constexpr (op == kDivNoNan) return y == 0 ? T(0) : x / y;
  if constexpr (op == kMulNoNan) return y == 0 ? T(0) : x * y;

  if constexpr (op == kSqrtGrad) return y * T(0.5) / x;
  if constexpr (op == kRsqrtGrad) return T(-0.5) * (y * x) * (x * x);
  if constexpr (op == kTanhGrad) return y * (T(1) - x * x);
  if constexpr (op == kSigmoidGrad) return y * x * (T(1) - x);
  if constexpr (op == kReciprocalGrad) return -y * (x * x);

  if constexpr (op == kReluGrad) return y > 0 ? x : T(0);
  if constexpr (op == kRelu6Grad) return ((y > 0) & (y < 6)) ? x : T(0);
  if constexpr (op == kEluGrad) return y < 0 ? (y + T(1)) * x : x;
  if constexpr (op == kSeluGrad) {
    return x * (y < 0 ? y + T(kSeluScale * kSeluAlpha) : T(kSeluScale));
  }
  if constexpr (op == kSoftplusGrad) return x / (Exp(-y) + T(1));
  if constexpr (op == kSoftsignGrad) {
    const T d = T(1) + (y < 0 ? -y : y);
    return x / (d * d);
  }

  if constexpr (op == kEqual) return x == y;
  if constexpr (op == kNotEqual) return x != y;
  if constexpr (op == kLess) return x < y;
  if constexpr (op == kLessEqual) return x <= y;
  if constexpr (op == kGreater) return x > y;
  if constexpr (op == kGreaterEqual) return x >= y;
  if constexpr (op == kAnd) return static_cast<T>(x & y);
  if constexpr (op == kOr) return static_cast<T>(x | y);
}

template <BinaryOp op, typename T, typename R>
void Loop(R* out, const T* a, int64_t a_step, const T* b, int64_t b_step,
          int64_t n) {
  // Each iteration reads only what it alone writes, so `out` may be an input.
  if (a_step != 0 && b_step != 0) {
    SLUICE_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = Apply<op>(a[i], b[i]);
  } else if (a_step != 0) {
    const T y = *b;
    SLUICE_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = Apply<op>(a[i], y);
  } else {
    const T x = *a;
    SLUICE_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = Apply<op>(x, b[i]);
  }
}

}  // namespace

template <BinaryOp op, typename T>
void WideMap(void* out, const void* a, int64_t a_step, const void* b,
             int64_t b_step, int64_t n);

template <BinaryOp op, typename T>
void NarrowMap(T* out, const T* a, int64_t a_step, const T* b, int64_t b_step,
               int64_t n) {
  float x[kNarrowBlock], y[kNarrowBlock];
  ForEachNarrowBlock(n, [&](int64_t begin, int64_t end) {
    const int64_t m = end - begin;
    Widen(a + begin * a_step, a_step, m, x);
    Widen(b + begin * b_step, b_step, m, y);
    BinaryMap<op, float>(x, x, 1, y, 1, m);
    Round(x, m, out + begin);
  });
}

template <BinaryOp op, typename T>
void BinaryMap(void* out, const void* a, int64_t a_step, const void* b,
               int64_t b_step, int64_t n) {
  if constexpr (kIsNarrow<T>) {
    NarrowMap<op>(static_cast<T*>(out), static_cast<const T*>(a), a_step,
                  static_cast<const T*>(b), b_step, n);
  } else {
    WideMap<op, T>(out, a, a_step, b, b_step, n);
  }
}

template <BinaryOp op, typename T>
void WideMap(void* out, const void* a, int64_t a_step, const void* b,
             int64_t b_step, int64_t n) {
  using R = decltype(Apply<op>(std::declval<T>(), std::declval<T>()));
  R* to = static_cast<R*>(out);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  if constexpr (op == BinaryOp::kPow && std::is_floating_point_v<T>) {
    // Squares are common, and pow costs 20 times a product.
    if (b_step == 0 && n > 0 && *y == T(2)) {
      return BinaryMap<BinaryOp::kMul, T>(out, a, a_step, a, a_step, n);
    }
  }
  Wide(n, [=] { Loop<op>(to, x, a_step, y, b_step, n); });
}

template <BinaryOp op, typename T, typename Index>
void BinaryRows(T* table, int64_t row, const Index* at, int64_t n,
                const T* updates, int64_t step) {
  Wide(n * row, [=] {
    for (int64_t i = 0; i < n; ++i) {
      if (i + kRowsAhead < n) {
        PrefetchRow<true>(table + at[i + kRowsAhead] * row, row * sizeof(T));
      }
      T* const to = table + at[i] * row;
      const T* const update = updates + i * row * step;
      if constexpr (kIsNarrow<T>) {
        NarrowMap<op>(to, to, 1, update, step, row);
      } else {
        Loop<op>(to, to, 1, update, step, row);
      }
    }
  });
}

template <typename T>
bool AnyZero(const T* x, int64_t n) {
  bool found = false;
  for (int64_t i = 0; i < n; ++i) found |= x[i] == 0;
  return found;
}

template <typename T>
bool AnyNegative(const T* x, int64_t n) {
  bool found = false;
  for (int64_t i = 0; i < n; ++i) found |= x[i] < 0;
  return found;
}

template <typename T>
void LeakyReluGrad(T* out, const T* grad, const T* features, T alpha,
                   int64_t n) {
  Wide(n, [=] {
    SLUICE_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      out[i] = features[i] > 0 ? grad[i] : alpha * grad[i];
    }
  });
}

#define SLUICE_BINARY(OP, T)                                            \
  template void BinaryMap<BinaryOp::OP, T>(void*, const void*, int64_t, \
                                           const void*, int64_t, int64_t);
#define SLUICE_BINARY_FLOAT(OP) \
  SLUICE_BINARY(OP, float)      \
  SLUICE_BINARY(OP, double)
#define SLUICE_BINARY_REAL(OP) \
  SLUICE_BINARY_FLOAT(OP)      \
  SLUICE_BINARY(OP, int32_t)   \
  SLUICE_BINARY(OP, int64_t)

#define SLUICE_BINARY_ROWS_OF(OP, T)                                           \
  template void BinaryRows<BinaryOp::OP>(T*, int64_t, const int32_t*, int64_t, \
                                         const T*, int64_t);                   \
  template void BinaryRows<BinaryOp::OP>(T*, int64_t, const int64_t*, int64_t, \
                                         const T*, int64_t);
#define SLUICE_BINARY_ROWS(OP)       \
  SLUICE_BINARY_ROWS_OF(OP, float)   \
  SLUICE_BINARY_ROWS_OF(OP, double)  \
  SLUICE_BINARY_ROWS_OF(OP, int32_t) \
  SLUICE_BINARY_ROWS_OF(OP, int64_t) \
  SLUICE_BINARY_ROWS_OF(OP, Half)    \
  SLUICE_BINARY_ROWS_OF(OP, BFloat16)

SLUICE_BINARY_ROWS(kAdd)
SLUICE_BINARY_ROWS(kSub)
SLUICE_BINARY_ROWS(kMul)
SLUICE_BINARY_ROWS(kDiv)
SLUICE_BINARY_ROWS(kMaximum)
SLUICE_BINARY_ROWS(kMinimum)
#define SLUICE_BINARY_NARROW(OP) \
  SLUICE_BINARY(OP, Half)        \
  SLUICE_BINARY(OP, BFloat16)
// For updates in place; ops on values widen whole tensors.
SLUICE_BINARY_NARROW(kAdd)
SLUICE_BINARY_NARROW(kSub)
SLUICE_BINARY_NARROW(kMul)
SLUICE_BINARY_NARROW(kDiv)
SLUICE_BINARY_NARROW(kMaximum)
SLUICE_BINARY_NARROW(kMinimum)

SLUICE_BINARY_REAL(kAdd)
SLUICE_BINARY_REAL(kSub)
SLUICE_BINARY_REAL(kMul)
SLUICE_BINARY_REAL(kDiv)
SLUICE_BINARY_REAL(kFloorDiv)
SLUICE_BINARY_REAL(kFloorMod)
SLUICE_BINARY_REAL(kTruncateMod)
SLUICE_BINARY_REAL(kMaximum)
SLUICE_BINARY_REAL(kMinimum)
SLUICE_BINARY_REAL(kPow)
SLUICE_BINARY_REAL(kSquaredDifference)
SLUICE_BINARY_FLOAT(kAtan2)
SLUICE_BINARY_FLOAT(kXdivy)
SLUICE_BINARY_FLOAT(kXlogy)
SLUICE_BINARY_FLOAT(kDivNoNan)
SLUICE_BINARY_FLOAT(kMulNoNan)
SLUICE_BINARY_FLOAT(kSqrtGrad)
SLUICE_BINARY_FLOAT(kRsqrtGrad)
SLUICE_BINARY_FLOAT(kTanhGrad)
SLUICE_BINARY_FLOAT(kSigmoidGrad)
SLUICE_BINARY_FLOAT(kReciprocalGrad)
SLUICE_BINARY_REAL(kReluGrad)
SLUICE_BINARY_REAL(kRelu6Grad)
SLUICE_BINARY_FLOAT(kEluGrad)
SLUICE_BINARY_FLOAT(kSeluGrad)
SLUICE_BINARY_FLOAT(kSoftplusGrad)
SLUICE_BINARY_FLOAT(kSoftsignGrad)
SLUICE_BINARY_REAL(kEqual)
SLUICE_BINARY_REAL(kNotEqual)
SLUICE_BINARY_REAL(kLess)
SLUICE_BINARY_REAL(kLessEqual)
SLUICE_BINARY_REAL(kGreater)
SLUICE_BINARY_REAL(kGreaterEqual)
SLUICE_BINARY(kEqual, bool)
SLUICE_BINARY(kNotEqual, bool)
SLUICE_BINARY(kAnd, bool)
SLUICE_BINARY(kOr, bool)
SLUICE_BINARY(kEqual, std::string)
SLUICE_BINARY(kNotEqual, std::string)
SLUICE_BINARY(kAdd, std::string)

template bool AnyZero(const int32_t*, int64_t);
template bool AnyZero(const int64_t*, int64_t);
template bool AnyNegative(const int32_t*, int64_t);
template bool AnyNegative(const int64_t*, int64_t);
template void LeakyReluGrad(float*, const float*, const float*, float, int64_t);
template void LeakyReluGrad(double*, const double*, const double*, double,
                            int64_t);

}  // namespace sluice::numeric
