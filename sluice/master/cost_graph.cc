#include "sluice/master/cost_graph.h"

#include "absl/container/flat_hash_map.h"

namespace sluice {

std::vector<CostNode> CostGraph(
    std::span<const std::shared_ptr<const Graph>> parts,
    std::span<const StepStatsCollector::DeviceStats> stats) {
  std::vector<CostNode> nodes;
  std::vector<int> num_outputs;  // Of each of them.
  absl::flat_hash_map<std::string, int> by_name;
  for (const auto& part : parts) {
    // Ids of a graph follow each other.
    const int first = static_cast<int>(nodes.size());
    for (int id = 0; id < part->num_nodes(); ++id) {
      const Node& node = *part->node(id);
      CostNode& cost = nodes.emplace_back();
      cost.id = first + id;
      cost.name = node.name();
      cost.device = node.assigned_device();
      // Its value leaves the part.
      cost.is_final = node.type() == "_Send";
      for (const Output& input : node.inputs()) {
        cost.inputs.push_back({first + input.node->id(), input.index});
      }
      for (const Node* control : node.control_inputs()) {
        cost.controls.push_back(first + control->id());
      }
      by_name[node.name()] = first + id;
      num_outputs.push_back(node.num_outputs());
    }
  }
  for (const auto& device : stats) {
    for (const NodeStats& ran : device.nodes) {
      const auto it = by_name.find(ran.node);
      // A worker has nodes of its own, as between its devices.
      if (it == by_name.end()) continue;
      CostNode& cost = nodes[it->second];
      cost.micros += (ran.end_nanos - ran.start_nanos) / 1000;
      cost.outputs = ran.outputs;  // A node in a loop runs many times.
      // They may come from another process.
      std::erase_if(cost.outputs, [&](const NodeStats::OutputStats& output) {
        return output.slot < 0 || output.slot >= num_outputs[it->second];
      });
    }
  }
  return nodes;
}

}  // namespace sluice
