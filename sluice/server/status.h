// The state of a running task in one snapshot: what `sluice status`, SIGUSR1
// and the stall watchdog read (docs/operations.md).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "sluice/base/clock.h"
#include "sluice/master/master.h"
#include "sluice/proto/task_status.pb.h"
#include "sluice/rpc/cluster_workers.h"
#include "sluice/rpc/services.h"
#include "sluice/worker/worker.h"

namespace sluice {

// The parts of one task. All are set.
struct TaskParts {
  std::string target;
  std::shared_ptr<Worker> worker;
  std::shared_ptr<Master> master;
  std::shared_ptr<ClusterWorkers> peers;
  std::shared_ptr<TaskActivity> activity;
  SteadyTime started;
};
pb::TaskStatus GetTaskStatus(const TaskParts& task);

// Asks the task at "host:port", with or without "grpc://". UNIMPLEMENTED if a
// TensorFlow server answers. Empty `tls`: the environment's. Blocks.
absl::StatusOr<pb::TaskStatus> FetchTaskStatus(
    const std::string& target, std::chrono::milliseconds timeout,
    const TlsOptions& tls = {});

// For people, and for programs.
std::string TaskStatusText(const pb::TaskStatus& status);
std::string TaskStatusJson(const pb::TaskStatus& status);

// "12 ms", "3.2 s", "2 min", "5 h".
std::string AgeText(double seconds);

// This release.
const char* SluiceVersion();

}  // namespace sluice
