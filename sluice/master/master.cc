#include "sluice/master/master.h"

#include <algorithm>
#include <cstdio>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/base/thread_pool.h"
#include "sluice/base/time_limit.h"
#include "sluice/base/timer.h"
#include "sluice/master/connect.h"
#include "sluice/worker/worker.h"

namespace sluice {

namespace {

// Who lives in the same process asked for it; others may try again when the
// task is back.
absl::Status Stopped(const MasterEnv& env, bool remote) {
  if (!remote) return Cancelled("The server was stopped.");
  return Unavailable("The master ", env.own_task, " at ", env.own_address,
                     " was stopped.");
}

}  // namespace

struct Master::State {
  MasterEnv env;
  SessionOptions defaults;
  mutable Mutex mu;
  bool stopped SLUICE_GUARDED_BY(mu) = false;
  absl::flat_hash_map<std::string, std::shared_ptr<MasterSession>> sessions
      SLUICE_GUARDED_BY(mu);
  // With whether the client is another process.
  absl::flat_hash_map<std::shared_ptr<Cancellation>, bool> opening
      SLUICE_GUARDED_BY(mu);
};

Master::Master(MasterEnv env, SessionOptions defaults)
    : state_(std::make_shared<State>()) {
  state_->env = std::move(env);
  state_->defaults = std::move(defaults);
}

Master::~Master() { Shutdown(); }

void Master::Shutdown() {
  absl::flat_hash_map<std::string, std::shared_ptr<MasterSession>> sessions;
  absl::flat_hash_map<std::shared_ptr<Cancellation>, bool> opening;
  {
    MutexLock lock(state_->mu);
    state_->stopped = true;
    sessions.swap(state_->sessions);
    opening.swap(state_->opening);
  }
  for (const auto& [cancellation, remote] : opening) {
    cancellation->Cancel(Stopped(state_->env, remote));
  }
  for (auto& [handle, session] : sessions) {
    session->Close(Stopped(state_->env, session->options().remote),
                   [](absl::Status) {});
  }
}

const MasterEnv& Master::env() const { return state_->env; }

int Master::num_sessions() const {
  MutexLock lock(state_->mu);
  return static_cast<int>(state_->sessions.size());
}

std::vector<MasterSession::Info> Master::ListSessions() const {
  std::vector<std::shared_ptr<MasterSession>> sessions;
  {
    MutexLock lock(state_->mu);
    for (const auto& [handle, session] : state_->sessions) {
      sessions.push_back(session);
    }
  }
  std::vector<MasterSession::Info> list;
  for (const auto& session : sessions) list.push_back(session->info());
  std::ranges::sort(list, {}, &MasterSession::Info::opened);
  return list;
}

namespace {

// The client's options over the server's: whatever the server was told to do,
// its sessions do, but a number that the client gives wins.
SessionOptions Merged(const SessionOptions& server, SessionOptions client) {
  client.allow_soft_placement |= server.allow_soft_placement;
  client.log_device_placement |= server.log_device_placement;
  client.isolate_session_state |= server.isolate_session_state;
  client.bfloat16_transfers |= server.bfloat16_transfers;
  client.static_graph |= server.static_graph;
  client.no_partition_graphs |= server.no_partition_graphs;
  client.prefer_own_task |= server.prefer_own_task;
  client.eager_placement |= server.eager_placement;
  client.place_pruned_graph |= server.place_pruned_graph;
  client.fold_constants &= server.fold_constants;
  client.merge_common &= server.merge_common;
  client.device_filters.insert(client.device_filters.begin(),
                               server.device_filters.begin(),
                               server.device_filters.end());
  if (client.operation_timeout_ms <= 0) {
    client.operation_timeout_ms = server.operation_timeout_ms;
  }
  if (client.task_deadline == DefaultTaskDeadline()) {
    client.task_deadline = server.task_deadline;
  }
  return client;
}

}  // namespace

namespace {

// The view of the cluster that the client gives; `env` if it gives none.
absl::StatusOr<MasterEnv> EnvFor(const MasterEnv& env,
                                 const SessionOptions& options) {
  if (!options.cluster || !env.other_cluster) return env;
  const SessionCluster& cluster = *options.cluster;
  constexpr std::string_view kGrpc = "grpc://";
  std::string_view address = cluster.target;
  if (address.starts_with(kGrpc)) address.remove_prefix(kGrpc.size());
  std::vector<std::string> own;
  for (const auto& [task, at] : cluster.tasks) {
    if (at == address) own.push_back(task);
  }
  if (own.empty()) {
    return InvalidArgument(
        "The master (current machine) is not included in the provided "
        "cluster_def. ",
        cluster.text);
  }
  if (own.size() > 1) {
    return InvalidArgument(
        "Found multiple matching tasks that correspond to to the master. "
        "Master target: '",
        cluster.target, "'. ClusterDef: ", cluster.text);
  }
  if (own[0] == env.own_task) {
    SLUICE_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(own[0]));
    return InvalidArgument(
        "The ClusterSpec names the job and task index to be the same names "
        "that were provided when the server booted. This is currently not "
        "allowed. Job: ",
        *name.job, ", task index: ", *name.task);
  }
  MasterEnv other = env;
  other.own_task = own[0];
  SLUICE_ASSIGN_OR_RETURN(other.workers,
                          env.other_cluster(cluster.tasks, own[0]));
  return other;
}

}  // namespace

