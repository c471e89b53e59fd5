// Workers in other processes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "sluice/rpc/client_call.h"
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

}  // namespace sluice
