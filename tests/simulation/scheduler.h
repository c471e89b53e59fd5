// Scheduler: one thread, a virtual clock, and a seed that decides the order of
// everything. docs/simulation.md
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/simulation.h"

namespace sluice::sim {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// One life of a task, from its start to its end. Events belong to the life that
// asked for them, and end with it.
using Life = int;
inline constexpr Life kOutside = 0;  // The client and the simulation itself.

// What happened, line by line; two runs of a seed have the same.
class Trace {
 public:
  explicit Trace(bool keep) : keep_(keep) {}
  void Add(SteadyTime now, const std::string& line);
  uint64_t hash() const { return hash_; }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  const bool keep_;
  uint64_t hash_ = 0xcbf29ce484222325;
  std::vector<std::string> lines_;
};

// Thread-compatible: there is one thread. The engine asks it while it lives.
class Scheduler : public Simulation {
 public:
  using Callback = absl::AnyInvocable<void()>;

  explicit Scheduler(uint64_t seed);
  ~Scheduler() override;
  Scheduler(const Scheduler&) = delete;

  SteadyTime Now() override { return now_; }
  int64_t WallMicros() override;
  void CallLater(nanoseconds delay, Callback callback) override;
  void RunBlocking(Callback task) override;
  uint64_t RandomId() override;

  Life NewLife() { return ++lives_; }
  // The life whose code is running.
  Life life() const { return life_; }
  bool alive(Life life) const { return !dead_.contains(life); }
  void At(SteadyTime when, Life life, Callback callback);
  void After(nanoseconds delay, Life life, Callback callback) {
    At(now_ + delay, life, std::move(callback));
  }
  // Runs `callback` as code of `life`.
  void RunAs(Life life, absl::AnyInvocable<void()> callback);
  // From now on nothing of `life` counts: what it does goes to nobody.
  void End(Life life) { dead_.insert(life); }
  // Runs what an ended life has still to do; false if that does not end.
  bool DrainEnded(Life life);

  // Runs the next event, moving the clock to it. False if there is none up to
  // `until`; the clock is then there.
  bool RunOne(SteadyTime until);
  size_t num_events() const { return events_.size(); }

  // Chance of the faults and of the program, in one stream.
  bool Chance(double probability);
  int64_t Between(int64_t low, int64_t high);  // Both included.
  nanoseconds Between(nanoseconds low, nanoseconds high) {
    return nanoseconds(Between(low.count(), high.count()));
  }

 private:
  struct Event {
    Life life;
    Callback callback;
  };
  SteadyTime now_;
  Life lives_ = kOutside;
  Life life_ = kOutside;
  std::set<Life> dead_;
  // Events of one moment run in the order in which they were asked for.
  std::map<std::pair<SteadyTime, uint64_t>, Event> events_;
  uint64_t next_event_ = 0;
  std::mt19937_64 chance_;
  std::mt19937_64 ids_;
  // Ended lives must not disturb the others' numbers.
  uint64_t next_ended_id_ = 1;
};

}  // namespace sluice::sim
