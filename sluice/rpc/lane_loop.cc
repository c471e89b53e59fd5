#include "sluice/rpc/lane_loop.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "sluice/base/status.h"
#include "sluice/rpc/event.h"
#include "sluice/worker/worker.h"

namespace sluice {
namespace {

constexpr auto kTickPeriod = std::chrono::seconds(2);
// How long more news are looked for before the thread sleeps: about what it
// costs to wake it on another core.
constexpr auto kSpin = std::chrono::microseconds(60);
// Meanwhile whoever has work on this core goes first. Who then keeps it for
// long would be interrupted for a thread that wakes, but not for one that
// looks: so for a while, in which little is lost, it does not.
constexpr auto kGreedy = std::chrono::microseconds(500);
constexpr int kGreedyRest = 100;

thread_local const LaneLoop* own_loop = nullptr;

std::atomic<bool> are_parents{false};

epoll_event EventOf(uint32_t events, LaneLoop::Id id) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = id;
  return event;
}

}  // namespace

LaneLoop& LaneLoop::Next() {
  static const std::vector<LaneLoop*>* loops = [] {
    auto* made = new std::vector<LaneLoop*>;
    pthread_atfork(nullptr, nullptr, [] { are_parents = true; });
    for (int i = 0; i < PollingThreads(); ++i) {
      made->push_back(new LaneLoop);
      if (made->back()->epoll_ < 0) continue;
      std::thread([loop = made->back()] { loop->Run(); }).detach();
    }
    return made;
  }();
  static std::atomic<unsigned> next{0};
  return *(
      *loops)[next.fetch_add(1, std::memory_order_relaxed) % loops->size()];
}

bool LaneLoop::AreParents() {
  return are_parents.load(std::memory_order_relaxed);
}

LaneLoop::LaneLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

absl::Status LaneLoop::Add(int fd, std::shared_ptr<Watcher> watcher) {
  if (AreParents()) {
    return Unavailable("A process that was forked has no lanes");
  }
  Id id;
  {
    MutexLock lock(mu_);
    id = watcher->loop_id_ = next_++;
    watchers_[id] = std::move(watcher);
  }
  epoll_event event = EventOf(EPOLLIN, id);
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0) {
    return absl::OkStatus();
  }
  const int error = errno;
  Remove(id, fd);
  return Unavailable("A lane cannot be watched: ", strerror(error));
}

void LaneLoop::Watch(Id id, int fd, bool input, bool output) {
  epoll_event event = EventOf(
      (input ? uint32_t{EPOLLIN} : 0) | (output ? uint32_t{EPOLLOUT} : 0), id);
  // Fails only if it was removed meanwhile.
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void LaneLoop::Remove(Id id, int fd) {
  std::shared_ptr<Watcher> removed;
  MutexLock lock(mu_);
  if (const auto it = watchers_.find(id); it != watchers_.end()) {
    removed = std::move(it->second);
    watchers_.erase(it);
    epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  }
  if (own_loop == this) return;
  ++waiting_;
  while (running_ == id) returned_.Wait(mu_);
  --waiting_;
}

template <typename Visit>
void LaneLoop::Call(Id id, Visit visit) {
  std::shared_ptr<Watcher> watcher;
  {
    MutexLock lock(mu_);
    const auto it = watchers_.find(id);
    if (it == watchers_.end()) return;
    watcher = it->second;
    running_ = id;
  }
  visit(*watcher);
  watcher = nullptr;
  MutexLock lock(mu_);
  running_ = 0;
  if (waiting_ > 0) returned_.NotifyAll();
}

int LaneLoop::Wait(std::span<epoll_event> events,
                   std::chrono::milliseconds timeout) const {
  return std::max(
      0, epoll_wait(epoll_, events.data(), static_cast<int>(events.size()),
                    static_cast<int>(timeout.count())));
}

int LaneLoop::Spin(std::span<epoll_event> events) {
  SteadyTime now = RealClock().Now();
  if (now < next_spin_) return 0;
  const SteadyTime end = now + kSpin;
  do {
    const int count = Wait(events, std::chrono::milliseconds(0));
    if (count > 0) return count;
    const SteadyTime before = RealClock().Now();
    sched_yield();
    now = RealClock().Now();
    if (now - before > kGreedy) next_spin_ = now + kGreedyRest * (now - before);
  } while (now < end);
  return 0;
}

void LaneLoop::Run() {
  pthread_setname_np(pthread_self(), "sluice-lane");
  Worker::MarkNetworkThread();
  own_loop = this;
  SteadyTime next_tick = RealClock().Now() + kTickPeriod;
  std::array<epoll_event, 64> events;
  bool busy = false;  // There were events a moment ago.
  while (true) {
    int count = 0;
    if (busy) count = Spin(events);
    if (count == 0) count = Wait(events, kTickPeriod);
    busy = count > 0;
    for (int i = 0; i < count; ++i) {
      Call(events[i].data.u64, [happened = events[i].events](Watcher& watcher) {
        watcher.Ready(happened);
      });
    }
    if (CoarseNow() >= next_tick) {
      Tick();
      next_tick = RealClock().Now() + kTickPeriod;
    }
  }
}

void LaneLoop::Tick() {
  std::vector<Id> ids;
  {
    MutexLock lock(mu_);
    for (const auto& [id, watcher] : watchers_) ids.push_back(id);
  }
  const SteadyTime now = RealClock().Now();
  for (const Id id : ids) {
    Call(id, [now](Watcher& watcher) { watcher.Tick(now); });
  }
}

}  // namespace sluice
