#include "sluice/base/patience.h"

namespace sluice {

thread_local Patience* Patience::current_ = nullptr;

void Patience::AskIfDue() {
  constexpr auto kPeriod = std::chrono::milliseconds(100);
  const SteadyTime now = CoarseNow();
  if (next_ == SteadyTime()) next_ = now + kPeriod;
  if (now < next_) return;
  next_ = now + kPeriod;
  ask_();
}

}  // namespace sluice
