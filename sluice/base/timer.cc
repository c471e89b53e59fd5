#include "sluice/base/timer.h"

#include <pthread.h>

#include <map>
#include <thread>
#include <utility>

#include "sluice/base/clock.h"
#include "sluice/base/mutex.h"
#include "sluice/base/simulation.h"

namespace sluice {
namespace {

struct Timers {
  Mutex mu;
  CondVar changed;
  std::multimap<SteadyTime, absl::AnyInvocable<void()>> pending
      SLUICE_GUARDED_BY(mu);

  Timers() {
    std::thread([this] { Loop(); }).detach();
  }

  void Add(SteadyTime when, absl::AnyInvocable<void()> callback) {
    MutexLock lock(mu);
    const auto added = pending.emplace(when, std::move(callback));
    if (added == pending.begin()) changed.NotifyOne();
  }

  void Loop() {
    pthread_setname_np(pthread_self(), "sluice-timer");
    while (true) TakeNext()();
  }

  absl::AnyInvocable<void()> TakeNext() {
    MutexLock lock(mu);
    while (true) {
      if (pending.empty()) {
        changed.Wait(mu);
        continue;
      }
      const auto first = pending.begin();
      if (RealClock().Now() >= first->first) {
        absl::AnyInvocable<void()> callback = std::move(first->second);
        pending.erase(first);
        return callback;
      }
      changed.WaitUntil(mu, first->first);
    }
  }
};

}  // namespace

void CallLater(std::chrono::nanoseconds delay,
               absl::AnyInvocable<void()> callback) {
  if (Simulation* simulation = TheSimulation()) {
    simulation->CallLater(delay, std::move(callback));
    return;
  }
  static Timers* timers = new Timers;  // Never ended.
  timers->Add(RealClock().Now() + delay, std::move(callback));
}

}  // namespace sluice
