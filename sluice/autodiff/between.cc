#include "sluice/autodiff/between.h"

#include <algorithm>

namespace sluice {

bool IsTrainable(DType type) {
  switch (BaseType(type)) {
    case DType::kHalf:
    case DType::kFloat:
    case DType::kDouble:
    case DType::kComplex64:
    case DType::kComplex128:
    case DType::kResource:
    case DType::kVariant:
      return true;
    default:
      return false;
  }
}

bool PropagatesGradient(DType type) {
  return IsTrainable(type) || BaseType(type) == DType::kBfloat16;
}

namespace {

// By node id, whether the node depends on some x by a differentiable path.
std::vector<bool> ReachedFrom(const Graph& graph, std::span<const Output> xs) {
  std::vector<bool> reached(graph.num_nodes());
  std::vector<const Node*> stack;
  auto reach = [&](const Node* node) {
    if (reached[node->id()]) return;
    reached[node->id()] = true;
    stack.push_back(node);
  };
  for (const Output& x : xs) reach(x.node);
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    for (const OutEdge& edge : node->out_edges()) {
      if (edge.src_output >= 0 &&
          PropagatesGradient(node->output_type(edge.src_output))) {
        reach(edge.dst);
      }
    }
  }
  return reached;
}

}  // namespace

BetweenOps::BetweenOps(const Graph& graph, std::span<const Output> ys,
                       std::span<const Output> xs)
    : index_(graph.num_nodes(), -1) {
  const std::vector<bool> reached = ReachedFrom(graph, xs);
  const auto add = [&](Node* node) {
    if (reached[node->id()]) Add(node);
  };
  for (const Output& y : ys) add(y.node);
  for (size_t next = 0; next < nodes_.size(); ++next) {
    for (const Output& input : nodes_[next]->inputs()) {
      if (input) add(input.node);
    }
  }
}

void BetweenOps::Add(Node* node) {
  if (index_[node->id()] >= 0) return;
  index_[node->id()] = static_cast<int>(nodes_.size());
  nodes_.push_back(node);
}

void BetweenOps::CountUses() {
  pending_.assign(nodes_.size(), 0);
  for (const Node* node : nodes_) {
    for (const Output& input : node->inputs()) {
      if (input && Contains(input.node)) ++pending_[index(input.node)];
    }
  }
}

std::vector<bool> BetweenOps::StopSet(std::span<const Output> xs,
                                      std::span<const Output> stops) const {
  std::vector<bool> result(nodes_.size());
  for (const Output& x : xs) {
    if (!Contains(x.node)) continue;
    result[index(x.node)] =
        std::ranges::none_of(x.node->inputs(), [&](const Output& input) {
          return Contains(input.node) && pending(input.node) > 0;
        });
  }
  for (const Output& stop : stops) {
    if (Contains(stop.node)) result[index(stop.node)] = true;
  }
  return result;
}

}  // namespace sluice
