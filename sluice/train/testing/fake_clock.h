// A clock that stands still until the test moves it.
#pragma once

#include "sluice/base/clock.h"

namespace sluice {

class FakeClock : public Clock {
 public:
  SteadyTime Now() override {
    return SteadyTime(std::chrono::microseconds(micros_));
  }
  int64_t WallMicros() override { return micros_; }
  void SetSeconds(double seconds) {
    micros_ = static_cast<int64_t>(seconds * 1e6);
  }

 private:
  int64_t micros_ = 0;
};

}  // namespace sluice
