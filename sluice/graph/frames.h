// LoopFrames: which loop each node of a graph runs in. Passes and the executor
// read loops from the graph itself, as graphs come from other front ends too.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/graph/graph.h"

namespace sluice {

// The ops that loops are made of, and their forms for refs.
bool IsSwitch(const Node& node);
bool IsMerge(const Node& node);
bool IsEnter(const Node& node);
bool IsExit(const Node& node);
bool IsNextIteration(const Node& node);

struct LoopFrames {
  struct Frame {
    int parent = -1;
    std::string name;
    int parallel_iterations = 10;
    int num_enters = 0;
  };
  std::vector<Frame> frames;  // 0 is the root, outside of all loops.
  // Topological, lowest id first, back edges of loops left out.
  std::vector<const Node*> order;
  // By node id: where its inputs are, so for Enter the frame outside.
  std::vector<int> frame;
  // By node id: the frame that an Enter enters, -1 for other nodes.
  std::vector<int> entered;

  // Where the outputs of a node are.
  int OfOutputs(const Node& node) const;
};

// An error if an input is missing, the graph has a cycle that is no loop, or a
// node takes values from different loops.
absl::StatusOr<LoopFrames> FindFrames(const Graph& graph);

}  // namespace sluice
