// What of a checkpoint does not fit a graph. An error of the op that assigns a
// restored value knows neither the tensor's name nor the file.
#pragma once

#include <string>

#include "sluice/base/file.h"
#include "sluice/graph/graph.h"

namespace sluice {

// A line for each tensor of checkpoint `prefix` whose shape or type is not that
// of the variable which the op `restore` of a Saver gives it to. Empty if all
// fit, or if the checkpoint cannot be read from here. `resources_only`: leaves
// out variables whose assignment finds out by itself.
std::string RestoreMismatches(const Graph& graph, const std::string& restore,
                              FileSystem& files, const std::string& prefix,
                              bool resources_only = false);

}  // namespace sluice
