// Clock: where the engine asks for time, so that a simulation can answer.
#pragma once

#include <chrono>
#include <cstdint>

namespace sluice {

using SteadyTime = std::chrono::steady_clock::time_point;

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic, for deadlines and durations.
  virtual SteadyTime Now() = 0;
  // Microseconds since 1970, for what people and files read.
  virtual int64_t WallMicros() = 0;
};

// The machine's clock; lives for ever.
Clock& RealClock();

// RealClock().Now() to some milliseconds, at a fifth of its cost: for what only
// people read. The simulation's, if there is one.
SteadyTime CoarseNow();

}  // namespace sluice
