// What a MasterSession holds. Private to master/.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "sluice/base/mutex.h"
#include "sluice/base/random.h"
#include "sluice/base/simulation.h"
#include "sluice/base/status.h"
#include "sluice/base/time_limit.h"
#include "sluice/master/connect.h"
#include "sluice/master/plan_cache.h"
#include "sluice/master/session.h"
#include "sluice/passes/partition.h"
#include "sluice/passes/place.h"

namespace sluice {

inline constexpr size_t kPlansKept = 1000;
// Random step ids leave the top bits free, as on the wire.
inline constexpr int kStepIdBits = 57;

class StepPlan {
 public:
  struct TaskPart {
    std::string task;
    std::shared_ptr<WorkerInterface> worker;
    uint64_t incarnation = 0;  // Of the task's first device when it was cut.
    std::shared_ptr<RegisteredGraph> graph;
    bool has_client_edges = false;
    std::shared_ptr<const Graph> definition;
  };
  std::vector<TaskPart> parts;
  size_t num_feeds = 0;
  std::vector<std::string> fetches;
  bool partial = false;
  // Tensors change hands between its devices or tasks.
  bool has_transfers = false;
  enum class Standing {
    kGood,
    // A step found a task gone or restarted: before the next one somebody has
    // to look whether the tasks are still those it was made for.
    kDoubtful,
    kReplaced,  // One of them is not. It is in no cache any more.
  };
  mutable std::atomic<Standing> standing{Standing::kGood};
  void Doubt() const {
    auto good = Standing::kGood;
    standing.compare_exchange_strong(good, Standing::kDoubtful,
                                     std::memory_order_relaxed);
  }
  // Counted if the session builds a cost model.
  mutable std::atomic<int64_t> steps{0};
};

// A partial run that has been set up and is not over.
struct OpenPartialRun {
  explicit OpenPartialRun(const StepSignature& signature)
      : progress(signature) {}
  // Set before anyone else sees it.
  std::shared_ptr<const StepPlan> plan;
  int64_t step_id = 0;
  std::shared_ptr<Rendezvous> tensors;

  Mutex mu;
  PartialRunProgress progress SLUICE_GUARDED_BY(mu);
  bool started SLUICE_GUARDED_BY(mu) = false;
  bool ended SLUICE_GUARDED_BY(mu) = false;    // The step is over on all tasks.
  bool no_more SLUICE_GUARDED_BY(mu) = false;  // Its last call has come.
  absl::Status status SLUICE_GUARDED_BY(mu);
  std::vector<MasterSession::Done> at_end SLUICE_GUARDED_BY(mu);

  // Calls `done` with the step's result when the step is over.
  void WhenEnded(MasterSession::Done done) {
    absl::Status result;
    {
      MutexLock lock(mu);
      if (started && !ended) {
        at_end.push_back(std::move(done));
        return;
      }
      result = status;
    }
    done(std::move(result));
  }
  void End(absl::Status result) {
    std::vector<MasterSession::Done> waiting;
    {
      MutexLock lock(mu);
      ended = true;
      status = result;
      waiting.swap(at_end);
    }
    for (MasterSession::Done& done : waiting) done(result);
  }
};

// The tasks of a session. Immutable: when one that was left out is there after
// all, or one was restarted, another object takes the place of this one.
struct SessionTasks {
  // Own task first, the others by name.
  SessionTasks(std::vector<ConnectedTask> tasks, const std::string& own_task);

  const ConnectedTask* Find(std::string_view name) const {
    for (const ConnectedTask& task : present) {
      if (task.name == name) return &task;
    }
    return nullptr;
  }

  std::vector<ConnectedTask> present;
  std::vector<ConnectedTask> left_out;
  std::vector<DeviceInfo> devices;
  // What the tasks that were left out had when they were here; of the others,
  // what they have at the least.
  std::vector<DeviceInfo> absent;
};

struct MasterSession::State {
  MasterEnv env;
  SessionOptions options;
  std::string handle;
  const SteadyTime opened = CoarseNow();
  std::atomic<SteadyTime> last_use{opened};
  DeviceInfo client_device;
  PlanCache plans{kPlansKept};
  std::atomic<uint64_t> next_step{RandomId()};

