// Float functions that a compiler can turn into vector code: no branches, no
// table, no call. Within 3 ulp of the true value; NaN, infinities and denormal
// results are right. Coefficients are our own minimax fits.
//
// The overloads for double are the standard ones, which are not vectorised.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace sluice::numeric {

inline double Exp(double x) { return std::exp(x); }
inline double Log(double x) { return std::log(x); }
inline double Log1p(double x) { return std::log1p(x); }
inline double Tanh(double x) { return std::tanh(x); }

inline float Exp(float x) {
  // Beyond these the result is 0 or infinite anyway. A NaN passes both.
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  // Adding this leaves x / ln 2, rounded to an integer, in the low bits.
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23
  const float rounded = x * 1.44269504f + kRounder;
  const float n = rounded - kRounder;
  // ln 2 in two parts; the first has few bits, so that n * it is exact.
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float q = 1.3942166e-03f;
  q = q * r + 8.363776e-03f;
  q = q * r + 4.1666362e-02f;
  q = q * r + 1.6666573e-01f;
  q = q * r + 0.5f;
  const float p = (q * r) * r + r + 1.0f;
  // 2^n in two steps, since n may lie outside of what one float can hold.
  const int32_t exponent =
      std::bit_cast<int32_t>(rounded) - std::bit_cast<int32_t>(kRounder);
  const int32_t half = exponent >> 1;
  const float a = std::bit_cast<float>((half + 127) << 23);
  const float b = std::bit_cast<float>((exponent - half + 127) << 23);
  return p * a * b;
}

inline float Log(float x) {
  // Denormals are scaled up first.
  const bool tiny = x < 1.17549435e-38f;
  const float scaled = tiny ? x * 8388608.0f : x;
  const int32_t bits = std::bit_cast<int32_t>(scaled);
  // Splits so that the mantissa lies in [sqrt(1/2), sqrt(2)).
  const int32_t shifted = bits - 0x3f3504f3;
  const int32_t exponent = shifted >> 23;
  const float f =
      std::bit_cast<float>((shifted & 0x007fffff) + 0x3f3504f3) - 1.0f;
  const float e = static_cast<float>(exponent) - (tiny ? 23.0f : 0.0f);
  float p = 6.91554e-02f;
  p = p * f - 1.1789865e-01f;
  p = p * f + 1.1872926e-01f;
  p = p * f - 1.2384335e-01f;
  p = p * f + 1.4218664e-01f;
  p = p * f - 1.6669253e-01f;
  p = p * f + 2.0002227e-01f;
  p = p * f - 2.4999987e-01f;
  p = p * f + 3.333331e-01f;
  const float f2 = f * f;
  float y = p * f * f2 - e * 2.12194440e-4f;
  y = y - 0.5f * f2;
  y = (f + y) + e * 0.693359375f;
  const float infinity = std::bit_cast<float>(0x7f800000);
  y = x == infinity ? infinity : y;
  y = x == 0 ? -infinity : y;
  // Also true for NaN.
  return !(x >= 0) ? std::bit_cast<float>(0x7fc00000) : y;
}

inline float Log1p(float x) {
  const float u = 1.0f + x;
  // The factor undoes what rounding 1 + x has lost. u == x for infinity.
  const float ratio = u == x ? 1.0f : x / (u - 1.0f);
  const float y = Log(u) * ratio;
  return u == 1.0f ? x : y;
}

inline float Tanh(float x) {
  const float magnitude = x < 0 ? -x : x;
  const float z = x * x;
  float p = -6.113193e-03f;
  p = p * z + 2.1010082e-02f;
  p = p * z - 5.385407e-02f;
  p = p * z + 1.3332795e-01f;
  p = p * z - 3.3333328e-01f;
  const float small = x + x * z * p;
  const float large = 1.0f - 2.0f / (Exp(magnitude + magnitude) + 1.0f);
  const float signed_large = x < 0 ? -large : large;
  return magnitude < 0.625f ? small : signed_large;
}

template <typename T>
inline T Sigmoid(T x) {
  return T(1) / (T(1) + Exp(-x));
}

}  // namespace sluice::numeric
