// The two services of a task: what arrives at a path becomes a call of its
// Worker or Master.
#pragma once

#include <functional>
#include <memory>

#include "sluice/base/limits.h"
#include "sluice/master/master.h"
#include "sluice/rpc/call_counters.h"
#include "sluice/rpc/generic_server.h"
#include "sluice/rpc/open_transfers.h"
#include "sluice/rpc/session_uses.h"
#include "sluice/worker/worker.h"

namespace sluice {

namespace pb {
class ClusterDef;
class GraphDef;
class TaskStatus;
}  // namespace pb

// What a task knows of those who call it. Thread-safe.
struct TaskActivity {
  SessionUses clients;  // Their sessions are the master's.
  SessionUses masters;  // Those of other tasks, with sessions of the worker.
  CallCounters calls;
  const std::shared_ptr<OpenTransfers> transfers =
      std::make_shared<OpenTransfers>();
  // Set before the first call: the name of its lane, if it has one.
  std::string lane;
  // Set before the first call; without it the task does not tell its status.
  std::function<void(pb::TaskStatus*)> status;
};

// Handles one call; false if the path is not one of this service.
using ServiceHandler = std::function<bool(std::shared_ptr<ServerCall>)>;

// `cluster` is the one the worker belongs to.
ServiceHandler MakeWorkerService(std::shared_ptr<Worker> worker,
                                 const pb::ClusterDef& cluster,
                                 std::shared_ptr<TaskActivity> activity,
                                 const Limits& limits = {});
ServiceHandler MakeMasterService(std::shared_ptr<Master> master,
                                 std::shared_ptr<TaskActivity> activity,
                                 const Limits& limits = {});
// What only Sluice has: Status and Hold.
ServiceHandler MakeTaskService(std::shared_ptr<TaskActivity> activity);

// Whether a client's graph may be that large: `known` nodes are there already.
absl::Status CheckGraphSize(const pb::GraphDef& graph, int64_t known,
                            const Limits& limits);

// All together; other paths are answered UNIMPLEMENTED.
CallHandler MakeTaskHandler(
    std::shared_ptr<Worker> worker, std::shared_ptr<Master> master,
    const pb::ClusterDef& cluster,
    std::shared_ptr<TaskActivity> activity = std::make_shared<TaskActivity>(),
    const Limits& limits = {});

}  // namespace sluice
