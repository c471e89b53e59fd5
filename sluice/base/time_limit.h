// TimeLimit: a number of milliseconds that a user or a peer sent, fit to be
// added to any time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace sluice {

// At most a century: clocks count nanoseconds in 63 bits, which hold three.
inline std::chrono::milliseconds TimeLimit(int64_t ms) {
  constexpr std::chrono::milliseconds kCentury = std::chrono::hours(24 * 36500);
  return std::min(std::chrono::milliseconds(ms), kCentury);
}

}  // namespace sluice
