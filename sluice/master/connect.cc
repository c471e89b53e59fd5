#include "sluice/master/connect.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "sluice/base/blocking_pool.h"
#include "sluice/base/logging.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

constexpr auto kFirstLine = std::chrono::seconds(3);
constexpr auto kNextLine = std::chrono::seconds(10);

// Shared by the calls that are out and the thread that watches them.
struct Connecting {
  std::vector<ConnectedTask> tasks;
  SessionOptions options;
  std::shared_ptr<Cancellation> cancellation;
  // Ends the calls that are still out.
  Cancellation stop;

  Mutex mu;
  CondVar changed;
  int left SLUICE_GUARDED_BY(mu) = 0;
  std::vector<bool> answered SLUICE_GUARDED_BY(mu);
  Cancellation::Token token SLUICE_GUARDED_BY(mu) = Cancellation::kNone;
  absl::Status status SLUICE_GUARDED_BY(mu);
  SteadyTime last_change SLUICE_GUARDED_BY(mu);
  ConnectDone done SLUICE_GUARDED_BY(mu);

  void Answered(size_t i, absl::StatusOr<std::vector<DeviceInfo>> devices) {
    ConnectDone callback;
    absl::Status result;
    {
      MutexLock lock(mu);
      --left;
      answered[i] = true;
      last_change = std::chrono::steady_clock::now();
      if (devices.ok()) {
        tasks[i].devices = *std::move(devices);
      } else if (status.ok()) {
        status = WithMessage(
            devices.status(),
            StrCat("CreateSession failed because worker ", tasks[i].name,
                   " returned error: ", devices.status().message()));
      }
      changed.NotifyAll();
      if (done && (left == 0 || !status.ok())) {
        callback = std::move(done);
        done = nullptr;
        result = status;
      }
    }
    Finish(std::move(callback), result);
  }

  void Finish(ConnectDone callback, const absl::Status& result) {
    if (!callback) return;
    Cancellation::Token registered;
    {
      MutexLock lock(mu);
      registered = token;
    }
    // The callback there holds this object.
    if (cancellation != nullptr) cancellation->Deregister(registered);
    if (!result.ok()) {
      stop.Cancel(result);
      callback(result);
      return;
    }
    callback(std::move(tasks));
  }

  void OnCancel() {
    ConnectDone callback;
    absl::Status why;
    {
      MutexLock lock(mu);
      callback = std::move(done);
      done = nullptr;
      why = status = cancellation->status();
      changed.NotifyAll();
    }
    Finish(std::move(callback), why);
  }

  std::vector<std::string> Missing() SLUICE_REQUIRES(mu) {
    std::vector<std::string> missing;
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (!answered[i]) missing.push_back(tasks[i].name);
    }
    return missing;
  }

  // Writes the waiting lines and gives up at the deadline. Why a task is
  // missing stands in the wait table, where the transport puts it.
  void Watch() {
    const auto begin = std::chrono::steady_clock::now();
    auto next_line = begin + kFirstLine;
    while (true) {
      ConnectDone callback;
      absl::Status result;
      std::vector<std::string> missing;
      {
        MutexLock lock(mu);
        if (!done) return;
        changed.WaitUntil(
            mu, std::min(next_line, last_change + options.task_deadline));
        if (!done) return;
        const auto now = std::chrono::steady_clock::now();
        missing = Missing();
        if (now >= last_change + options.task_deadline) {
          status = DeadlineExceeded(
              "The session gave up waiting for ", absl::StrJoin(missing, ", "),
              " after ",
              std::chrono::duration_cast<std::chrono::seconds>(now - begin)
                  .count(),
              " s. Start the missing tasks, or leave them out with "
              "device_filters.");
          callback = std::move(done);
          done = nullptr;
          result = status;
        } else if (now < next_line) {
          continue;
        }
      }
      if (callback) {
        Finish(std::move(callback), result);
        return;
      }
      Log(missing);
      next_line = std::chrono::steady_clock::now() + kNextLine;
    }
  }

  void Log(const std::vector<std::string>& missing) {
    const std::vector<WaitInfo> waits = WaitTable::Global().List();
    for (const std::string& task : missing) {
      std::string why;
      for (const WaitInfo& wait : waits) {
        if (wait.where == task) why = StrCat(" (", wait.what, ")");
      }
      SLUICE_LOG(INFO)
          << "CreateSession still waiting for response from worker: " << task
          << why;
    }
  }
};

bool PassesFilters(const DeviceName& task,
                   const std::vector<DeviceName>& filters) {
  if (filters.empty()) return true;
  return std::ranges::any_of(filters, [&](const DeviceName& filter) {
    return (!filter.job || filter.job == task.job) &&
           (!filter.replica || filter.replica == task.replica) &&
           (!filter.task || filter.task == task.task);
  });
}

}  // namespace

void ConnectTasks(WorkerCache& workers, const std::string& own_task,
                  const SessionOptions& options,
                  std::shared_ptr<Cancellation> cancellation,
                  ConnectDone done) {
  std::vector<DeviceName> filters;
  for (const std::string& text : options.device_filters) {
    absl::StatusOr<DeviceName> filter = DeviceName::Parse(text);
    if (!filter.ok()) {
      done(InvalidArgument("Invalid device filter: ", text));
      return;
    }
    filters.push_back(*std::move(filter));
  }
  auto state = std::make_shared<Connecting>();
  state->options = options;
  state->cancellation = cancellation;
  for (const std::string& task : workers.Tasks()) {
    absl::StatusOr<DeviceName> name = DeviceName::Parse(task);
    if (!name.ok()) {
      done(name.status());
      return;
    }
    if (task != own_task && !PassesFilters(*name, filters)) continue;
    std::shared_ptr<WorkerInterface> worker = workers.Find(task);
    if (worker == nullptr) {
      done(NotFound("Device ", task, " is not found."));
      return;
    }
    state->tasks.push_back({task, std::move(worker), {}});
  }
  {
    MutexLock lock(state->mu);
    state->left = static_cast<int>(state->tasks.size());
    state->answered.assign(state->tasks.size(), false);
    state->last_change = std::chrono::steady_clock::now();
    state->done = std::move(done);
  }
  if (cancellation != nullptr) {
    const auto token = cancellation->Register([state] { state->OnCancel(); });
    {
      MutexLock lock(state->mu);
      state->token = token;
    }
    if (token == Cancellation::kNone) {
      state->OnCancel();
      return;
    }
  }
  std::vector<std::shared_ptr<WorkerInterface>> asked;
  for (const ConnectedTask& task : state->tasks) asked.push_back(task.worker);
  for (size_t i = 0; i < asked.size(); ++i) {
    asked[i]->GetStatus(
        /*wait=*/true, &state->stop,
        [state, i](absl::StatusOr<std::vector<DeviceInfo>> devices) {
          state->Answered(i, std::move(devices));
        });
  }
  {
    MutexLock lock(state->mu);
    if (!state->done) return;
  }
  // Only a session that has to wait pays for a thread.
  RunBlocking([state] { state->Watch(); });
}

}  // namespace sluice
