// What a worker keeps for one session: its view of the devices, the kernels
// that have state, and the graphs registered in it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "sluice/base/mutex.h"
#include "sluice/executor/executor.h"
#include "sluice/worker/worker.h"

namespace sluice {

// Thread-safe.
class WorkerSession {
 public:
  // Borrowed devices, or own ones when the session is isolated or has a
  // cluster of its own. `rendezvous` leads to the peers of that cluster.
  WorkerSession(CreateSessionRequest request,
                std::vector<std::shared_ptr<Device>> devices,
                RendezvousFactory rendezvous = nullptr)
      : request_(std::move(request)),
        devices_(std::move(devices)),
        rendezvous_factory_(std::move(rendezvous)) {}

  // What it was opened with.
  const CreateSessionRequest& request() const { return request_; }
  std::span<const std::shared_ptr<Device>> devices() const { return devices_; }
  Device* FindDevice(std::string_view name) const;
  // Empty: the worker's.
  const RendezvousFactory& rendezvous_factory() const {
    return rendezvous_factory_;
  }

  // The kernel of a stateful node, the same one for all graphs of the session
  // in which the node means the same.
  absl::StatusOr<std::shared_ptr<Kernel>> StatefulKernel(const Node& node,
                                                         Device& device);

 private:
  // Graphs come from other processes, so a name alone proves nothing.
  struct KernelOfNode {
    std::string type;
    std::string device;
    AttrMap attrs;
    std::shared_ptr<Kernel> kernel;
    bool SameNode(const KernelOfNode& other) const {
      return type == other.type && device == other.device &&
             attrs == other.attrs;
    }
  };

  const CreateSessionRequest request_;
  const std::vector<std::shared_ptr<Device>> devices_;
  const RendezvousFactory rendezvous_factory_;
  Mutex mu_;
  absl::flat_hash_map<std::string, KernelOfNode> kernels_
      SLUICE_GUARDED_BY(mu_);
};

// A part of a step, split by device and compiled. Immutable.
class SessionGraph : public RegisteredGraph {
 public:
  // `most_nodes` it may have with the bodies of its functions in it. It may
  // receive from `cluster_tasks`, or those of the session's own cluster; from
  // any, if both are empty.
  static absl::StatusOr<std::shared_ptr<SessionGraph>> Create(
      const RegisterGraphRequest& request,
      std::shared_ptr<WorkerSession> session, int64_t most_nodes,
      std::span<const std::string> cluster_tasks);

  struct DevicePart {
    std::shared_ptr<const Graph> graph;
    std::vector<std::shared_ptr<Kernel>> kernels;
    std::unique_ptr<Executor> executor;
  };
  std::span<const DevicePart> parts() const { return parts_; }
  // Whether tensors change hands: between tasks or between devices.
  bool has_transfers() const { return has_transfers_; }
  WorkerSession& session() const { return *session_; }
  const std::vector<std::string>& feeds() const { return feeds_; }
  const std::vector<std::string>& fetches() const { return fetches_; }
  // Held as long as the graph lives, so that its worker can count.
  void set_token(std::shared_ptr<const void> token) {
    token_ = std::move(token);
  }

 private:
  absl::Status AddPart(const Graph& graph, Device& device, DevicePart* part);

  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<WorkerSession> session_;
  std::vector<DevicePart> parts_;
  std::vector<std::string> feeds_, fetches_;
  bool has_transfers_ = false;
  std::shared_ptr<const void> token_;
};

}  // namespace sluice
