// While: builds a loop the way TensorFlow's `tf.while_loop` does.
#pragma once

#include <functional>
#include <vector>

#include "sluice/graph/scope.h"
#include "sluice/graph/while_context.h"

namespace sluice {

// Builds something of the loop variables, under the scope it is given; the
// graph's current context is that scope's while it runs.
using LoopFunction = std::function<absl::StatusOr<std::vector<Output>>(
    const Scope& scope, const std::vector<Output>& variables)>;

struct WhileLoop {
  std::vector<Output> variables;  // What they start with.
  // What their shapes are in all iterations; empty: those they start with.
  std::vector<PartialShape> shape_invariants;
  WhileOptions options;
  LoopFunction condition;  // Gives one scalar bool.
  LoopFunction body;       // Gives the next value of each variable.
};

struct WhileResult {
  std::shared_ptr<WhileContext> context;
  std::vector<Output> values;  // The variables after the last iteration.
};

// Runs `body` as long as `condition` holds. Names stand below `scope`.
absl::StatusOr<WhileResult> While(const Scope& scope, const WhileLoop& loop);

}  // namespace sluice
