// Workers in other processes, and the meeting place of steps that reach them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "sluice/rpc/client_call.h"
#include "sluice/worker/worker.h"
#include "sluice/worker/worker_interface.h"

namespace sluice {

// A worker that can also be asked for tensors.
class PeerWorker : public WorkerInterface {
 public:
  virtual void RecvTensor(int64_t step_id, const std::string& key,
                          Cancellation* cancellation,
                          Rendezvous::RecvDone done) = 0;
  // Several in one answer; only if it TakesGroups.
  virtual void RecvTensors(int64_t step_id, std::span<const std::string> keys,
                           Cancellation* cancellation,
                           Rendezvous::GroupDone done) = 0;
  // "host:port", and when it last answered a call, if it ever did.
  virtual std::string address() const { return ""; }
  virtual std::optional<SteadyTime> last_answer() const { return {}; }
  // Whether calls go there by a lane.
  virtual bool has_lane() const { return false; }
};

// A task and where it listens ("host:port").
struct TaskAddress {
  std::string task;
  std::string address;
  uint64_t incarnation = 0;  // Of its first device; 0: not known.
};

// Makes the way to an address ("host:port").
using ChannelMaker = std::function<absl::StatusOr<std::shared_ptr<RpcChannel>>(
    const std::string& address)>;

// A stub for `peer`, used by `asker`. A server there that knows of no such
// asker belongs to another cluster.
absl::StatusOr<std::shared_ptr<PeerWorker>> MakeRemoteWorker(
    const TaskAddress& peer, const TaskAddress& asker,
    const ChannelMaker& connect = RpcChannel::Create);
// The same in a cluster that a client gave: the task at the address goes by
// another name elsewhere, and need not know the asker.
absl::StatusOr<std::shared_ptr<PeerWorker>> MakeRenamedWorker(
    const TaskAddress& peer, const ChannelMaker& connect = RpcChannel::Create);

// The workers of a cluster: `own` by direct calls, the rest by stubs.
class ClusterWorkers : public WorkerCache {
 public:
  // `addresses` maps task names to "host:port"; the entry of `own` is what
  // its peers should know.
  static absl::StatusOr<std::shared_ptr<ClusterWorkers>> Create(
      std::shared_ptr<Worker> own,
      const std::map<std::string, std::string>& addresses,
      const ChannelMaker& connect = RpcChannel::Create);

  // Of a cluster that a client gave, in which this task is `own_task`. Without
  // `own` only peers can be found.
  static absl::StatusOr<std::shared_ptr<ClusterWorkers>> CreateRenamed(
      std::shared_ptr<Worker> own, const std::string& own_task,
      const std::map<std::string, std::string>& addresses,
      const ChannelMaker& connect = RpcChannel::Create);

  std::vector<std::string> Tasks() const override;
  std::shared_ptr<WorkerInterface> Find(std::string_view task) override;
  // nullptr for the own task and unknown ones.
  std::shared_ptr<PeerWorker> FindPeer(std::string_view task) const;
  const std::string& own_task() const { return own_task_; }
  // The others by name.
  const std::map<std::string, std::shared_ptr<PeerWorker>, std::less<>>& peers()
      const {
    return peers_;
  }

 private:
  std::shared_ptr<Worker> own_;
  std::string own_task_;
  std::map<std::string, std::shared_ptr<PeerWorker>, std::less<>> peers_;
};

// Lets the steps of `worker` receive tensors from the peers of `cluster`.
// `connect` reaches those of clusters that a client gives.
void ConnectRendezvous(Worker& worker,
                       const std::shared_ptr<ClusterWorkers>& cluster,
                       const ChannelMaker& connect = RpcChannel::Create);

}  // namespace sluice
