// Graphs as short lines of text, for tests that compare what was built.
#pragma once

#include <string>
#include <vector>

#include "sluice/graph/graph.h"

namespace sluice {

// "name = Op(input, other:1, ^control) @/job:ps loc:@a", one line per node from
// `first` on.
std::vector<std::string> NodeLines(const Graph& graph, int first);

}  // namespace sluice
