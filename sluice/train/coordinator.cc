#include "sluice/train/coordinator.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_join.h"
#include "sluice/base/blocking_pool.h"
#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

std::chrono::steady_clock::time_point After(Coordinator::Seconds time) {
  // Longer waits than a day are for ever, and would overflow.
  const auto seconds = std::min(time, Coordinator::Seconds(86400));
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::nanoseconds>(seconds);
}

}  // namespace

struct Coordinator::State {
  const std::vector<absl::StatusCode> clean;
  mutable Mutex mu;
  mutable CondVar changed;
  bool stop SLUICE_GUARDED_BY(mu) = false;
  absl::Status error SLUICE_GUARDED_BY(mu);
  int64_t next_thread SLUICE_GUARDED_BY(mu) = 0;
  std::map<int64_t, std::string> threads SLUICE_GUARDED_BY(mu);

  explicit State(std::vector<absl::StatusCode> codes)
      : clean(std::move(codes)) {}

  void RequestStop(absl::Status reason) {
    bool report = false;
    {
      MutexLock lock(mu);
      if (std::ranges::count(clean, reason.code()) > 0) {
        reason = absl::OkStatus();
      }
      if (stop) return;
      report = !reason.ok();
      error = reason;
      stop = true;
      changed.NotifyAll();
    }
    if (report) {
      SLUICE_LOG(INFO) << "Error reported to Coordinator: "
                       << StatusText(reason);
    }
  }

  bool WaitForStop(std::chrono::steady_clock::time_point deadline) const {
    MutexLock lock(mu);
    while (!stop) {
      if (!changed.WaitUntil(mu, deadline)) return stop;
    }
    return true;
  }
};

Coordinator::Coordinator(std::vector<absl::StatusCode> clean_stop_codes)
    : state_(std::make_shared<State>(std::move(clean_stop_codes))) {}

void Coordinator::RequestStop(absl::Status error) {
  state_->RequestStop(std::move(error));
}

bool Coordinator::ShouldStop() const {
  MutexLock lock(state_->mu);
  return state_->stop;
}

bool Coordinator::WaitForStop(Seconds timeout) const {
  return state_->WaitForStop(After(timeout));
}

absl::Status Coordinator::error() const {
  MutexLock lock(state_->mu);
  return state_->error;
}

void Coordinator::ClearStop() {
  MutexLock lock(state_->mu);
  state_->stop = false;
  state_->error = absl::OkStatus();
}

void Coordinator::Start(std::string name, std::function<absl::Status()> body) {
  int64_t id;
  {
    MutexLock lock(state_->mu);
    id = state_->next_thread++;
    state_->threads[id] = std::move(name);
  }
  RunBlocking([state = state_, id, body = std::move(body)]() mutable {
    if (absl::Status status = body(); !status.ok()) {
      state->RequestStop(std::move(status));
    }
    body = nullptr;  // What it holds goes before the thread counts as ended.
    MutexLock lock(state->mu);
    state->threads.erase(id);
    state->changed.NotifyAll();
  });
}

void Coordinator::StartLoop(std::string name, Seconds interval,
                            std::function<absl::Status()> body) {
  Start(std::move(name),
        [state = state_, interval, body = std::move(body)]() -> absl::Status {
          auto next = std::chrono::steady_clock::now();
          while (!state->WaitForStop(next)) {
            next +=
                std::chrono::duration_cast<std::chrono::nanoseconds>(interval);
            SLUICE_RETURN_IF_ERROR(body());
          }
          return absl::OkStatus();
        });
}

bool Coordinator::JoinFor(Seconds timeout) {
  const auto deadline = After(timeout);
  MutexLock lock(state_->mu);
  while (!state_->threads.empty()) {
    if (!state_->changed.WaitUntil(state_->mu, deadline)) break;
  }
  return state_->threads.empty();
}

std::vector<std::string> Coordinator::live_threads() const {
  std::vector<std::string> names;
  MutexLock lock(state_->mu);
  names.reserve(state_->threads.size());
  for (const auto& [id, name] : state_->threads) names.push_back(name);
  return names;
}

absl::Status Coordinator::Join(Seconds grace, bool ignore_live_threads) {
  {
    MutexLock lock(state_->mu);
    while (!state_->threads.empty() && !state_->stop) {
      state_->changed.Wait(state_->mu);
    }
  }
  JoinFor(grace);
  if (absl::Status status = error(); !status.ok()) return status;
  const std::vector<std::string> live = live_threads();
  if (live.empty()) return absl::OkStatus();
  const std::string text =
      StrCat("Coordinator stopped with threads still running: ",
             absl::StrJoin(live, " "));
  if (!ignore_live_threads) return FailedPrecondition(text);
  SLUICE_LOG(INFO) << text;
  return absl::OkStatus();
}

}  // namespace sluice
