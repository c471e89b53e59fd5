// Tasks that a session is not open on and that a step turns out to need: it was
// opened without them, or they were restarted.

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/master/connect.h"
#include "sluice/master/session.h"
#include "sluice/master/session_state.h"

namespace sluice {

SessionTasks::SessionTasks(std::vector<ConnectedTask> tasks,
                           const std::string& own_task) {
  std::ranges::sort(tasks, {}, [&](const ConnectedTask& task) {
    return std::pair(task.name != own_task, task.name);
  });
  for (ConnectedTask& task : tasks) {
    if (!task.missing.empty()) {
      absent.insert(absent.end(), task.devices.begin(), task.devices.end());
      if (task.devices.empty()) {
        DeviceInfo& device = absent.emplace_back();
        device.text = StrCat(task.name, "/device:CPU:0");
        // The name was parsed when the tasks were asked.
        device.name = *DeviceName::Parse(device.text);
      }
      left_out.push_back(std::move(task));
      continue;
    }
    devices.insert(devices.end(), task.devices.begin(), task.devices.end());
    present.push_back(std::move(task));
  }
}

CreateSessionRequest MasterSession::State::RequestFor(
    const ConnectedTask& task) const {
  CreateSessionRequest request{handle, options.isolate_session_state};
  if (options.cluster) {
    request.task = task.name;
    request.cluster = options.cluster->tasks;
  }
  request.deadline = Deadline();
  return request;
}

namespace {

// How long steps wait for a task that went again after it had been restarted:
// as long as a silent peer is borne (DESIGN D7).
constexpr std::chrono::milliseconds kReturnDeadline = std::chrono::seconds(30);

}  // namespace

void MasterSession::Attach(const std::set<std::string>& names, Done done) {
  auto cancellation = std::make_shared<Cancellation>();
  absl::Status gone;
  Done refused;
  bool returns = false;
  {
    MutexLock lock(state_->mu);
    returns = std::ranges::any_of(
        state_->tasks->left_out, [&](const ConnectedTask& task) {
          return task.was_here && names.contains(task.name);
        });
    if (state_->closed) {
      gone = state_->closed_cause;
      refused = std::move(done);
    } else {
      state_->waiting_attach.push_back({names, std::move(done)});
      if (state_->attaching != nullptr) return;
      state_->attaching = cancellation;
      state_->attach_wait = WaitTable::Global().Add(
          {StrCat("the opening of the session on ", absl::StrJoin(names, ", ")),
           StrCat("session ", handle()), 0, TheClock().Now(), *names.begin()});
    }
  }
  if (refused) {
    refused(std::move(gone));
    return;
  }
  SessionOptions options = state_->options;
  options.device_filters.assign(names.begin(), names.end());
  options.wanted_devices.clear();  // All of these are wanted.
  if (returns) {
    options.task_deadline = std::min(options.task_deadline, kReturnDeadline);
  }
  ConnectTasks(*state_->env.workers, /*own_task=*/"", options,
               std::move(cancellation),
               [self = shared_from_this(), names,
                returns](absl::StatusOr<std::vector<ConnectedTask>> tasks) {
                 if (tasks.ok()) {
                   self->OpenOn(*std::move(tasks), names);
                   return;
                 }
                 absl::Status status = tasks.status();
                 // What clients recover from, as when it was lost for the first
                 // time.
                 if (returns && absl::IsDeadlineExceeded(status)) {
                   status = Unavailable(status.message());
                 }
                 self->Attached(std::move(status), names);
               });
}

void MasterSession::OpenOn(std::vector<ConnectedTask> tasks,
                           const std::set<std::string>& names) {
  // The last answer reports.
  struct Opening {
    std::vector<ConnectedTask> tasks;
    Mutex mu;
    size_t left SLUICE_GUARDED_BY(mu) = 0;
    absl::Status status SLUICE_GUARDED_BY(mu);
  };
  const auto opening = std::make_shared<Opening>();
  opening->tasks = std::move(tasks);
  {
    MutexLock lock(opening->mu);
    opening->left = opening->tasks.size();
  }
  for (const ConnectedTask& task : opening->tasks) {
    task.worker->CreateSession(state_->RequestFor(task),
                               [self = shared_from_this(), opening,
                                names](const absl::Status& answer) {
                                 absl::Status status;
                                 {
                                   MutexLock lock(opening->mu);
                                   opening->status.Update(answer);
                                   if (--opening->left > 0) return;
                                   status = opening->status;
                                 }
                                 if (status.ok())
                                   status = self->TakeIn(opening->tasks);
                                 if (!status.ok())
                                   self->LeaveOpen(opening->tasks);
                                 self->Attached(std::move(status), names);
                               });
  }
}

absl::Status MasterSession::TakeIn(std::span<const ConnectedTask> tasks) {
  MutexLock lock(state_->mu);
  if (state_->closed) return state_->closed_cause;
  std::vector<ConnectedTask> all = state_->tasks->present;
  for (const ConnectedTask& task : state_->tasks->left_out) {
    const auto found =
        std::ranges::find(tasks, task.name, &ConnectedTask::name);
    all.push_back(found == tasks.end() ? task : *found);
  }
  state_->tasks = std::make_shared<const SessionTasks>(std::move(all),
                                                       state_->env.own_task);
  for (const ConnectedTask& task : tasks) state_->maybe_open.erase(task.name);
  return absl::OkStatus();
}

void MasterSession::LeaveOpen(std::span<const ConnectedTask> tasks) {
  {
    MutexLock lock(state_->mu);
    if (!state_->closed) {
      // Not closed now: a worker refuses a session that was closed before.
      for (const ConnectedTask& task : tasks) {
        state_->maybe_open[task.name] = task.worker;
      }
      return;
    }
  }
  for (const ConnectedTask& task : tasks) {
    task.worker->DeleteSession(handle(), [](absl::Status) {});
  }
}

void MasterSession::Attached(absl::Status status,
                             const std::set<std::string>& names) {
  std::vector<State::WaitingAttach> waiting;
  {
    MutexLock lock(state_->mu);
    state_->attaching = nullptr;
    WaitTable::Global().Remove(state_->attach_wait);
    waiting.swap(state_->waiting_attach);
  }
  for (State::WaitingAttach& each : waiting) {
    // Who needs others looks again, and asks for these.
    const bool same = std::ranges::any_of(
        each.names, [&](const auto& name) { return names.contains(name); });
    each.done(same ? status : absl::OkStatus());
  }
}

}  // namespace sluice
