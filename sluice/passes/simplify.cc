#include "sluice/passes/simplify.h"

#include <algorithm>
#include <bit>
#include <queue>

#include "absl/container/flat_hash_map.h"
#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/graph/functions.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/kernel/run_kernel.h"
#include "sluice/passes/unused_values.h"

namespace sluice {
namespace {

// Nodes in an order in which inputs come first; empty if there are loops.
std::vector<const Node*> Order(const Graph& graph) {
  std::vector<int> pending(graph.num_nodes());
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = *graph.node(id);
    pending[id] =
        node.num_inputs() + static_cast<int>(node.control_inputs().size());
    if (pending[id] == 0) ready.push(id);
  }
  std::vector<const Node*> order;
  while (!ready.empty()) {
    const Node* node = graph.node(ready.top());
    ready.pop();
    order.push_back(node);
    for (const OutEdge& edge : node->out_edges()) {
      if (--pending[edge.dst->id()] == 0) ready.push(edge.dst->id());
    }
  }
  if (static_cast<int>(order.size()) != graph.num_nodes()) order.clear();
  return order;
}

// Whether two runs of the node with the same inputs give the same and do
// nothing else.
bool IsPure(const Node& node) {
  if (node.op().def.stateful || node.IsControlFlow()) return false;
  if (node.type().starts_with('_') || node.type().starts_with("Placeholder") ||
      node.type() == "ControlTrigger" || node.type() == "NoOp" ||
      node.num_outputs() == 0) {
    return false;
  }
  for (int i = 0; i < node.num_inputs(); ++i) {
    // The value of a variable depends on when it is read.
    if (IsRef(TypeOf(node.input(i))) || IsRef(node.input_type(i))) return false;
    if (node.input_type(i) == DType::kResource) return false;
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (IsRef(node.output_type(i))) return false;
  }
  return true;
}

// False for kinds whose text does not tell values apart.
bool AppendAttr(const std::string& name, const AttrValue& value,
                std::string* key) {
  StrAppend(key, "|", name, "=");
  if (const float* f = value.get<float>()) {
    StrAppend(key, std::bit_cast<uint32_t>(*f));
    return true;
  }
  if (value.get<Tensor>() != nullptr || value.get<FunctionName>() != nullptr) {
    return false;
  }
  if (const AttrList* list = value.get<AttrList>();
      list != nullptr && (!list->floats.empty() || !list->tensors.empty() ||
                          !list->functions.empty())) {
    return false;
  }
  StrAppend(key, value.DebugString());
  return true;
}

class Simplifier {
 public:
  Simplifier(const Graph& graph, const SimplifyOptions& options)
      : graph_(graph),
        options_(options),
        out_(std::make_unique<Graph>()),
        copies_(graph.num_nodes()),
        reads_variable_(graph.num_nodes()),
        values_(graph.num_nodes()) {}

  // nullptr if there is nothing to do.
  std::unique_ptr<Graph> Run() {
    out_->versions() = graph_.versions();
    if (!graph_.functions().empty()) out_->functions() = graph_.functions();
    const std::vector<const Node*> order = Order(graph_);
    if (order.empty()) return nullptr;
    if (options_.drop_unused) unused_ = FindUnused(order, options_.targets);
    for (const Node* node : order) {
      if (options_.drop_unused && unused_[node->id()]) {
        Drop(*node);
        continue;
      }
      for (const Output& input : node->inputs()) {
        // Through Identity a read of a variable stays one.
        if (IsRef(TypeOf(input)) ||
            (node->type() == "Identity" && reads_variable_[input.node->id()])) {
          reads_variable_[node->id()] = true;
        }
      }
      if (options_.fold_constants && TryFold(*node)) continue;
      if (options_.merge_common && TryMerge(*node)) continue;
      Copy(*node);
    }
    return std::move(out_);
  }

 private:
  // Calls visit(copy) for what waiting for `node` is waiting for.
  template <typename Visit>
  void ForWaits(const Node* node, const Visit& visit) {
    if (Node* copy = copies_[node->id()]) {
      visit(copy);
    } else if (const auto it = waits_.find(node->id()); it != waits_.end()) {
      for (Node* wait : it->second) visit(wait);
    }
    // A folded node has happened already.
  }

  // Leaves the node out. Who waits for it waits for what it waited for.
  void Drop(const Node& node) {
    std::vector<Node*> waits;
    const auto add = [&](Node* wait) { waits.push_back(wait); };
    for (const Output& input : node.inputs()) ForWaits(input.node, add);
    for (const Node* control : node.control_inputs()) ForWaits(control, add);
    std::ranges::sort(waits, {}, &Node::id);
    waits.erase(std::ranges::unique(waits).begin(), waits.end());
    // One node for many, so that the edges do not multiply.
    constexpr size_t kMostWaits = 8;
    if (waits.size() > kMostWaits) {
      auto all = out_->AddNode(
          {node.name(), "NoOp", {}, std::move(waits), {}, node.device()});
      SLUICE_CHECK(all.ok()) << all.status();
      (*all)->set_assigned_device(node.assigned_device());
      waits = {*all};
    }
    waits_[node.id()] = std::move(waits);
  }

