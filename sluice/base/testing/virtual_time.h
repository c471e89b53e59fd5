// VirtualTime: a clock and timers for tests that must not wait.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "sluice/base/clock.h"
#include "sluice/base/mutex.h"
#include "sluice/base/simulation.h"

namespace sluice {

// While it lives, the engine's clock moves in Pass only. One at a time;
// thread-compatible.
class VirtualTime {
 public:
  VirtualTime() {
    machine().Reset();
    SetSimulation(&machine());
  }
  ~VirtualTime() {
    SetSimulation(nullptr);
    machine().Reset();
  }
  VirtualTime(const VirtualTime&) = delete;
  VirtualTime& operator=(const VirtualTime&) = delete;

  // Runs here and in order what becomes due meanwhile.
  void Pass(std::chrono::nanoseconds time) {
    const SteadyTime until = machine().Now() + time;
    while (auto callback = machine().TakeNext(until)) callback();
  }

 private:
  using Callback = absl::AnyInvocable<void()>;

  // Thread-safe.
  class Machine : public Simulation {
   public:
    SteadyTime Now() override {
      MutexLock lock(mu_);
      return now_;
    }
    int64_t WallMicros() override { return RealClock().WallMicros(); }
    void CallLater(std::chrono::nanoseconds delay, Callback callback) override {
      MutexLock lock(mu_);
      due_.emplace(now_ + delay, std::move(callback));
    }
    void RunBlocking(Callback task) override {
      CallLater(std::chrono::nanoseconds(0), std::move(task));
    }
    uint64_t RandomId() override {
      MutexLock lock(mu_);
      return ++last_id_;
    }

    // Moves the clock to what is due next, or to `until` if that comes first:
    // then there is nothing to call.
    Callback TakeNext(SteadyTime until) {
      MutexLock lock(mu_);
      const auto next = due_.begin();
      if (next == due_.end() || next->first > until) {
        now_ = until;
        return nullptr;
      }
      now_ = std::max(now_, next->first);
      Callback callback = std::move(next->second);
      due_.erase(next);
      return callback;
    }
    void Reset() {
      std::multimap<SteadyTime, Callback> dropped;  // Dies after the lock.
      MutexLock lock(mu_);
      dropped.swap(due_);
      now_ = RealClock().Now();
    }

   private:
    Mutex mu_;
    SteadyTime now_ SLUICE_GUARDED_BY(mu_);
    std::multimap<SteadyTime, Callback> due_ SLUICE_GUARDED_BY(mu_);
    uint64_t last_id_ SLUICE_GUARDED_BY(mu_) = 0;
  };

  // Never ended: threads that other tests left may still ask for the time.
  static Machine& machine() {
    static Machine* const machine = new Machine;
    return *machine;
  }
};

}  // namespace sluice
