// Worker: one task's runtime — its devices, sessions, registered graphs, and
// the tensors of running steps.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/worker/worker_interface.h"

namespace sluice {

// Wraps a step's local table into a rendezvous that also reaches other tasks.
using RendezvousFactory = std::function<std::shared_ptr<Rendezvous>(
    int64_t step_id, std::shared_ptr<LocalRendezvous> local)>;

// The same for a session whose cluster is its own: tasks by name, and which of
// them this worker is.
using ClusterRendezvousFactory =
    std::function<absl::StatusOr<RendezvousFactory>(
        const std::map<std::string, std::string>& tasks,
        const std::string& own_task)>;

// Thread-safe.
class Worker : public WorkerInterface,
               public std::enable_shared_from_this<Worker> {
 public:
  // A worker named `task` ("/job:ps/replica:0/task:0") with this many CPUs.
  // Its kernels read and write `files`, which must outlive it.
  static std::shared_ptr<Worker> Create(const DeviceName& task, int num_cpus,
                                        FileSystem& files = RealFileSystem());
  ~Worker() override;

  const DeviceName& task() const;
  std::vector<DeviceInfo> devices() const;
  // nullptr if it has none of this full name.
  Device* FindDevice(std::string_view full_name) const;

  // Before the first step, by whoever connects the worker to others.
  void set_rendezvous_factory(RendezvousFactory factory);
  void set_cluster_rendezvous_factory(ClusterRendezvousFactory factory);
  // Those that its steps can receive from; before the first graph. Without, it
  // takes graphs that receive from any.
  void set_cluster_tasks(std::vector<std::string> tasks);
  // Called when a step is over here, so that others drop what they keep of it;
  // before the first step.
  void set_step_over(std::function<void(int64_t step_id)> callback);
  // How many graphs may be registered at a time; before the first.
  void set_max_graphs(int64_t count);
  // How many nodes one may have with the bodies of its functions in it.
  void set_max_graph_nodes(int64_t count);

  void GetStatus(bool wait, Cancellation* cancellation,
                 StatusDone done) override;
  void CreateSession(CreateSessionRequest request, Done done) override;
  void DeleteSession(const std::string& handle, Done done) override;
  void RegisterGraph(RegisterGraphRequest request, RegisterDone done) override;
  void RunGraph(const RunGraphRequest& request, Done done) override;
  void CleanupGraph(int64_t step_id, Done done) override;
  std::shared_ptr<Rendezvous> StepRendezvous(
      int64_t step_id, const std::string& session_handle) override;
  void CleanupAll(std::vector<std::string> containers, Done done) override;
  bool TakesGroups() const override { return true; }

  // A peer asks for a tensor of a step. It may come before the step's RunGraph.
  void RecvTensor(int64_t step_id, const std::string& key,
                  Rendezvous::RecvDone done);
  // The same for several at once; at least one.
  void RecvTensors(int64_t step_id, std::span<const std::string> keys,
                   Rendezvous::GroupDone done);
  // Ends every step's transfers; for a task that stops.
  void Shutdown();
  // Whether the step has been cleaned up, as far as that is remembered.
  bool IsOver(int64_t step_id) const;
  // Ends what others of a cancelled step wait for here, and what a step waits
  // for that has lost one of its receivers.
  void AbortStep(int64_t step_id, const absl::Status& status);

  // Names of the graph's client-terminated receives and sends, in node order,
  // for masters that do not tell.
  static void ListClientEdges(const Graph& graph,
                              std::vector<std::string>* feeds,
                              std::vector<std::string>* fetches);

  // Says that the calling thread polls the network: long work that becomes
  // ready on it goes to the compute pool.
  static void MarkNetworkThread();
  // Kernels that this process has run.
  static int64_t KernelsRun();

  bool HasSession(const std::string& handle) const;
  // How a master learns that the task has forgotten its session.
  absl::Status NoSession(const std::string& handle) const;
  // Sessions and steps with transfers now known.
  int num_sessions() const;
  int num_steps() const;
  // Graphs that a session or a running step still holds.
  int num_graphs() const;
  // The steps with what is asked for in them and was not sent yet.
  struct Transfers {
    int64_t step_id = 0;
    std::vector<std::string> wanted;
  };
  std::vector<Transfers> ListTransfers() const;

 private:
  struct State;
  explicit Worker(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace sluice