  Mutex graph_mu;
  Graph graph SLUICE_GUARDED_BY(graph_mu);
  int placed_nodes SLUICE_GUARDED_BY(graph_mu) = 0;
  PlaceErrors place_errors SLUICE_GUARDED_BY(graph_mu);
  // Tasks that are not there, by the nodes that belong on them.
  absl::flat_hash_map<int, std::string> needed_tasks
      SLUICE_GUARDED_BY(graph_mu);
  // The tasks for which nodes were placed last.
  std::shared_ptr<const SessionTasks> placed_for SLUICE_GUARDED_BY(graph_mu);
  bool warned_of_strays SLUICE_GUARDED_BY(graph_mu) = false;
  // The graph that a session starts with is version 0.
  int64_t version SLUICE_GUARDED_BY(graph_mu) = -1;
  int64_t node_bytes SLUICE_GUARDED_BY(graph_mu) =
      0;  // As its client sent them.

  Mutex mu;
  std::shared_ptr<const SessionTasks> tasks SLUICE_GUARDED_BY(mu);
  // Ends the search for tasks that are left out; null if there is none.
  std::shared_ptr<Cancellation> attaching SLUICE_GUARDED_BY(mu);
  WaitTable::Token attach_wait SLUICE_GUARDED_BY(mu) = 0;
  struct WaitingAttach {
    std::set<std::string> names;
    Done done;
  };
  std::vector<WaitingAttach> waiting_attach SLUICE_GUARDED_BY(mu);
  // Tasks that were left out and may have the session all the same: the answer
  // got lost, or what was taken for its life before was this one.
  std::map<std::string, std::shared_ptr<WorkerInterface>> maybe_open
      SLUICE_GUARDED_BY(mu);
  // Where steps may have left something that the next ones build on.
  std::set<std::string> tasks_with_state SLUICE_GUARDED_BY(mu);
  bool closed SLUICE_GUARDED_BY(mu) = false;
  absl::Status closed_cause SLUICE_GUARDED_BY(mu);  // For calls under way.
  absl::flat_hash_set<std::shared_ptr<struct MasterStep>> running
      SLUICE_GUARDED_BY(mu);
  int cleanups SLUICE_GUARDED_BY(mu) = 0;  // Calls that are still out.
  absl::flat_hash_map<std::string, std::shared_ptr<OpenPartialRun>> partial_runs
      SLUICE_GUARDED_BY(mu);
  int64_t next_partial_run SLUICE_GUARDED_BY(mu) = 0;
  absl::flat_hash_map<int64_t, std::shared_ptr<const Callable>> callables
      SLUICE_GUARDED_BY(mu);
  int64_t next_callable SLUICE_GUARDED_BY(mu) = 0;
  // When timers call EndLateSteps. A timer cannot be taken back, so it is left
  // where it is when an earlier one is needed, and not made a second time.
  std::set<SteadyTime> timers SLUICE_GUARDED_BY(mu);
  bool torn_down SLUICE_GUARDED_BY(mu) = false;
  std::vector<Done> waiting_close SLUICE_GUARDED_BY(mu);

  // What a client hears that goes on using a closed session: on a server, the
  // same as after a restart, once its steps have ended.
  absl::Status Gone() const SLUICE_REQUIRES(mu) {
    if (!env.name_tasks) return Cancelled("Session has been closed.");
    if (!torn_down) return FailedPrecondition("Session is closed.");
    return Aborted("Session ", handle, " is not found.");
  }

  // An error of that task, for clients of several.
  absl::Status AtTask(const absl::Status& status,
                      const std::string& task) const {
    if (!env.name_tasks || IsDerived(status)) return status;
    return WithMessage(status, StrCat("From ", task, ":\n", status.message()));
  }

  // Whether one more callable or partial run may be kept.
  absl::Status CheckRoom() const SLUICE_REQUIRES(mu) {
    const auto kept =
        static_cast<int64_t>(callables.size() + partial_runs.size());
    if (kept < env.max_callables) return absl::OkStatus();
    return OverLimit(StrCat("One more than ", kept,
                            " callables and partial runs of a session"),
                     "callables", env.max_callables);
  }

  // When an operation that begins now is to be over.
  std::optional<SteadyTime> Deadline() const {
    if (options.operation_timeout_ms <= 0) return std::nullopt;
    return TheClock().Now() + TimeLimit(options.operation_timeout_ms);
  }

  std::shared_ptr<const SessionTasks> Tasks() {
    MutexLock lock(mu);
    return tasks;
  }
  CreateSessionRequest RequestFor(const ConnectedTask& task) const;

