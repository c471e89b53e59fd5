#include "tests/simulation/scheduler.h"

#include "absl/strings/str_format.h"

namespace sluice::sim {
namespace {

// A timer or a task is never exactly on time.
constexpr nanoseconds kLongestDelay = milliseconds(1);
constexpr int kMostEventsOfAnEndedLife = 100000;

}  // namespace

void Trace::Add(SteadyTime now, const std::string& line) {
  const std::string text = absl::StrFormat(
      "%11.6f %s",
      std::chrono::duration<double>(now.time_since_epoch()).count(), line);
  for (const char c : text) {
    hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  if (keep_) lines_.push_back(text);
}

Scheduler::Scheduler(uint64_t seed) : chance_(seed), ids_(~seed) {
  SetSimulation(this);
}

Scheduler::~Scheduler() { SetSimulation(nullptr); }

int64_t Scheduler::WallMicros() {
  return std::chrono::duration_cast<microseconds>(now_.time_since_epoch())
      .count();
}

void Scheduler::CallLater(nanoseconds delay, Callback callback) {
  if (!alive(life_)) {
    // In order: one that comes again and again must not keep out those that
    // end it.
    After(delay, life_, std::move(callback));
    return;
  }
  After(delay + Between(nanoseconds(0), kLongestDelay), life_,
        std::move(callback));
}

void Scheduler::RunBlocking(Callback task) {
  CallLater(nanoseconds(0), std::move(task));
}

uint64_t Scheduler::RandomId() {
  if (!alive(life_)) return next_ended_id_++;
  const uint64_t id = ids_();
  return id == 0 ? 1 : id;
}

void Scheduler::At(SteadyTime when, Life life, Callback callback) {
  events_.emplace(std::pair(std::max(when, now_), next_event_++),
                  Event{life, std::move(callback)});
}

void Scheduler::RunAs(Life life, absl::AnyInvocable<void()> callback) {
  const Life before = std::exchange(life_, life);
  callback();
  life_ = before;
}

bool Scheduler::DrainEnded(Life life) {
  for (int ran = 0; ran < kMostEventsOfAnEndedLife; ++ran) {
    auto it = events_.begin();
    while (it != events_.end() && it->second.life != life) ++it;
    if (it == events_.end()) return true;
    Callback callback = std::move(it->second.callback);
    events_.erase(it);
    RunAs(life, std::move(callback));
  }
  return false;
}

bool Scheduler::RunOne(SteadyTime until) {
  if (events_.empty() || events_.begin()->first.first > until) {
    now_ = std::max(now_, until);
    return false;
  }
  auto first = events_.begin();
  now_ = first->first.first;
  Event event = std::move(first->second);
  events_.erase(first);
  RunAs(event.life, std::move(event.callback));
  return true;
}

bool Scheduler::Chance(double probability) {
  return static_cast<double>(chance_() >> 11) * 0x1p-53 < probability;
}

int64_t Scheduler::Between(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(chance_() %
                                    static_cast<uint64_t>(high - low + 1));
}

}  // namespace sluice::sim