void Master::CreateSession(SessionOptions options,
                           std::shared_ptr<Cancellation> cancellation,
                           MasterSession::CreateDone done) {
  absl::StatusOr<MasterEnv> env = EnvFor(state_->env, options);
  if (!env.ok()) {
    done(env.status());
    return;
  }
  if (options.cluster && !options.cluster->share_state) {
    options.isolate_session_state = true;
  }
  if (cancellation == nullptr) cancellation = std::make_shared<Cancellation>();
  absl::Status refused;
  {
    MutexLock lock(state_->mu);
    const int64_t most = state_->env.max_sessions;
    const auto open =
        static_cast<int64_t>(state_->sessions.size() + state_->opening.size());
    if (state_->stopped) {
      refused = Stopped(state_->env, options.remote);
    } else if (open >= most) {
      refused = OverLimit(StrCat("One more than ", open, " open sessions"),
                          "sessions", most);
    } else {
      state_->opening.emplace(cancellation, options.remote);
    }
  }
  if (!refused.ok()) {
    done(std::move(refused));
    return;
  }
  options = Merged(state_->defaults, std::move(options));
  if (options.log_device_placement && !env->name_tasks) {
    // As in TensorFlow, CPUs do not count.
    constexpr char kMapping[] = "Device mapping: no known devices.";
    std::printf("%s\n", kMapping);
    SLUICE_LOG(INFO) << kMapping;
  }
  if (options.place_pruned_graph && env->name_tasks) {
    SLUICE_LOG(WARNING)
        << "Distributed session does not support the place_pruned_graph "
           "option.";
  }
  if (!options.without_effect.empty()) {
    SLUICE_LOG(WARNING) << "These options of the session are set and have no "
                           "effect: "
                        << absl::StrJoin(options.without_effect, ", ");
  }
  if (options.operation_timeout_ms > 0 && env->name_tasks) {
    CallLater(TimeLimit(options.operation_timeout_ms),
              [weak = std::weak_ptr<Cancellation>(cancellation)] {
                auto opening = weak.lock();
                if (opening == nullptr) return;
                opening->Cancel(DeadlineExceeded("Operation timed out."));
              });
  }
  MasterSession::Create(
      *env, options, cancellation,
      [state = state_, cancellation, done = std::move(done)](
          absl::StatusOr<std::shared_ptr<MasterSession>> session) mutable {
        std::shared_ptr<MasterSession> unwanted;
        bool cancelled = false;
        {
          MutexLock lock(state->mu);
          state->opening.erase(cancellation);
          // Shutdown stops the master first and then cancels one by one.
          cancelled = cancellation->cancelled();
          if (session.ok() && !cancelled && !state->stopped) {
            state->sessions[(*session)->handle()] = *session;
          } else if (session.ok()) {
            unwanted = *session;
          }
        }
        if (unwanted != nullptr) {
          session = cancelled ? cancellation->status()
                              : Stopped(state->env, unwanted->options().remote);
          unwanted->Close(session.status(), [](absl::Status) {});
        }
        if (session.ok() && state->env.name_tasks) {
          SLUICE_LOG(INFO) << "Start master session " << (*session)->handle()
                           << " with config: " << (*session)->options().text;
        }
        done(std::move(session));
      });
}

absl::StatusOr<std::shared_ptr<MasterSession>> Master::FindSession(
    std::string_view handle) {
  MutexLock lock(state_->mu);
  auto it = state_->sessions.find(ToAbsl(handle));
  if (it == state_->sessions.end()) {
    return Aborted("Session ", handle, " is not found.");
  }
  it->second->NoteUse();
  return it->second;
}

void Master::CloseSession(std::string_view handle, const absl::Status& why,
                          MasterSession::Done done) {
  std::shared_ptr<MasterSession> session;
  {
    MutexLock lock(state_->mu);
    auto it = state_->sessions.find(ToAbsl(handle));
    if (it != state_->sessions.end()) {
      session = std::move(it->second);
      state_->sessions.erase(it);
    }
  }
  if (session == nullptr) {
    done(Aborted("Session ", handle,
                 " is not found. Possibly, this master has restarted."));
    return;
  }
  session->Close(why, std::move(done));
}

namespace {

// Counts calls down and reports their errors after the last one.
struct Gather {
  explicit Gather(size_t calls) : left(calls) {}
  Mutex mu;
  size_t left SLUICE_GUARDED_BY(mu);
  absl::Status status SLUICE_GUARDED_BY(mu);  // That of the first.
  std::vector<DeviceInfo> devices SLUICE_GUARDED_BY(mu);