  absl::Status PlaceNewNodes() SLUICE_REQUIRES(graph_mu) {
    const std::shared_ptr<const SessionTasks> now = Tasks();
    if (placed_nodes == graph.num_nodes() && placed_for == now) {
      return absl::OkStatus();
    }
    PlaceOptions place;
    place.allow_soft = options.allow_soft_placement;
    place.log = options.log_device_placement;
    place.prefer_own_task = options.prefer_own_task;
    std::string stray;
    if (env.name_tasks && !warned_of_strays) {
      place.strayed = [&stray](const Node& node, const DeviceInfo& device) {
        if (stray.empty()) stray = StrCat(node.name(), " on ", device.text);
      };
    }
    SLUICE_ASSIGN_OR_RETURN(place.own_task, DeviceName::Parse(env.own_task));
    // Only what has state must stay where it is, as long as its task does.
    for (int id = 0; id < placed_nodes; ++id) {
      Node* node = graph.node(id);
      if (!node->op().def.stateful ||
          now->Find(TaskOf(node->assigned_device())) == nullptr) {
        node->set_assigned_device("");
      }
    }
    place.absent = now->absent;
    // A step that reaches the node waits for the task.
    needed_tasks.clear();
    auto* needed = &needed_tasks;
    place.refuse = [needed](const Node& node, const DeviceName& device) {
      std::string task(TaskOf(device.ToString()));
      absl::Status status = Unavailable("Node ", node.name(), " needs ", task);
      needed->emplace(node.id(), std::move(task));
      return status;
    };
    place_errors.clear();
    SLUICE_RETURN_IF_ERROR(Place(graph, now->devices, place, &place_errors));
    placed_for = now;
    if (!stray.empty()) WarnOfStrays(stray);
    placed_nodes = graph.num_nodes();
    return absl::OkStatus();
  }

  void WarnOfStrays(const std::string& first) SLUICE_REQUIRES(graph_mu);
  // Of the nodes whose tasks are there, or OK.
  absl::Status FirstPlaceError() const SLUICE_REQUIRES(graph_mu);
  // `tasks`: those it was cut for. `needed`: which it takes that are left out.
  // If there are any, the result is an error.
  absl::StatusOr<std::vector<Part>> Cut(
      const StepSignature& signature,
      std::shared_ptr<const SessionTasks>* tasks,
      std::set<std::string>* needed);
  // Remembers which tasks keep something between steps of `plan`.
  void NoteState(const StepPlan& plan);
  // The task `name` was restarted and has these devices now. Whether plans for
  // its last life may be made anew: nothing was lost with that life.
  bool TakeRestart(const std::string& name,
                   std::span<const DeviceInfo> devices);
  // Step ids only have to differ from those of other sessions; a random start
  // and counting on is enough and costs nothing.
  int64_t NewStepId();
  void MaybeFinishClose();
  // Counts a step of `plan`; whether it returns its cost graph.
  bool WantsCosts(const StepPlan& plan) const;
};

// A step under way. The session's list of running steps keeps it alive.
struct MasterStep {
  std::shared_ptr<MasterSession> session;
  std::shared_ptr<const StepPlan> plan;
  int64_t id = 0;
  MasterSession::Done done;
  RunMetadata* metadata = nullptr;
  bool traced = false;
  bool wants_costs = false;
  std::unique_ptr<StepStatsCollector> stats;  // For either.
  const SteadyTime since = CoarseNow();
  std::optional<SteadyTime> deadline;
  struct Part {
    Cancellation cancellation;  // A worker cancels it when a node fails.
    std::atomic<bool> done{false};
    std::vector<std::shared_ptr<const Graph>> graphs;  // If asked for.
  };
  std::unique_ptr<Part[]> parts;
  std::atomic<int> left{0};
  std::atomic<bool> cancelled{false};
  Mutex mu;
  absl::Status status SLUICE_GUARDED_BY(mu);
  // All causes of its failure, in the order they came.
  std::vector<absl::Status> roots SLUICE_GUARDED_BY(mu);

  // Tasks whose part is not done.
  std::vector<std::string> RunningOn() const {
    std::vector<std::string> tasks;
    for (size_t i = 0; i < plan->parts.size(); ++i) {
      if (parts[i].done.load(std::memory_order_relaxed)) continue;
      tasks.push_back(plan->parts[i].task);
    }
    return tasks;
  }

  void Cancel(const absl::Status& why) {
    {
      MutexLock lock(mu);
      if (status.ok() || IsDerived(status)) status = why;
    }
    CancelParts(why);
  }
  void CancelParts(const absl::Status& why) {
    cancelled.store(true, std::memory_order_relaxed);
    for (size_t i = 0; i < plan->parts.size(); ++i) {
      parts[i].cancellation.Cancel(Derived(why));
    }
  }
};

}  // namespace sluice
