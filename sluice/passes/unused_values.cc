#include "sluice/passes/unused_values.h"

#include <algorithm>
#include <ranges>
#include <string_view>

#include "absl/container/flat_hash_set.h"

namespace sluice {
namespace {

bool IsVariable(const Node& node) {
  return node.type() == "VariableV2" || node.type() == "Variable" ||
         node.type() == "VarHandleOp";
}

bool ReadsVariable(const Node& node) {
  return node.type() == "ReadVariableOp" || node.type() == "ResourceGather" ||
         std::ranges::any_of(node.inputs(),
                             [](Output in) { return IsRef(TypeOf(in)); });
}

// Whether all that happens when the node runs is that it has outputs.
bool OnlyComputes(const Node& node) {
  const std::string& type = node.type();
  if (IsVariable(node) || type == "ReadVariableOp" ||
      type == "ResourceGather") {
    return true;
  }
  if (node.op().def.stateful || node.IsControlFlow() ||
      node.num_outputs() == 0 || type.starts_with('_') ||
      type.starts_with("Placeholder") || type.starts_with("TensorArray") ||
      type == "CheckNumerics" || type == "EnsureShape") {
    return false;
  }
  for (int i = 0; i < node.num_inputs(); ++i) {
    // It may write there.
    if (IsRef(node.input_type(i)) || node.input_type(i) == DType::kResource) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::vector<bool> FindUnused(const std::vector<const Node*>& order,
                             std::span<const std::string> targets) {
  const absl::flat_hash_set<std::string_view> asked_for(targets.begin(),
                                                        targets.end());
  std::vector<bool> reads(order.size());
  for (const Node* node : order) {
    reads[node->id()] =
        ReadsVariable(*node) ||
        (node->type() == "Identity" && reads[node->input(0).node->id()]);
  }
  std::vector<bool> unused(order.size());
  for (const Node* node : std::views::reverse(order)) {
    // What nothing follows is what the step is for.
    if (node->out_edges().empty() || !OnlyComputes(*node) ||
        asked_for.contains(node->name())) {
      continue;
    }
    const bool taken =
        std::ranges::any_of(node->out_edges(), [&](const OutEdge& edge) {
          return edge.dst_input >= 0 ? !unused[edge.dst->id()]
                                     : reads[node->id()];
        });
    // In a branch that is not taken its end is no end of a wait, which an edge
    // from a Switch would be.
    const bool in_branch = std::ranges::any_of(
        node->inputs(), [](Output in) { return in.node->IsControlFlow(); });
    unused[node->id()] = !taken && !in_branch;
  }
  return unused;
}

}  // namespace sluice
