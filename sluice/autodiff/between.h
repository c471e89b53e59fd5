// BetweenOps: the ops through which some y depends on some x, and how many of
// their uses still have to be visited on the way back.
#pragma once

#include <span>
#include <vector>

#include "sluice/graph/graph.h"

namespace sluice {

// Whether tensors of this type can have a gradient.
bool IsTrainable(DType type);
// Whether gradients flow through them. bfloat16 passes them on, but TensorFlow
// makes no zeros of it.
bool PropagatesGradient(DType type);

// Made for the graph as it is; nodes added later are not between. Owned by one
// AddGradients. Thread-compatible.
class BetweenOps {
 public:
  BetweenOps(const Graph& graph, std::span<const Output> ys,
             std::span<const Output> xs);
  // Adds an op that gradients pass through for another reason. Before
  // CountUses.
  void Add(Node* node);
  // Counts what pending() tells. Called once, when all ops are there.
  void CountUses();

  // In the order a breadth-first search from ys finds them.
  std::span<Node* const> nodes() const { return nodes_; }
  bool Contains(const Node* node) const {
    return node->id() < static_cast<int>(index_.size()) &&
           index_[node->id()] >= 0;
  }
  // Its place in nodes(). Only for nodes that are contained.
  int index(const Node* node) const { return index_[node->id()]; }
  // How many inputs of other between ops it feeds that are not finished.
  int pending(const Node* node) const { return pending_[index(node)]; }
  // Finishes one of them. Returns how many are left.
  int FinishEdge(const Node* node) { return --pending_[index(node)]; }

  // By index, whether an op's gradient is not needed: it makes an x and no x
  // lies before it, or it makes one of `stops`. Asked before the first
  // FinishEdge.
  std::vector<bool> StopSet(std::span<const Output> xs,
                            std::span<const Output> stops) const;

 private:
  std::vector<Node*> nodes_;
  std::vector<int> index_;  // By node id; -1 if not between.
  std::vector<int> pending_;
};

}  // namespace sluice
