// NarrowTransfers: float values cross from task to task as bfloat16, for half
// the bytes (GraphOptions.enable_bfloat16_sendrecv).
#pragma once

#include "absl/status/status.h"
#include "sluice/graph/graph.h"

namespace sluice {

// Puts a truncating Cast before and a Cast back behind every float edge between
// tasks. The graph must be placed and have its control loops.
absl::Status NarrowTransfers(Graph& graph);

}  // namespace sluice
