#include "sluice/rpc/cluster_workers.h"

#include <algorithm>

#include "sluice/base/status.h"

namespace sluice {
namespace {

// A step's table that fetches what other tasks produce.
class RemoteRendezvous : public Rendezvous,
                         public std::enable_shared_from_this<RemoteRendezvous> {
 public:
  RemoteRendezvous(int64_t step_id, std::shared_ptr<LocalRendezvous> local,
                   std::shared_ptr<ClusterWorkers> cluster)
      : step_id_(step_id),
        local_(std::move(local)),
        cluster_(std::move(cluster)) {}

  absl::Status Send(std::string_view key, Parcel parcel) override {
    return local_->Send(key, std::move(parcel));
  }

  void RecvAsync(std::string_view key, RecvDone done) override {
    const std::string_view task = SourceOf(key);
    std::shared_ptr<PeerWorker> peer = cluster_->FindPeer(task);
    if (peer == nullptr && task == cluster_->own_task()) {
      local_->RecvAsync(key, std::move(done));
      return;
    }
    if (peer == nullptr) {
      done(Stranger(task));
      return;
    }
    // The call may outlive the step's table; it keeps this object.
    peer->RecvTensor(step_id_, std::string(key), &calls_,
                     [self = shared_from_this(), done = std::move(done)](
                         absl::StatusOr<Parcel> parcel) mutable {
                       done(self->OrAbort(std::move(parcel)));
                     });
  }

  void RecvGroupAsync(std::span<const std::string> keys,
                      GroupDone done) override {
    const std::string_view task = SourceOf(keys[0]);
    std::shared_ptr<PeerWorker> peer = cluster_->FindPeer(task);
    if (peer == nullptr && task == cluster_->own_task()) {
      local_->RecvGroupAsync(keys, std::move(done));
      return;
    }
    if (peer == nullptr) {
      done(Stranger(task));
      return;
    }
    peer->RecvTensors(step_id_, keys, &calls_,
                      [self = shared_from_this(), done = std::move(done)](
                          absl::StatusOr<std::vector<Parcel>> parcels) mutable {
                        done(self->OrAbort(std::move(parcels)));
                      });
  }

  void Abort(absl::Status status) override {
    local_->Abort(status);
    calls_.Cancel(std::move(status));
  }

 private:
  static std::string_view SourceOf(std::string_view key) {
    return TaskOf(key.substr(0, key.find(';')));
  }
  // The calls of an aborted step end one after the other. The peer that hears
  // of the first may end the others before they are cancelled here.
  template <typename T>
  absl::StatusOr<T> OrAbort(absl::StatusOr<T> received) const {
    if (received.ok() || !calls_.cancelled()) return received;
    return calls_.status();
  }
  // Nobody here would ever send what a task has that this one does not know.
  absl::Status Stranger(std::string_view task) const {
    return NotInCluster("A tensor of the step", task, cluster_->own_task());
  }

  const int64_t step_id_;
  const std::shared_ptr<LocalRendezvous> local_;
  const std::shared_ptr<ClusterWorkers> cluster_;
  Cancellation calls_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<ClusterWorkers>> ClusterWorkers::CreateRenamed(
    std::shared_ptr<Worker> own, const std::string& own_task,
    const std::map<std::string, std::string>& addresses,
    const ChannelMaker& connect) {
  auto cluster = std::make_shared<ClusterWorkers>();
  cluster->own_ = std::move(own);
  cluster->own_task_ = own_task;
  for (const auto& [task, address] : addresses) {
    if (task == own_task) continue;
    SLUICE_ASSIGN_OR_RETURN(cluster->peers_[task],
                            MakeRenamedWorker({task, address}, connect));
  }
  return cluster;
}

absl::StatusOr<std::shared_ptr<ClusterWorkers>> ClusterWorkers::Create(
    std::shared_ptr<Worker> own,
    const std::map<std::string, std::string>& addresses,
    const ChannelMaker& connect) {
  auto cluster = std::make_shared<ClusterWorkers>();
  cluster->own_ = std::move(own);
  cluster->own_task_ = cluster->own_->task().ToString();
  const auto own_address = addresses.find(cluster->own_task_);
  if (own_address == addresses.end()) {
    return InvalidArgument(cluster->own_task_, " has no address");
  }
  TaskAddress asker{own_address->first, own_address->second};
  asker.incarnation = cluster->own_->devices()[0].incarnation;
  for (const auto& [task, address] : addresses) {
    if (task == cluster->own_task_) continue;
    SLUICE_ASSIGN_OR_RETURN(cluster->peers_[task],
                            MakeRemoteWorker({task, address}, asker, connect));
  }
  return cluster;
}

std::vector<std::string> ClusterWorkers::Tasks() const {
  std::vector<std::string> tasks = {own_task_};
  for (const auto& [task, worker] : peers_) tasks.push_back(task);
  std::ranges::sort(tasks);
  return tasks;
}

std::shared_ptr<WorkerInterface> ClusterWorkers::Find(std::string_view task) {
  if (task == own_task_) return own_;
  return FindPeer(task);
}

std::shared_ptr<PeerWorker> ClusterWorkers::FindPeer(
    std::string_view task) const {
  auto it = peers_.find(task);
  return it == peers_.end() ? nullptr : it->second;
}

void ConnectRendezvous(Worker& worker,
                       const std::shared_ptr<ClusterWorkers>& cluster,
                       const ChannelMaker& connect) {
  worker.set_cluster_tasks(cluster->Tasks());
  // Weak: the cluster holds the worker.
  worker.set_rendezvous_factory(
      [weak = std::weak_ptr<ClusterWorkers>(cluster)](
          int64_t step_id, std::shared_ptr<LocalRendezvous> local)
          -> std::shared_ptr<Rendezvous> {
        std::shared_ptr<ClusterWorkers> cluster = weak.lock();
        if (cluster == nullptr) return local;
        return std::make_shared<RemoteRendezvous>(step_id, std::move(local),
                                                  std::move(cluster));
      });
  worker.set_cluster_rendezvous_factory(
      [connect](
          const std::map<std::string, std::string>& tasks,
          const std::string& own_task) -> absl::StatusOr<RendezvousFactory> {
        // Without the worker, which will hold the factory.
        SLUICE_ASSIGN_OR_RETURN(
            std::shared_ptr<ClusterWorkers> peers,
            ClusterWorkers::CreateRenamed(nullptr, own_task, tasks, connect));
        return [peers](int64_t step_id, std::shared_ptr<LocalRendezvous> local)
                   -> std::shared_ptr<Rendezvous> {
          return std::make_shared<RemoteRendezvous>(step_id, std::move(local),
                                                    peers);
        };
      });
}

}  // namespace sluice
