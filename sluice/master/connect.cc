#include "sluice/master/connect.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "sluice/base/logging.h"
#include "sluice/base/simulation.h"
#include "sluice/base/status.h"
#include "sluice/base/time_limit.h"
#include "sluice/base/timer.h"

namespace sluice {
namespace {

constexpr auto kFirstLine = std::chrono::seconds(3);
constexpr auto kNextLine = std::chrono::seconds(10);

// Whether `device` may be one of `task`.
bool Means(const DeviceName& device, const std::string& task) {
  const absl::StatusOr<DeviceName> name = DeviceName::Parse(task);
  return name.ok() && PassesFilters(*name, {device});
}

// Shared by the calls that are out.
struct Connecting : std::enable_shared_from_this<Connecting> {
  std::vector<ConnectedTask> tasks;
  SessionOptions options;
  std::string own_task;
  std::vector<DeviceName> filters;
  std::shared_ptr<Cancellation> cancellation;
  // Ends the calls that are still out.
  Cancellation stop;

  Mutex mu;
  int left SLUICE_GUARDED_BY(mu) = 0;
  std::vector<bool> answered SLUICE_GUARDED_BY(mu);
  Cancellation::Token token SLUICE_GUARDED_BY(mu) = Cancellation::kNone;
  absl::Status status SLUICE_GUARDED_BY(mu);
  SteadyTime begin SLUICE_GUARDED_BY(mu);
  SteadyTime last_change SLUICE_GUARDED_BY(mu);
  SteadyTime next_line SLUICE_GUARDED_BY(mu);
  SteadyTime next_look SLUICE_GUARDED_BY(mu);  // Whether it can go on.
  ConnectDone done SLUICE_GUARDED_BY(mu);

  void Answered(size_t i, absl::StatusOr<std::vector<DeviceInfo>> devices) {
    ConnectDone callback;
    absl::Status result;
    {
      MutexLock lock(mu);
      if (!done) return;
      --left;
      answered[i] = true;
      last_change = TheClock().Now();
      if (devices.ok()) {
        tasks[i].devices = *std::move(devices);
        if (options.cluster) Rename(&tasks[i]);
        // As in TensorFlow, a master sees all devices of its own task.
        if (tasks[i].name != own_task) {
          std::erase_if(tasks[i].devices, [&](const DeviceInfo& device) {
            return !PassesFilters(device.name, filters);
          });
        }
      } else if (status.ok()) {
        status = WithMessage(
            devices.status(),
            StrCat("CreateSession failed because worker ", tasks[i].name,
                   " returned error: ", devices.status().message()));
      }
      if (left == 0 || !status.ok()) {
        callback = std::move(done);
        done = nullptr;
        result = status;
      }
    }
    Finish(std::move(callback), result);
  }

  // A task does not know what it is called in a cluster that a client gives.
  static void Rename(ConnectedTask* task) {
    const absl::StatusOr<DeviceName> name = DeviceName::Parse(task->name);
    if (!name.ok()) return;  // It was parsed before.
    for (DeviceInfo& device : task->devices) {
      device.name.job = name->job;
      device.name.replica = name->replica;
      device.name.task = name->task;
      device.text = device.name.ToString();
    }
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
      why = cancellation->status();
      if (callback && absl::IsDeadlineExceeded(why)) {
        why = WithMessage(why, StrCat(why.message(), " ",
                                      GaveUp(TheClock().Now()).message()));
      }
      status = why;
    }
    Finish(std::move(callback), why);
  }

  std::vector<std::string> Missing() SLUICE_REQUIRES(mu) {
    return Names(/*answer=*/false);
  }
  std::vector<std::string> Names(bool answer) SLUICE_REQUIRES(mu) {
    std::vector<std::string> names;
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (answered[i] == answer) names.push_back(tasks[i].name);
    }
    return names;
  }

  // Whether the graph can do without everyone who is missing.
  bool CanGoOn() SLUICE_REQUIRES(mu) {
    if (options.wanted_devices.empty()) return false;
    const std::vector<std::string> present = Names(/*answer=*/true);
    for (const std::string& text : options.wanted_devices) {
      const absl::StatusOr<DeviceName> device = DeviceName::Parse(text);
      if (!device.ok()) return false;
      if (options.prefer_own_task && Means(*device, own_task)) continue;
      for (const std::string& task : Missing()) {
        if (WouldGoTo(task, *device, present)) return false;
      }
    }
    return true;
  }

  // Calls back with those who answered.
  void GoOn() {
    ConnectDone callback;
    {
      MutexLock lock(mu);
      if (!done) return;
      for (size_t i = 0; i < tasks.size(); ++i) {
        if (!answered[i]) tasks[i].missing = Why(tasks[i].name);
      }
      callback = std::move(done);
      done = nullptr;
    }
    for (const ConnectedTask& task : tasks) {
      if (task.missing.empty()) continue;
      SLUICE_LOG(WARNING) << "CreateSession goes on without " << task.name
                          << ", which the graph does not use (" << task.missing
                          << ")";
    }
    stop.Cancel(Cancelled("The session was opened without it"));
    Finish(std::move(callback), absl::OkStatus());
  }

  // As the transport has it in the wait table.
  static std::string Why(const std::string& task) {
    for (const WaitInfo& wait : WaitTable::Global().List()) {
      if (wait.where == task) return wait.what;
    }
    return "no answer";
  }

