#include "sluice/base/clock.h"

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

}  // namespace sluice
