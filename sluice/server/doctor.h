// Diagnose: asks every task of a cluster who it is and says what is wrong with
// the cluster. Behind `sluice doctor`.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/kernel/device.h"
#include "sluice/rpc/tls.h"
#include "sluice/server/cluster_spec.h"

namespace sluice {

struct TaskDiagnosis {
  std::string task;  // As the cluster names it.
  std::string address;
  bool healthy = false;
  std::string finding;  // "is well", or what was found.
  std::string advice;   // What to do; empty if nothing.
  std::vector<DeviceInfo> devices;
  uint64_t incarnation = 0;  // Of its first device.
  std::string version;       // Empty for TensorFlow.
  std::optional<double> round_trip_ms;
  // Its clock minus ours; nothing if it is not Sluice.
  std::optional<double> skew_ms;
};

struct DoctorOptions {
  // For a task to answer at all.
  std::chrono::milliseconds timeout = std::chrono::seconds(5);
  // Clocks further apart than this are a finding: logs, traces and the times
  // of checkpoints then mislead.
  double max_skew_ms = 1000;
  TlsOptions tls = {};  // Empty: the environment's.
};

// In the order of the cluster. Blocks; all tasks are asked at once. An error if
// `options.tls` cannot be used.
absl::StatusOr<std::vector<TaskDiagnosis>> Diagnose(
    const ClusterSpec& cluster, const DoctorOptions& options = {});

// A table for people, with a sentence under it.
std::string DiagnosisText(const std::vector<TaskDiagnosis>& tasks);

struct ClusterDevices {
  std::vector<DeviceInfo> devices;
  std::vector<TaskDiagnosis> missing;  // The tasks that do not answer.
};
// The devices of the cluster that the task at "host:port" belongs to, as its
// master sees them. Blocks for two timeouts at most.
absl::StatusOr<ClusterDevices> ListClusterDevices(
    const std::string& address, const DoctorOptions& options = {});

}  // namespace sluice
