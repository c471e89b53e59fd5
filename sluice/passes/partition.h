// Partition: cuts a placed graph into parts, one per task (by the master) or
// one per device (by a worker), and joins the ends of cut edges with `_Send`
// and `_Recv`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/graph/graph.h"

namespace sluice {

struct PartitionOptions {
  // The part a node on this (full) device belongs to.
  std::function<std::string(std::string_view device)> part_of;
  // The incarnation of a device.
  std::function<absl::StatusOr<uint64_t>(std::string_view device)> incarnation;
  // Distinguishes node names made by the master ("_S") and workers ("_G").
  std::string suffix;
  // Receive values together where that keeps nobody waiting
  // (transfer_groups.h).
  bool group_transfers = false;
};

// Gives small constants to every device that takes them, so that they need not
// travel. The graph must be placed.
absl::Status SpreadConstants(Graph& graph);

struct Part {
  std::string name;
  std::unique_ptr<Graph> graph;
};

// Parts in order of their first node. Nodes must have assigned devices; loops
// that span several, their control loops. What a NoOp that nothing follows,
// such as that of a group, waits for in other parts is left to the end of
// those.
absl::StatusOr<std::vector<Part>> Partition(const Graph& graph,
                                            const PartitionOptions& options);

}  // namespace sluice
