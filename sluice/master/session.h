// MasterSession: a client's graph, the plans of its steps, and the steps that
// run. The same class serves local sessions, servers and remote clients.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/limits.h"
#include "sluice/graph/graph.h"
#include "sluice/master/options.h"
#include "sluice/master/partial_run.h"
#include "sluice/passes/step_graph.h"
#include "sluice/worker/worker_interface.h"

namespace sluice {

// A kind of step, ready to run: its parts are registered with their workers.
// Immutable, but for whether it is still to be used; a running step holds its
// own reference.
class StepPlan;

// Steps of all sessions of a master. Relaxed: only people read them.
struct StepTotals {
  std::atomic<int64_t> started{0};
  std::atomic<int64_t> failed{0};
};

struct MasterEnv {
  std::shared_ptr<WorkerCache> workers;
  // The task this master belongs to; feeds enter and fetches leave there.
  std::string own_task;
  // Where other tasks find it, "host:port".
  std::string own_address = {};
  // Errors name the task they come from, and steps end when their time is up.
  // Off for sessions without a cluster, whose client sees to that.
  bool name_tasks = true;
  // The workers of a cluster that a client gives, of which this task is
  // `own_task`. Empty: there are none but those above.
  std::function<absl::StatusOr<std::shared_ptr<WorkerCache>>(
      const std::map<std::string, std::string>& tasks,
      const std::string& own_task)>
      other_cluster = {};
  std::shared_ptr<StepTotals> totals = std::make_shared<StepTotals>();
  // Sessions that may be open at a time, those being opened counted.
  int64_t max_sessions = Limits().sessions;
  // Callables and partial runs that a session may have at a time.
  int64_t max_callables = Limits().callables;
};

// Thread-safe.
class MasterSession : public std::enable_shared_from_this<MasterSession> {
 public:
  using Done = absl::AnyInvocable<void(absl::Status)>;
  using CreateDone =
      absl::AnyInvocable<void(absl::StatusOr<std::shared_ptr<MasterSession>>)>;

  // Asks all tasks (that the filters leave) for their devices and opens worker
  // sessions. Waits for tasks that are not there yet, or are gone when their
  // session is to be opened, and says so in the log; `cancellation` (may be
  // null) ends the wait.
  static void Create(const MasterEnv& env, const SessionOptions& options,
                     std::shared_ptr<Cancellation> cancellation,
                     CreateDone done);
  ~MasterSession();

  const std::string& handle() const;
  const SessionOptions& options() const;
  // Of the tasks that are there.
  std::vector<DeviceInfo> devices() const;

  // What a client sends to be added.
  struct Extension {
    // Of two extensions of the same version one is ABORTED.
    std::optional<int64_t> from_version = {};
    int64_t node_bytes = 0;
    int64_t library_bytes = 0;       // It comes as a whole each time.
    int64_t most_bytes = INT64_MAX;  // Of the session, with what is there.
  };
  // Runs `add` on the session's graph, alone. Nodes it adds are part of later
  // steps; if it fails it must have added nothing.
  absl::Status Extend(absl::FunctionRef<absl::Status(Graph&)> add,
                      const Extension& extension);
  absl::Status Extend(absl::FunctionRef<absl::Status(Graph&)> add) {
    return Extend(add, Extension());
  }
  // The number of times the graph grew.
  int64_t graph_version() const;

  using PlanOr = absl::StatusOr<std::shared_ptr<const StepPlan>>;
  // The plan for a signature, made at first use: cut on this thread, then
  // registered with the workers. One that is doubtful is looked into, and made
  // anew if tasks were restarted that had kept nothing.
  void PlanAsync(const StepSignature& signature,
                 absl::AnyInvocable<void(PlanOr)> done);
  // The same, and waits for it.
  PlanOr Plan(const StepSignature& signature);

  // The same, or null if it would have to be made. Never blocks for long.
  std::shared_ptr<const StepPlan> FindPlan(const StepSignature& signature);
  // Whether a step of this plan met a task that is gone. Who keeps a plan asks
  // this before each step, and if so PlanAsync for one that may be another.
  static bool IsDoubtful(const StepPlan& plan);

