// The workers of a cluster, and the meeting place of steps that reach several.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/rpc/remote_worker.h"
#include "sluice/worker/worker.h"

namespace sluice {

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
