#include "sluice/numeric/unary.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "sluice/numeric/activations.h"
#include "sluice/numeric/gamma.h"
#include "sluice/numeric/simd.h"
#include "sluice/numeric/vector_math.h"

namespace sluice::numeric {
namespace {

// std::lgamma writes a global, which is a race.
inline float LogGamma(float x) {
  int sign;
  return ::lgammaf_r(x, &sign);
}
inline double LogGamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

template <UnaryOp op, typename T>
inline auto Apply(T x) {
  using enum UnaryOp;
  if constexpr (op == kNeg) return static_cast<T>(-x);
  if constexpr (op == kAbs) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::abs(x);
    } else {
      return x < 0 ? static_cast<T>(-x) : x;
    }
  }
  if constexpr (op == kSign) {
    return static_cast<T>((x > 0) - (x < 0));
  }
  if constexpr (op == kSquare) return static_cast<T>(x * x);
  if constexpr (op == kReciprocal) {
    if constexpr (std::is_floating_point_v<T>) {
      return T(1) / x;
    } else {
      return x == 1 || x == -1 ? x : T(0);
    }
  }
  if constexpr (op == kSqrt) return std::sqrt(x);
  if constexpr (op == kRsqrt) return T(1) / std::sqrt(x);
  if constexpr (op == kExp) return Exp(x);
  if constexpr (op == kExpm1) return std::expm1(x);
  if constexpr (op == kLog) return Log(x);
  if constexpr (op == kLog1p) return Log1p(x);
  if constexpr (op == kSin) return std::sin(x);
  if constexpr (op == kCos) return std::cos(x);
  if constexpr (op == kTan) return std::tan(x);
  if constexpr (op == kAsin) return std::asin(x);
  if constexpr (op == kAcos) return std::acos(x);
  if constexpr (op == kAtan) return std::atan(x);
  if constexpr (op == kSinh) return std::sinh(x);
  if constexpr (op == kCosh) return std::cosh(x);
  if constexpr (op == kTanh) return Tanh(x);
  if constexpr (op == kAsinh) return std::asinh(x);
  if constexpr (op == kAcosh) return std::acosh(x);
  if constexpr (op == kAtanh) return std::atanh(x);
  if constexpr (op == kSigmoid) return Sigmoid(x);
  if constexpr (op == kErf) return std::erf(x);
  if constexpr (op == kErfc) return std::erfc(x);
  if constexpr (op == kLgamma) return LogGamma(x);
  if constexpr (op == kDigamma) return static_cast<T>(Digamma(x));
  if constexpr (op == kFloor) return std::floor(x);
  if constexpr (op == kCeil) return std::ceil(x);
  if constexpr (op == kRound) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::nearbyint(x);
    } else {
      return x;
    }
  }
  if constexpr (op == kRelu) return x < 0 ? T(0) : x;
  if constexpr (op == kRelu6) return x < 0 ? T(0) : (x > 6 ? T(6) : x);
  if constexpr (op == kElu) return x < 0 ? Exp(x) - T(1) : x;
  if constexpr (op == kSelu) {
    return x < 0 ? T(kSeluScale * kSeluAlpha) * (Exp(x) - T(1))
                 : T(kSeluScale) * x;
  }
  if constexpr (op == kSoftplus) {
    return (x > 0 ? x : T(0)) + Log1p(Exp(x > 0 ? -x : x));
  }
  if constexpr (op == kSoftsign) return x / (T(1) + (x < 0 ? -x : x));
  if constexpr (op == kIsNan) return x != x;
  if constexpr (op == kIsInf) {
    return std::abs(x) == std::numeric_limits<T>::infinity();
  }
  if constexpr (op == kIsFinite) {
    return std::abs(x) <= std::numeric_limits<T>::max();
  }
  if constexpr (op == kNot) return !x;
}

}  // namespace

template <UnaryOp op, typename T>
void UnaryMap(void* out, const void* x, int64_t n) {
  using R = decltype(Apply<op>(T()));
  R* to = static_cast<R*>(out);
  const T* from = static_cast<const T*>(x);
  Wide(n, [=] {
    SLUICE_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) to[i] = Apply<op>(from[i]);
  });
}

