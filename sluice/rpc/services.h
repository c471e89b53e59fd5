// The two services of a task: what arrives at a path becomes a call of its
// Worker or Master.
#pragma once

#include <memory>

#include "sluice/master/master.h"
#include "sluice/rpc/generic_server.h"
#include "sluice/worker/worker.h"

namespace sluice {

namespace pb {
class ClusterDef;
}  // namespace pb

// Handles one call; false if the path is not one of this service.
using ServiceHandler = std::function<bool(std::shared_ptr<ServerCall>)>;

// `cluster` is the one the worker belongs to.
ServiceHandler MakeWorkerService(std::shared_ptr<Worker> worker,
                                 const pb::ClusterDef& cluster);
ServiceHandler MakeMasterService(std::shared_ptr<Master> master);

// Both together; other paths are answered UNIMPLEMENTED.
CallHandler MakeTaskHandler(std::shared_ptr<Worker> worker,
                            std::shared_ptr<Master> master,
                            const pb::ClusterDef& cluster);

}  // namespace sluice
