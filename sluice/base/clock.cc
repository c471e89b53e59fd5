#include "sluice/base/clock.h"

#include <time.h>

#include "sluice/base/simulation.h"

namespace sluice {
namespace {

class MachineClock : public Clock {
 public:
  SteadyTime Now() override { return std::chrono::steady_clock::now(); }
  int64_t WallMicros() override {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
};

}  // namespace

Clock& RealClock() {
  static MachineClock* clock = new MachineClock;
  return *clock;
}

SteadyTime CoarseNow() {
  if (Simulation* simulation = TheSimulation()) return simulation->Now();
  // steady_clock is CLOCK_MONOTONIC; this one ticks with it.
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return SteadyTime(std::chrono::seconds(now.tv_sec) +
                    std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace sluice
