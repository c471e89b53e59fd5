// TimeLimit: a number of milliseconds that a user or a peer sent, fit to be
// added to any time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace sluice {

// At most a century: clocks count nanoseconds in 63 bits, which hold three.
inline constexpr std::chrono::milliseconds kCentury =
    std::chrono::hours(24 * 36500);

inline std::chrono::milliseconds TimeLimit(int64_t ms) {
  return std::min(std::chrono::milliseconds(ms), kCentury);
}

// The number of seconds in the environment variable `name`; what is longer than
// a century, "inf" too, is one. Nothing if it is not set or empty, and, with a
// warning, if it is no number or below `least`.
std::optional<std::chrono::milliseconds> SecondsFromEnvironment(
    const char* name, std::chrono::milliseconds least);

}  // namespace sluice
