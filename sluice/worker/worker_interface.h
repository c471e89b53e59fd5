// WorkerInterface: what a master asks of a task. Worker answers in process
// (direct calls, nothing serialised); rpc/ answers for tasks elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/graph/graph.h"
#include "sluice/kernel/cancellation.h"
#include "sluice/kernel/device.h"
#include "sluice/kernel/rendezvous.h"
#include "sluice/kernel/step.h"

namespace sluice {

// A part of a step that a worker has taken and can run. Dropping the last
// reference lets the worker forget it.
class RegisteredGraph {
 public:
  virtual ~RegisteredGraph() = default;
};

struct CreateSessionRequest {
  std::string handle;
  // Its resources are its own and die with it.
  bool isolated = false;
  // If the session has a cluster of its own: the worker's name in it, and the
  // addresses of all its tasks by name.
  std::string task = {};
  std::map<std::string, std::string> cluster = {};
  // Refused if the worker has so many already.
  int64_t max_sessions = INT64_MAX;
  std::optional<SteadyTime> deadline = {};  // Of a call to another process.
};

struct RegisterGraphRequest {
  std::string session_handle;
  // False from masters that create no worker sessions; the graph then lives in
  // a session all of them share.
  bool has_session = true;
  std::shared_ptr<const Graph> graph;  // Every node has a device of the task.
  // Names of the client-terminated receives and sends in it, in the order in
  // which RunGraph passes their tensors.
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::optional<SteadyTime> deadline = {};  // Of a call to another process.
};

struct RunGraphRequest {
  RegisteredGraph* graph = nullptr;  // The caller keeps it alive.
  int64_t step_id = 0;
  // Only in process: a task elsewhere takes none, UNIMPLEMENTED.
  std::span<const Tensor> feeds;  // Valid until done.
  std::span<Tensor> fetches;      // Filled before done.
  // Ends the step early; the worker cancels it too when a node fails.
  Cancellation* cancellation = nullptr;
  StepStatsCollector* stats = nullptr;  // Collects when set.
  // Filled before done when set: what runs, a graph for each device.
  std::vector<std::shared_ptr<const Graph>>* device_graphs = nullptr;
};

// All calls are asynchronous; `done` is called exactly once, possibly before
// the call returns. Thread-safe.
class WorkerInterface {
 public:
  using Done = absl::AnyInvocable<void(absl::Status)>;
  using StatusDone =
      absl::AnyInvocable<void(absl::StatusOr<std::vector<DeviceInfo>>)>;
  using RegisterDone = absl::AnyInvocable<void(
      absl::StatusOr<std::shared_ptr<RegisteredGraph>>)>;

  virtual ~WorkerInterface() = default;
  // Who are you, which devices have you. With `wait` the call goes on until the
  // task is there or `cancellation` ends it.
  virtual void GetStatus(bool wait, Cancellation* cancellation,
                         StatusDone done) = 0;
  virtual void CreateSession(CreateSessionRequest request, Done done) = 0;
  virtual void DeleteSession(const std::string& handle, Done done) = 0;
  virtual void RegisterGraph(RegisterGraphRequest request,
                             RegisterDone done) = 0;
  virtual void RunGraph(const RunGraphRequest& request, Done done) = 0;
  // The step is over on every task; drop what is left of it.
  virtual void CleanupGraph(int64_t step_id, Done done) = 0;
  // As CleanupGraph, of a step that failed and was cancelled: `done` is called
  // when nothing of it waits on the task any more, or with an error that names
  // the task when that cannot be known within half a second.
  virtual void EndStep(int64_t step_id, Done done) {
    CleanupGraph(step_id, std::move(done));
  }
  // Where the tensors of a step change hands on this task, for the client's end
  // of a partial run. Null for tasks elsewhere.
  virtual std::shared_ptr<Rendezvous> StepRendezvous(
      int64_t step_id, const std::string& session_handle) {
    (void)step_id;
    (void)session_handle;
    return nullptr;
  }
  // Drops the resources of these containers (all empty: the default one).
  virtual void CleanupAll(std::vector<std::string> containers, Done done) = 0;
  // Whether its graphs may have `_SluiceRecvGroup` nodes; known after
  // GetStatus.
  virtual bool TakesGroups() const = 0;
};

// Finds the workers of a cluster. Thread-safe.
class WorkerCache {
 public:
  virtual ~WorkerCache() = default;
  // "/job:ps/replica:0/task:0", sorted.
  virtual std::vector<std::string> Tasks() const = 0;
  // nullptr if there is no such task.
  virtual std::shared_ptr<WorkerInterface> Find(std::string_view task) = 0;
};

// `what` comes from a task that this one, `own`, does not know.
absl::Status NotInCluster(std::string_view what, std::string_view task,
                          std::string_view own);

// Whether a task says so of itself or of another one, in TensorFlow's words.
bool MeansRestart(const absl::Status& status);

// An error that only follows from another one carries this in front of its
// message, so that the cause is reported and not the consequence.
inline constexpr char kDerivedMark[] = "[_Derived_]";
bool IsDerived(const absl::Status& status);
absl::Status Derived(const absl::Status& status);

}  // namespace sluice
