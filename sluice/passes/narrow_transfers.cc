#include "sluice/passes/narrow_transfers.h"

#include <map>
#include <vector>

#include "sluice/base/status.h"
#include "sluice/graph/device_name.h"
#include "sluice/passes/control_loops.h"
#include "sluice/passes/transfer_groups.h"

namespace sluice {
namespace {

absl::StatusOr<Node*> AddCast(Graph& graph, Output value, DType to,
                              const std::string& device) {
  SLUICE_ASSIGN_OR_RETURN(
      Node * cast,
      graph.AddNode({StrCat(value.node->name(), "/_N", graph.num_nodes()),
                     "Cast",
                     {value},
                     {},
                     {{"SrcT", BaseType(TypeOf(value))},
                      {"DstT", to},
                      {"Truncate", to == DType::kBfloat16}},
                     ""}));
  cast->set_assigned_device(device);
  return cast;
}

absl::Status NarrowOutputs(Graph& graph, Node* node) {
  std::map<int, Node*> narrow;                        // By output.
  std::map<std::pair<int, std::string>, Node*> wide;  // And by device.
  const std::vector<OutEdge> edges(node->out_edges().begin(),
                                   node->out_edges().end());
  for (const OutEdge& edge : edges) {
    const std::string& device = edge.dst->assigned_device();
    if (edge.src_output < 0 ||
        TaskOf(device) == TaskOf(node->assigned_device())) {
      continue;
    }
    const Output value = node->output(edge.src_output);
    // A cast would read a variable too early.
    if (BaseType(TypeOf(value)) != DType::kFloat ||
        IsReadLate(*edge.dst, value)) {
      continue;
    }
    Node*& before = narrow[edge.src_output];
    if (before == nullptr) {
      SLUICE_ASSIGN_OR_RETURN(
          before, AddCast(graph, node->output(edge.src_output),
                          DType::kBfloat16, node->assigned_device()));
    }
    Node*& after = wide[{edge.src_output, device}];
    if (after == nullptr) {
      SLUICE_ASSIGN_OR_RETURN(
          after, AddCast(graph, before->output(0), DType::kFloat, device));
      // In a loop it is this node now that receives.
      for (Node* control : edge.dst->control_inputs()) {
        if (IsControlLoopMerge(*control) &&
            control->assigned_device() == device) {
          graph.AddControlEdge(control, after);
        }
      }
    }
    SLUICE_RETURN_IF_ERROR(
        graph.SetInput(edge.dst, edge.dst_input, after->output(0)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status NarrowTransfers(Graph& graph) {
  const int num_nodes = graph.num_nodes();
  for (int id = 0; id < num_nodes; ++id) {
    SLUICE_RETURN_IF_ERROR(NarrowOutputs(graph, graph.node(id)));
  }
  return absl::OkStatus();
}

}  // namespace sluice
