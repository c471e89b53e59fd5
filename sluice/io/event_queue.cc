#include "sluice/io/event_queue.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>

#include "sluice/base/blocking_pool.h"
#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"
#include "sluice/io/event_file.h"

namespace sluice {

struct EventQueue::State : std::enable_shared_from_this<State> {
  using SteadyClock = std::chrono::steady_clock;

  State(FileSystem& files, Clock& clock, std::string logdir,
        const EventQueueOptions& options)
      : max_queue(std::max(1, options.max_queue)),
        flush_every(std::chrono::duration_cast<SteadyClock::duration>(
            std::chrono::duration<double>(
                std::clamp(options.flush_secs, 0.0, 1e6)))),
        events(files, clock, std::move(logdir), options.suffix) {}

  // Writes what waits; ends when there is nothing left to write or to flush.
  void Loop() SLUICE_NO_THREAD_SAFETY_ANALYSIS {
    mu.Lock();
    while (true) {
      if (!waiting.empty()) {
        WriteBatch();
      } else if (dirty && !closed) {
        if (SteadyClock::now() >= flush_at) {
          FlushNow();
        } else {
          wake.WaitUntil(mu, flush_at);
        }
      } else {
        break;
      }
    }
    running = false;
    idle.NotifyAll();
    mu.Unlock();
  }

  void WriteBatch() SLUICE_NO_THREAD_SAFETY_ANALYSIS {
    std::deque<std::string> batch;
    std::swap(batch, waiting);
    busy = true;
    mu.Unlock();
    absl::Status status;
    for (const std::string& event : batch) {
      absl::Status written = events.WriteSerialized(event);
      if (status.ok()) status = std::move(written);
    }
    mu.Lock();
    busy = false;
    dirty = true;
    Remember(status);
    room.NotifyAll();
    idle.NotifyAll();
    if (SteadyClock::now() >= flush_at) FlushNow();
  }

  void FlushNow() SLUICE_NO_THREAD_SAFETY_ANALYSIS {
    dirty = false;
    busy = true;
    mu.Unlock();
    const absl::Status status = events.Flush();
    mu.Lock();
    busy = false;
    flush_at = SteadyClock::now() + flush_every;
    Remember(status);
    idle.NotifyAll();
  }

  void Remember(const absl::Status& status) SLUICE_REQUIRES(mu) {
    if (status.ok() || !error.ok()) return;
    error = status;
    SLUICE_LOG(ERROR) << "Events are lost: " << status.message();
  }

  void WaitUntilIdle() SLUICE_REQUIRES(mu) {
    while (!waiting.empty() || busy) idle.Wait(mu);
  }

  const size_t max_queue;
  const SteadyClock::duration flush_every;
  EventWriter events;

  mutable Mutex mu;
  CondVar wake, room, idle;
  std::deque<std::string> waiting SLUICE_GUARDED_BY(mu);
  bool running SLUICE_GUARDED_BY(mu) = false;  // Whether a thread is in Loop.
  bool busy SLUICE_GUARDED_BY(mu) = false;     // It is at the file.
  bool dirty SLUICE_GUARDED_BY(mu) = false;    // Written, but not flushed.
  bool closed SLUICE_GUARDED_BY(mu) = false;
  // In the past at first: the first event is flushed at once.
  SteadyClock::time_point flush_at SLUICE_GUARDED_BY(mu);
  absl::Status error SLUICE_GUARDED_BY(mu);
};

EventQueue::EventQueue(FileSystem& files, Clock& clock, std::string logdir,
                       const EventQueueOptions& options)
    : state_(
          std::make_shared<State>(files, clock, std::move(logdir), options)) {}

EventQueue::~EventQueue() {
  Close().IgnoreError();  // It was logged.
}

void EventQueue::Add(std::string event) {
  State& s = *state_;
  MutexLock lock(s.mu);
  while (!s.closed && s.waiting.size() >= s.max_queue) s.room.Wait(s.mu);
  if (s.closed) return;
  s.waiting.push_back(std::move(event));
  if (s.running) {
    s.wake.NotifyOne();
    return;
  }
  s.running = true;
  RunBlocking([state = state_] { state->Loop(); });
}

absl::Status EventQueue::Flush() {
  State& s = *state_;
  MutexLock lock(s.mu);
  if (s.closed) return absl::OkStatus();
  s.WaitUntilIdle();
  if (!s.events.path().empty()) s.FlushNow();
  return std::exchange(s.error, absl::OkStatus());
}

absl::Status EventQueue::Close() {
  State& s = *state_;
  MutexLock lock(s.mu);
  if (s.closed) return absl::OkStatus();
  s.WaitUntilIdle();
  s.closed = true;
  s.dirty = false;
  s.wake.NotifyAll();
  s.room.NotifyAll();
  s.Remember(s.events.Close());
  return std::exchange(s.error, absl::OkStatus());
}

void EventQueue::Reopen() {
  MutexLock lock(state_->mu);
  state_->closed = false;
  state_->flush_at = {};
}

bool EventQueue::closed() const {
  MutexLock lock(state_->mu);
  return state_->closed;
}

std::string EventQueue::path() const { return state_->events.path(); }

}  // namespace sluice
