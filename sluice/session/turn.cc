#include "sluice/session/turn.h"

#include <algorithm>
#include <chrono>

#include "sluice/base/status.h"
#include "sluice/base/time_limit.h"

namespace sluice {
namespace {

// How often a blocked call asks whether it was interrupted.
constexpr auto kPollPeriod = std::chrono::milliseconds(100);

}  // namespace

std::optional<SteadyTime> DeadlineIn(int64_t ms) {
  if (ms <= 0) return std::nullopt;
  return std::chrono::steady_clock::now() + TimeLimit(ms);
}

SteadyTime Limit::NextLook() const {
  const SteadyTime poll = std::chrono::steady_clock::now() + kPollPeriod;
  return deadline ? std::min(*deadline, poll) : poll;
}

bool Limit::CancelIfReached(Cancel cancel) const {
  if (deadline && std::chrono::steady_clock::now() >= *deadline) {
    cancel(DeadlineExceeded(timed_out));
  } else if (interrupted && interrupted()) {
    cancel(Cancelled("Interrupted"));
  } else {
    return false;
  }
  return true;
}

absl::Status Turn::Take(const Limit& limit, Cancellation& call) {
  while (!TakeUntil(limit.NextLook())) {
    limit.CancelIfReached([&](const absl::Status& why) { call.Cancel(why); });
    if (call.cancelled()) return call.status();
  }
  return absl::OkStatus();
}

void Turn::GiveBack() {
  MutexLock lock(mu_);
  taken_ = false;
  free_.NotifyAll();
}

bool Turn::TakeUntil(SteadyTime until) {
  MutexLock lock(mu_);
  while (taken_) {
    if (!free_.WaitUntil(mu_, until) && taken_) return false;
  }
  return taken_ = true;
}

}  // namespace sluice
