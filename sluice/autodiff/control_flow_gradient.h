// The gradients of the nodes that cond and while are made of. They stand here
// and not beside their ops because they depend on the context an op was built
// in.
#pragma once

#include <span>
#include <string_view>

#include "sluice/autodiff/loop_gradient.h"
#include "sluice/graph/scope.h"

namespace sluice {

// Whether ControlFlowGradient handles ops of this type.
bool IsControlFlowGradient(std::string_view op_type);

// Of a Merge: a Switch, so that only the branch that ran gets a gradient. Of a
// Switch: a Merge of what comes from the branches. Of an Exit an Enter, and the
// other way round. `loop` is the backward loop that the gradient is built in;
// nullptr if it is in none.
Grads ControlFlowGradient(const Scope& scope, const Node& op,
                          std::span<const Grad> dy, LoopGradient* loop);

}  // namespace sluice