  // True for the last one.
  bool Add(const absl::Status& s) {
    MutexLock lock(mu);
    if (status.ok()) {
      status = s;
    } else if (!s.ok()) {
      status = WithMessage(status, StrCat(status.message(), "\n", s.message()));
    }
    return --left == 0;
  }
};

}  // namespace

void Master::Reset(const std::vector<std::string>& containers,
                   const std::vector<std::string>& device_filters,
                   MasterSession::Done done) {
  const absl::StatusOr<std::vector<DeviceName>> filters =
      ParseFilters(device_filters);
  if (!filters.ok()) {
    done(filters.status());
    return;
  }
  absl::flat_hash_map<std::string, std::shared_ptr<MasterSession>> sessions;
  {
    MutexLock lock(state_->mu);
    sessions.swap(state_->sessions);
  }
  for (auto& [handle, session] : sessions) {
    session->Close(ClosedByClient(), [](absl::Status) {});
  }
  std::vector<std::string> tasks = state_->env.workers->Tasks();
  std::erase_if(tasks, [&](const std::string& task) {
    const absl::StatusOr<DeviceName> name = DeviceName::Parse(task);
    return name.ok() && !PassesFilters(*name, *filters);
  });
  if (tasks.empty()) {
    done(absl::OkStatus());
    return;
  }
  auto gather = std::make_shared<Gather>(tasks.size());
  auto callback = std::make_shared<MasterSession::Done>(std::move(done));
  for (const std::string& task : tasks) {
    state_->env.workers->Find(task)->CleanupAll(
        containers, [gather, callback](absl::Status status) {
          if (!gather->Add(status)) return;
          absl::Status first;
          {
            MutexLock lock(gather->mu);
            first = gather->status;
          }
          (*callback)(std::move(first));
        });
  }
}

void Master::ListDevices(WorkerInterface::StatusDone done) {
  const std::vector<std::string> tasks = state_->env.workers->Tasks();
  auto gather = std::make_shared<Gather>(tasks.size());
  auto callback =
      std::make_shared<WorkerInterface::StatusDone>(std::move(done));
  for (const std::string& task : tasks) {
    state_->env.workers->Find(task)->GetStatus(
        /*wait=*/false, nullptr,
        [gather, callback](absl::StatusOr<std::vector<DeviceInfo>> devices) {
          if (devices.ok()) {
            MutexLock lock(gather->mu);
            gather->devices.insert(gather->devices.end(), devices->begin(),
                                   devices->end());
          }
          // A task that is not there has no devices to list.
          if (!gather->Add(absl::OkStatus())) return;
          std::vector<DeviceInfo> all;
          {
            MutexLock lock(gather->mu);
            all = std::move(gather->devices);
          }
          (*callback)(std::move(all));
        });
  }
}

namespace {

struct LocalMasters {
  Mutex mu;
  absl::flat_hash_map<std::string, std::weak_ptr<Master>> by_target
      SLUICE_GUARDED_BY(mu);
};
LocalMasters& TheLocalMasters() {
  static LocalMasters* masters = new LocalMasters;
  return *masters;
}

}  // namespace

void AddLocalMaster(const std::string& target, std::weak_ptr<Master> master) {
  MutexLock lock(TheLocalMasters().mu);
  TheLocalMasters().by_target[target] = std::move(master);
}

std::shared_ptr<Master> FindLocalMaster(const std::string& target) {
  MutexLock lock(TheLocalMasters().mu);
  auto it = TheLocalMasters().by_target.find(target);
  return it == TheLocalMasters().by_target.end() ? nullptr : it->second.lock();
}

void RemoveLocalMaster(const std::string& target,
                       const std::shared_ptr<Master>& master) {
  MutexLock lock(TheLocalMasters().mu);
  auto it = TheLocalMasters().by_target.find(target);
  if (it == TheLocalMasters().by_target.end()) return;
  if (it->second.lock() == master) TheLocalMasters().by_target.erase(it);
}

namespace {

// The one worker of a session without a cluster.
class OneWorker : public WorkerCache {
 public:
  explicit OneWorker(std::shared_ptr<Worker> worker)
      : worker_(std::move(worker)), task_(worker_->task().ToString()) {}
  std::vector<std::string> Tasks() const override { return {task_}; }
  std::shared_ptr<WorkerInterface> Find(std::string_view task) override {
    return task == task_ ? worker_ : nullptr;
  }

 private:
  const std::shared_ptr<Worker> worker_;
  const std::string task_;
};

}  // namespace

std::shared_ptr<Master> MakePrivateMaster(const SessionOptions& options) {
  SetComputePoolSize(options.compute_threads);
  DeviceName task;
  task.job = "localhost";
  task.replica = 0;
  task.task = 0;
  MasterEnv env;
  env.workers =
      std::make_shared<OneWorker>(Worker::Create(task, options.num_cpus));
  env.own_task = task.ToString();
  env.name_tasks = false;
  return std::make_shared<Master>(std::move(env), SessionOptions());
}

}  // namespace sluice
