// AddControlLoops: lets the loops of a placed graph span devices and tasks.
//
// A receive inside of a loop has to run once an iteration on a device that may
// hold nothing else of the loop. So every device that takes a value from
// another one inside of a loop gets a loop of its own: Enter, Merge, Switch and
// NextIteration, which go round as often as the condition of the real loop says
// (docs/protocol). Its Merge starts the receives of an iteration.
#pragma once

#include "absl/status/status.h"
#include "sluice/graph/graph.h"

namespace sluice {

// Done once, by the master, before the first cut. Also moves the nodes of
// loops and conditionals to where their values are.
absl::Status AddControlLoops(Graph& graph);

// Whether `node` is the Merge of such a loop, also one made by another master.
bool IsControlLoopMerge(const Node& node);

}  // namespace sluice