template <typename T>
void LeakyRelu(T* out, const T* x, T alpha, int64_t n) {
  Wide(n, [=] {
    SLUICE_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = x[i] > 0 ? x[i] : alpha * x[i];
  });
}

template <typename T>
T HalfSquaredNorm(const T* x, int64_t n) {
  // Several sums side by side, or the additions would wait for each other; and
  // in double, so that long arrays lose nothing.
  constexpr int kLanes = 8;
  double total = 0;
  Wide(n, [=, &total] {
    double sums[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int j = 0; j < kLanes; ++j) {
        const double v = x[i + j];
        sums[j] += v * v;
      }
    }
    for (; i < n; ++i) sums[0] += double(x[i]) * double(x[i]);
    for (double sum : sums) total += sum;
  });
  return static_cast<T>(total / 2);
}

#define SLUICE_UNARY(OP, T) \
  template void UnaryMap<UnaryOp::OP, T>(void*, const void*, int64_t);
#define SLUICE_UNARY_FLOAT(OP) \
  SLUICE_UNARY(OP, float)      \
  SLUICE_UNARY(OP, double)
#define SLUICE_UNARY_REAL(OP) \
  SLUICE_UNARY_FLOAT(OP)      \
  SLUICE_UNARY(OP, int32_t)   \
  SLUICE_UNARY(OP, int64_t)

SLUICE_UNARY_REAL(kNeg)
SLUICE_UNARY_REAL(kAbs)
SLUICE_UNARY_REAL(kSign)
SLUICE_UNARY_REAL(kSquare)
SLUICE_UNARY_REAL(kReciprocal)
SLUICE_UNARY_FLOAT(kSqrt)
SLUICE_UNARY_FLOAT(kRsqrt)
SLUICE_UNARY_FLOAT(kExp)
SLUICE_UNARY_FLOAT(kExpm1)
SLUICE_UNARY_FLOAT(kLog)
SLUICE_UNARY_FLOAT(kLog1p)
SLUICE_UNARY_FLOAT(kSin)
SLUICE_UNARY_FLOAT(kCos)
SLUICE_UNARY_FLOAT(kTan)
SLUICE_UNARY_FLOAT(kAsin)
SLUICE_UNARY_FLOAT(kAcos)
SLUICE_UNARY_FLOAT(kAtan)
SLUICE_UNARY_FLOAT(kSinh)
SLUICE_UNARY_FLOAT(kCosh)
SLUICE_UNARY_FLOAT(kTanh)
SLUICE_UNARY_FLOAT(kAsinh)
SLUICE_UNARY_FLOAT(kAcosh)
SLUICE_UNARY_FLOAT(kAtanh)
SLUICE_UNARY_FLOAT(kSigmoid)
SLUICE_UNARY_FLOAT(kErf)
SLUICE_UNARY_FLOAT(kErfc)
SLUICE_UNARY_FLOAT(kLgamma)
SLUICE_UNARY_FLOAT(kDigamma)
SLUICE_UNARY_FLOAT(kFloor)
SLUICE_UNARY_FLOAT(kCeil)
SLUICE_UNARY_REAL(kRound)
SLUICE_UNARY_REAL(kRelu)
SLUICE_UNARY_REAL(kRelu6)
SLUICE_UNARY_FLOAT(kElu)
SLUICE_UNARY_FLOAT(kSelu)
SLUICE_UNARY_FLOAT(kSoftplus)
SLUICE_UNARY_FLOAT(kSoftsign)
SLUICE_UNARY_FLOAT(kIsNan)
SLUICE_UNARY_FLOAT(kIsInf)
SLUICE_UNARY_FLOAT(kIsFinite)
SLUICE_UNARY(kNot, bool)

template void LeakyRelu(float*, const float*, float, int64_t);
template void LeakyRelu(double*, const double*, double, int64_t);
template float HalfSquaredNorm(const float*, int64_t);
template double HalfSquaredNorm(const double*, int64_t);

}  // namespace sluice::numeric
