// StepTimer: when a hook acts, every so many seconds or steps.
#pragma once

#include <cstdint>
#include <optional>

#include "sluice/base/clock.h"

namespace sluice {

// Thread-compatible.
class StepTimer {
 public:
  // Exactly one is above 0; a timer with neither never triggers.
  StepTimer(double every_secs, int64_t every_steps, Clock& clock = RealClock())
      : every_secs_(every_secs), every_steps_(every_steps), clock_(clock) {}

  void Reset() {
    step_.reset();
    time_.reset();
  }

  // The first time always; never twice for one step.
  bool ShouldTrigger(int64_t step) const;

  struct Elapsed {
    double seconds;
    int64_t steps;
  };
  // Remembers that the hook acted; since the last time, if there was one.
  std::optional<Elapsed> Triggered(int64_t step);

  std::optional<int64_t> last_step() const { return step_; }

 private:
  const double every_secs_;
  const int64_t every_steps_;
  Clock& clock_;
  std::optional<int64_t> step_;
  std::optional<SteadyTime> time_;
};

}  // namespace sluice
