// Simplify: computes what does not depend on the step, keeps one of nodes that
// do the same, and leaves out what computes values that nobody takes.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "sluice/graph/graph.h"

namespace sluice {

struct SimplifyOptions {
  bool fold_constants = true;
  bool merge_common = true;
  bool drop_unused = true;  // unused_values.h
  // Names of nodes that run in any case.
  std::span<const std::string> targets = {};
  int64_t max_folded_bytes = 10 << 20;
};

// A graph that does the same as `graph`, which must be placed. Sends, receives,
// stateful nodes and reads of variables that are used stay as they are, and so
// do graphs with loops.
std::unique_ptr<Graph> Simplify(std::unique_ptr<Graph> graph,
                                const SimplifyOptions& options);

}  // namespace sluice
