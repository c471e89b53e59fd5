// Halves and bfloat16 compute in float: a block of numbers is widened, worked
// on and rounded back, once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "sluice/base/half.h"

namespace sluice::numeric {

template <typename T>
inline constexpr bool kIsNarrow =
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// What a type computes in.
template <typename T>
using ArithmeticType = std::conditional_t<kIsNarrow<T>, float, T>;

// So many numbers are widened at a time.
inline constexpr int64_t kNarrowBlock = 256;

// Step 0 repeats the first.
template <typename T>
void Widen(const T* from, int64_t step, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i * step]);
}

template <typename T>
void Round(const float* from, int64_t n, T* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = T(from[i]);
}

// Calls body(begin, end) for blocks of [0, n).
template <typename Body>
void ForEachNarrowBlock(int64_t n, const Body& body) {
  for (int64_t begin = 0; begin < n; begin += kNarrowBlock) {
    body(begin, std::min(n, begin + kNarrowBlock));
  }
}

}  // namespace sluice::numeric