  struct RunArgs {
    std::span<const Tensor> feeds;  // In signature order; valid until done.
    std::span<Tensor> fetches;      // Filled before done.
    RunOptions options;
    RunMetadata* metadata = nullptr;
  };
  // Runs one step. `done` is called exactly once, before Run returns if nothing
  // had to be waited for. Does not block, but works on this thread as long as
  // there is work, and calls Patience::Check on the way. The step ends with
  // DEADLINE_EXCEEDED when the time of its options, or else of the session's,
  // is up. Returns the step's id.
  int64_t Run(std::shared_ptr<const StepPlan> plan, const RunArgs& args,
              Done done);
  // The same for who must know the id before.
  int64_t NewStepId();
  // How long a step may take, in ms; 0: as long as it needs.
  int64_t TimeoutOf(const RunOptions& options) const;
  void RunAs(int64_t step_id, std::shared_ptr<const StepPlan> plan,
             const RunArgs& args, Done done);
  // Ends a step early; its `done` gets `why`. Nothing happens if it is over.
  void CancelStep(int64_t step_id, const absl::Status& why);

  // A plan under a number, with its options, until it is released. Making one
  // blocks as Plan does.
  struct Callable {
    StepSignature signature;
    std::shared_ptr<const StepPlan> plan;
    RunOptions options;
  };
  absl::StatusOr<int64_t> MakeCallable(const StepSignature& signature,
                                       const RunOptions& options);
  absl::StatusOr<std::shared_ptr<const Callable>> FindCallable(int64_t handle);
  // Lets it go on with another plan: its own is doubtful.
  void RenewCallable(int64_t handle, std::shared_ptr<const StepPlan> plan);
  absl::Status ReleaseCallable(int64_t handle);

  // Prepares a step that is run in several calls and returns its name. Blocks
  // while the plan is made.
  absl::StatusOr<std::string> SetUpPartialRun(StepSignature signature);
  // One of these calls. The first starts the step; it is over with the call
  // that leaves nothing to feed or fetch, or with the first error.
  void RunPartially(const std::string& name, const PartialRunArgs& args,
                    Done done);
  void CancelPartialRun(const std::string& name, const absl::Status& why);

  // What people want to know of it.
  struct Info {
    struct RunningStep {
      int64_t id = 0;
      SteadyTime since;
      std::vector<std::string> running_on;  // Tasks that are not done.
    };
    std::string handle;
    SteadyTime opened;
    SteadyTime last_use;  // By its handle.
    std::vector<RunningStep> steps;
  };
  Info info() const;
  // Somebody asked for it by its handle.
  void NoteUse();

  // No new steps; running ones are cancelled with `why` and waited for (by
  // callback), then the worker sessions go. May be called again.
  void Close(const absl::Status& why, Done done);

 private:
  struct State;
  explicit MasterSession(std::unique_ptr<State> state);
  void FindOrMakePlan(const StepSignature& signature,
                      absl::AnyInvocable<void(PlanOr)> done);
  // Tasks may be restarted while it is made; `tries` bounds how often.
  void MakePlan(const StepSignature& signature, int tries,
                absl::AnyInvocable<void(PlanOr)> done);
  // Asks the tasks of a doubtful plan who they are. `done` gets whether another
  // has to be made; if not, the plan is the best there is.
  void Renew(std::shared_ptr<const StepPlan> plan,
             absl::AnyInvocable<void(bool)> done);
  bool TakeRestarts(
      const StepPlan& plan,
      const std::map<std::string, std::vector<DeviceInfo>>& answers);
  static void TryToCreate(const MasterEnv& env, const SessionOptions& options,
                          std::shared_ptr<Cancellation> cancellation, int tries,
                          CreateDone done);
  static void OpenWorkerSessions(std::shared_ptr<MasterSession> session,
                                 std::shared_ptr<Cancellation> cancellation,
                                 int tries_left, CreateDone done);
  // Opens the session on tasks that are left out. Calls `done` when they, or
  // others, have been found, or could not be.
  void Attach(const std::set<std::string>& names, Done done);
  void OpenOn(std::vector<struct ConnectedTask> tasks,
              const std::set<std::string>& names);
  absl::Status TakeIn(std::span<const struct ConnectedTask> tasks);
  // The session is not used on them, but may be open there.
  void LeaveOpen(std::span<const struct ConnectedTask> tasks);
  void Attached(absl::Status status, const std::set<std::string>& names);
  void FinishStep(struct MasterStep* step);
  // Ends a cancelled step on all its tasks before its client hears of it.
  void EndStepEverywhere(struct MasterStep* step, absl::Status status);
  void ReportStep(struct MasterStep* step, absl::Status status);
  // Ends the steps whose time is up: by a timer at `time`, or an earlier one.
  void EndLateSteps(SteadyTime timer);
  void EndLateStepsAt(SteadyTime time);
  void EndPartialCall(const std::string& name,
                      const std::shared_ptr<struct OpenPartialRun>& run,
                      absl::Status status, Done done);
  void CleanUpStep(const StepPlan& plan, int64_t step_id);
  const std::unique_ptr<State> state_;
};

// Why running steps end when their session is closed.
absl::Status ClosedByClient();

}  // namespace sluice