  bool TryFold(const Node& node) {
    if (node.type() == "Const") {
      // One that waits for something (a branch to be taken) is not known.
      if (node.control_inputs().empty()) {
        values_[node.id()] = {node.attr<Tensor>("value")};
      }
      return false;
    }
    if (!IsPure(node) || node.num_inputs() == 0 ||
        !node.control_inputs().empty()) {
      return false;
    }
    std::vector<Tensor> inputs;
    for (const Output& input : node.inputs()) {
      const std::vector<Tensor>& known = values_[input.node->id()];
      if (known.empty()) return false;
      inputs.push_back(known[input.index]);
    }
    auto kernel = MakeKernel(node, ScratchDevice());
    if (!kernel.ok() || (*kernel)->AsAsync() != nullptr) return false;
    auto outputs = RunKernel(**kernel, node, ScratchDevice(), inputs);
    if (!outputs.ok()) return false;  // The step reports it.
    for (const Tensor& output : *outputs) {
      if (!output.initialized() ||
          static_cast<int64_t>(output.bytes()) > options_.max_folded_bytes) {
        return false;
      }
    }
    values_[node.id()] = *std::move(outputs);
    return true;
  }

  // The copy of `input`, made a Const now if it was folded.
  Output Mapped(Output input) {
    const int id = input.node->id();
    if (copies_[id]) return {copies_[id], input.index};
    const Node& node = *input.node;
    auto [it, added] = constants_.try_emplace({id, input.index}, nullptr);
    if (added) {
      const Tensor& value = values_[id][input.index];
      const std::string name = input.index == 0
                                   ? node.name()
                                   : StrCat(node.name(), "/", input.index);
      auto constant =
          out_->AddNode({name,
                         "Const",
                         {},
                         {},
                         {{"value", value}, {"dtype", value.dtype()}},
                         node.device()});
      if (!constant.ok()) {
        constant = out_->AddNode({StrCat(name, "/folded_", id),
                                  "Const",
                                  {},
                                  {},
                                  {{"value", value}, {"dtype", value.dtype()}},
                                  node.device()});
      }
      it->second = *constant;
      it->second->set_assigned_device(node.assigned_device());
    }
    return it->second->output(0);
  }

  bool TryMerge(const Node& node) {
    if (!IsPure(node) || reads_variable_[node.id()]) return false;
    std::string key = StrCat(node.type(), "|", node.assigned_device());
    if (node.type() == "Const") {
      const Tensor value = node.attr<Tensor>("value");
      // Comparing large constants costs more than it can save.
      if (value.bytes() > 64 || value.dtype() == DType::kString) return false;
      StrAppend(&key, "|", DTypeName(value.dtype()),
                value.shape().DebugString(), "|");
      key.append(static_cast<const char*>(value.raw()), value.bytes());
    } else {
      for (const auto& [name, value] : node.attrs()) {
        if (name.starts_with('_')) continue;
        if (!AppendAttr(name, value, &key)) return false;
      }
    }
    for (const Output& input : node.inputs()) {
      const Output mapped = Mapped(input);
      StrAppend(&key, "|", mapped.node->id(), ":", mapped.index);
    }
    std::vector<int> controls;
    for (const Node* control : node.control_inputs()) {
      ForWaits(control, [&](Node* wait) { controls.push_back(wait->id()); });
    }
    std::ranges::sort(controls);
    for (int control : controls) StrAppend(&key, "|^", control);
    auto [it, added] = seen_.try_emplace(std::move(key), nullptr);
    if (added) {
      it->second = Copy(node);
    } else {
      copies_[node.id()] = it->second;
    }
    return true;
  }

  Node* Copy(const Node& node) {
    Node* copy = out_->CopyNode(node, node.name());
    for (int i = 0; i < node.num_inputs(); ++i) {
      out_->Connect(Mapped(node.input(i)), copy, i);
    }
    for (const Node* control : node.control_inputs()) {
      ForWaits(control, [&](Node* wait) { out_->AddControlEdge(wait, copy); });
    }
    copies_[node.id()] = copy;
    return copy;
  }

  const Graph& graph_;
  const SimplifyOptions& options_;
  std::unique_ptr<Graph> out_;
  std::vector<Node*> copies_;
  std::vector<bool> reads_variable_;
  std::vector<bool> unused_;
  // What to wait for in place of a node that was left out.
  absl::flat_hash_map<int, std::vector<Node*>> waits_;
  std::vector<std::vector<Tensor>> values_;  // Known outputs, by node.
  absl::flat_hash_map<std::pair<int, int>, Node*> constants_;
  absl::flat_hash_map<std::string, Node*> seen_;
};

}  // namespace

std::unique_ptr<Graph> Simplify(std::unique_ptr<Graph> graph,
                                const SimplifyOptions& options) {
  std::unique_ptr<Graph> simpler = Simplifier(*graph, options).Run();
  return simpler == nullptr ? std::move(graph) : std::move(simpler);
}

}  // namespace sluice
