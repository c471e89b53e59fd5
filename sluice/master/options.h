// What a client can ask of a session and of a step, in C++ terms. rpc/config.h
// makes these from the wire's ConfigProto and RunOptions.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sluice/graph/graph.h"
#include "sluice/kernel/step.h"

namespace sluice {

// A cluster that a client gives a session in place of the server's own. Its
// tasks are served by the same processes under other names.
struct SessionCluster {
  // "/job:ps/replica:0/task:0" to "host:port".
  std::map<std::string, std::string> tasks;
  std::string text;  // The same as the client wrote it.
  // Where the client finds the master: its own entry has this address.
  std::string target;
  // Off: variables and the like are the session's own.
  bool share_state = false;
};

// How long a session waits for missing tasks unless it is told otherwise.
inline constexpr std::chrono::milliseconds kTaskDeadline =
    std::chrono::minutes(10);
// SLUICE_TASK_DEADLINE_SECONDS overrules it.
std::chrono::milliseconds DefaultTaskDeadline();

struct SessionOptions {
  bool allow_soft_placement = false;
  bool log_device_placement = false;
  // Partial device names; only tasks that match one are asked for devices.
  // Empty: all tasks.
  std::vector<std::string> device_filters;
  // Resources of this session are its own and die with it.
  bool isolate_session_state = false;
  std::optional<SessionCluster> cluster;
  // Limit for each call of this session, and for opening it; 0: none.
  int64_t operation_timeout_ms = 0;
  // Float values cross from task to task as bfloat16.
  bool bfloat16_transfers = false;
  // The graph does not grow after the first step.
  bool static_graph = false;
  // Steps that ask for their partition graphs are refused.
  bool no_partition_graphs = false;
  // Through the network also to a master in this process.
  bool use_rpc = false;
  // Simplification of step graphs.
  bool fold_constants = true;
  bool merge_common = true;
  // CPU devices of a session that has its own worker.
  int num_cpus = 1;
  // Threads to compute with, if this session or server is the first of its
  // process; 0: the default (base/thread_pool.h).
  int compute_threads = 0;
  // Pools that steps of a session in this process may name.
  int num_thread_pools = 1;
  // Ops that ask for no task go to the session's own, not to the first device
  // of the cluster.
  bool prefer_own_task = false;
  // A node that cannot be placed fails every step, not only those that need it.
  bool eager_placement = false;
  // How long a session waits for tasks that do not answer, counted from the
  // change in any of them.
  std::chrono::milliseconds task_deadline = DefaultTaskDeadline();
  // The devices that the nodes of the session's graph ask for (partial names,
  // "" for any), as far as it is known when the session is opened. Tasks that
  // none of them can mean are not waited for longer than `patience`, and asked
  // again by the first step that needs them. Empty: nothing is known.
  std::set<std::string> wanted_devices = {};
  std::chrono::milliseconds patience = std::chrono::seconds(4);
  // The client is another process.
  bool remote = false;
  // Every so many steps of a kind return their cost graph, after the first so
  // many; 0: none does.
  int64_t build_cost_model = 0;
  int64_t build_cost_model_after = 0;
  // What the client asked for that only the log knows.
  bool place_pruned_graph = false;
  std::vector<std::string> without_effect = {};  // Names of options.
  std::string text = {};
};

struct RunOptions {
  int64_t timeout_ms = 0;  // 0: the session's.
  bool trace = false;
  // Traces in a local session alone, as TensorFlow's lower levels do.
  bool trace_local = false;
  bool partition_graphs = false;
  // -1: the calling thread.
  int thread_pool = 0;
  // Tensors are to be watched.
  bool debug = false;
};

// What a node cost in one step. Other nodes are meant by their id.
struct CostNode {
  int id = 0;
  std::string name, device;
  bool is_final = false;                    // Its value leaves the graph.
  std::vector<std::pair<int, int>> inputs;  // Node, output.
  std::vector<int> controls;
  std::vector<NodeStats::OutputStats>
      outputs;  // By slot, those that were made.
  int64_t micros = 0;
};

// What a step reports about itself, if asked to.
struct RunMetadata {
  std::vector<StepStatsCollector::DeviceStats> step_stats;
  std::vector<std::shared_ptr<const Graph>> partition_graphs;
  std::vector<CostNode> cost_graph;
};

}  // namespace sluice
