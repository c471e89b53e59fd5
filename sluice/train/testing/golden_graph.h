// Graphs that TensorFlow built, as lines of text, to hold ours against.
#pragma once

#include <string>
#include <vector>

#include "sluice/graph/graph.h"

namespace sluice {

// One line per node, sorted: name, op, inputs, device, attributes. Constants by
// value; control inputs without order; the random part of a temporary file name
// left out.
std::vector<std::string> SortedNodeLines(Graph& graph);
// Those of tests/golden/graphs/<name>.pbtxt.
std::vector<std::string> GoldenNodeLines(const std::string& name);

}  // namespace sluice