  // When a task answered last, or got another reason to be missing.
  SteadyTime LastChange() SLUICE_REQUIRES(mu) {
    const std::vector<std::string> missing = Missing();
    for (const WaitInfo& wait : WaitTable::Global().List()) {
      if (std::ranges::count(missing, wait.where) == 0) continue;
      last_change = std::max(last_change, wait.since);
    }
    return last_change;
  }

  // Writes the waiting lines and gives up at the deadline. Why a task is
  // missing stands in the wait table, where the transport puts it.
  void Watch() {
    ConnectDone callback;
    absl::Status result;
    std::vector<std::string> missing;
    bool go_on = false;
    int64_t waited = 0;
    {
      MutexLock lock(mu);
      if (!done) return;
      const SteadyTime now = TheClock().Now();
      waited = Seconds(now - begin);
      if (now >= LastChange() + TaskDeadline()) {
        result = status = GaveUp(now);
        callback = std::exchange(done, nullptr);
      } else if (now >= next_look && CanGoOn()) {
        go_on = true;
      } else if (now >= next_line) {
        missing = Missing();
        next_line = now + kNextLine;
      }
      if (now >= next_look) next_look = now + kNextLine;
    }
    if (callback) {
      Finish(std::move(callback), result);
      return;
    }
    if (go_on) {
      GoOn();
      return;
    }
    for (const std::string& task : missing) {
      SLUICE_LOG(INFO)
          << "CreateSession still waiting for response from worker: " << task
          << " (" << Why(task) << "), after " << waited << " s";
    }
    WatchLater();
  }

  std::chrono::milliseconds TaskDeadline() const {
    return TimeLimit(options.task_deadline.count());
  }

  static int64_t Seconds(SteadyTime::duration time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time).count();
  }

  // The calls that are out keep this object, so the timer need not.
  void WatchLater() {
    SteadyTime next;
    {
      MutexLock lock(mu);
      next = std::min({next_line, next_look, last_change + TaskDeadline()});
    }
    CallLater(next - TheClock().Now(), [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->Watch();
    });
  }

  absl::Status GaveUp(SteadyTime now) SLUICE_REQUIRES(mu) {
    return DeadlineExceeded(
        "The session gave up waiting for ", WithReasons(Missing()), " after ",
        Seconds(now - begin),
        " s. Start the missing tasks, or leave them out with device_filters.");
  }

  static std::string WithReasons(const std::vector<std::string>& missing) {
    std::vector<std::string> texts;
    for (const std::string& task : missing) {
      texts.push_back(StrCat(task, " (", Why(task), ")"));
    }
    return absl::StrJoin(texts, ", ");
  }
};

}  // namespace

std::chrono::milliseconds DefaultTaskDeadline() {
  return SecondsFromEnvironment("SLUICE_TASK_DEADLINE_SECONDS",
                                std::chrono::milliseconds(1))
      .value_or(kTaskDeadline);
}

bool PassesFilters(const DeviceName& name,
                   const std::vector<DeviceName>& filters) {
  if (filters.empty()) return true;
  const auto agree = [](const auto& filter, const auto& part) {
    return !filter || !part || filter == part;
  };
  return std::ranges::any_of(filters, [&](const DeviceName& filter) {
    return agree(filter.job, name.job) && agree(filter.replica, name.replica) &&
           agree(filter.task, name.task) && agree(filter.type, name.type) &&
           agree(filter.id, name.id);
  });
}

absl::StatusOr<std::vector<DeviceName>> ParseFilters(
    std::span<const std::string> texts) {
  std::vector<DeviceName> filters;
  for (const std::string& text : texts) {
    absl::StatusOr<DeviceName> filter = DeviceName::Parse(text);
    if (!filter.ok()) return InvalidArgument("Invalid device filter: ", text);
    filters.push_back(*std::move(filter));
  }
  return filters;
}

bool WouldGoTo(const std::string& task, const DeviceName& device,
               std::span<const std::string> present) {
  const auto fits = [&](const std::string& name) {
    return Means(device, name);
  };
  // The first by name is taken; "task:10" comes before "task:2".
  return fits(task) &&
         std::ranges::none_of(present, [&](const std::string& other) {
           return other < task && fits(other);
         });
}

void ConnectTasks(WorkerCache& workers, const std::string& own_task,
                  const SessionOptions& options,
                  std::shared_ptr<Cancellation> cancellation,
                  ConnectDone done) {
  const absl::StatusOr<std::vector<DeviceName>> filters =
      ParseFilters(options.device_filters);
  if (!filters.ok()) {
    done(filters.status());
    return;
  }
  auto state = std::make_shared<Connecting>();
  state->options = options;
  state->own_task = own_task;
  state->filters = *filters;
  state->cancellation = cancellation;
  for (const std::string& task : workers.Tasks()) {
    absl::StatusOr<DeviceName> name = DeviceName::Parse(task);
    if (!name.ok()) {
      done(name.status());
      return;
    }
    if (task != own_task && !PassesFilters(*name, *filters)) continue;
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
    state->begin = state->last_change = TheClock().Now();
    state->next_line = state->begin + kFirstLine;
    state->next_look = state->begin + options.patience;
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
  state->WatchLater();
}

}  // namespace sluice
