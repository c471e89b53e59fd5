// InlineFunctions: puts the bodies of functions in the place of the nodes that
// call them.
//
// A body runs on the device of the call, and as a whole: none of it starts
// before all inputs of the call are there, and all of it is dead if one of them
// is. What has side effects runs even if no result needs it.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "sluice/base/limits.h"
#include "sluice/graph/graph.h"

namespace sluice {

// Whether a node of the graph calls a function.
bool HasFunctionCalls(const Graph& graph);

// The graph without calls; nodes of a body are called `<call>/<node>`. `graph`
// must be placed. Errors name the call: a function that is not there or does
// not fit it, that calls itself, or that has no gradient where one is asked
// for. RESOURCE_EXHAUSTED if it would have more than `most_nodes`, which is the
// limit graph_nodes; a sane number of them is the limit in any case.
absl::StatusOr<std::unique_ptr<Graph>> InlineFunctions(
    const Graph& graph, int64_t most_nodes = Limits().graph_nodes);

}  // namespace sluice
