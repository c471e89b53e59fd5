// CostGraph: what the nodes of a step cost, from the measurements of one run.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "sluice/master/options.h"

namespace sluice {

// The nodes of all `parts` of a step. Nodes that `stats` says nothing of have
// no outputs and cost nothing.
std::vector<CostNode> CostGraph(
    std::span<const std::shared_ptr<const Graph>> parts,
    std::span<const StepStatsCollector::DeviceStats> stats);

}  // namespace sluice
