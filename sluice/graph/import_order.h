// In which order to add the nodes of a GraphDef.
#pragma once

#include <span>
#include <vector>

namespace sluice {

// Edges between nodes that are known by their index in the file.
struct ImportEdges {
  // The sources of node i's edges are sources[begin[i]] …
  // sources[begin[i+1]-1]; -1 is a source outside. Back edges of loops are left
  // out.
  std::vector<int> begin = {0};
  std::vector<int> sources;

  int size() const { return static_cast<int>(begin.size()) - 1; }
  std::span<const int> SourcesOf(int node) const {
    return {sources.data() + begin[node], sources.data() + begin[node + 1]};
  }
};

// Sources before their users and otherwise the order of the file. Nodes on or
// behind a cycle are missing from the result; `cycle` gets one of the cycles.
std::vector<int> ImportOrder(const ImportEdges& edges, std::vector<int>* cycle);

}  // namespace sluice
