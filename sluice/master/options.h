// What a client can ask of a session and of a step, in C++ terms. rpc/config.h
// makes these from the wire's ConfigProto and RunOptions.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/graph/graph.h"
#include "sluice/kernel/step.h"

namespace sluice {

struct SessionOptions {
  bool allow_soft_placement = false;
  bool log_device_placement = false;
  // Partial device names; only tasks that match one are asked for devices.
  // Empty: all tasks.
  std::vector<std::string> device_filters;
  // Resources of this session are its own and die with it.
  bool isolate_session_state = false;
  // Limit for each call of this session; 0: none.
  int64_t operation_timeout_ms = 0;
  // Simplification of step graphs.
  bool fold_constants = true;
  bool merge_common = true;
  // CPU devices of a session that has its own worker.
  int num_cpus = 1;
  // How long a session waits for tasks that do not answer, counted from the
  // last sign of any of them.
  std::chrono::milliseconds task_deadline = std::chrono::minutes(10);
};

struct RunOptions {
  int64_t timeout_ms = 0;  // 0: the session's.
  bool trace = false;
  bool partition_graphs = false;
};

// What a step reports about itself, if asked to.
struct RunMetadata {
  std::vector<StepStatsCollector::DeviceStats> step_stats;
  std::vector<std::shared_ptr<const Graph>> partition_graphs;
};

}  // namespace sluice
