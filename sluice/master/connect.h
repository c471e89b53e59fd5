// ConnectTasks: finds out which tasks of a cluster are there and what devices
// they have. Says who is missing while it waits (DESIGN D6).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "sluice/kernel/cancellation.h"
#include "sluice/master/options.h"
#include "sluice/worker/worker_interface.h"

namespace sluice {

struct ConnectedTask {
  std::string name;
  std::shared_ptr<WorkerInterface> worker;
  std::vector<DeviceInfo> devices;
  // Why it did not answer and was left out; empty if it did.
  std::string missing = {};
  // The session was open on a life of it that is over.
  bool was_here = false;
};

// Whether a node that asks for `device` would go to `task`, if it were there,
// rather than to one of those that are (docs/placement.md).
bool WouldGoTo(const std::string& task, const DeviceName& device,
               std::span<const std::string> present);

// Partial device names, as of tasks.
absl::StatusOr<std::vector<DeviceName>> ParseFilters(
    std::span<const std::string> texts);
// Whether one of them can mean the task or device `name`, or there are none.
bool PassesFilters(const DeviceName& name,
                   const std::vector<DeviceName>& filters);

using ConnectDone =
    absl::AnyInvocable<void(absl::StatusOr<std::vector<ConnectedTask>>)>;

// Asks every task of `workers` that the options' device filters leave, and
// `own_task` always. Calls `done` once: when all have answered, at the first
// error, or when options.task_deadline passed without news. After
// options.patience it goes on without tasks that the graph cannot need, as
// workers that are done.
void ConnectTasks(WorkerCache& workers, const std::string& own_task,
                  const SessionOptions& options,
                  std::shared_ptr<Cancellation> cancellation, ConnectDone done);

}  // namespace sluice
