// The gradients of the nodes that cond is made of. They stand here and not
// beside their ops because they depend on the context an op was built in.
#pragma once

#include <span>
#include <string_view>

#include "sluice/graph/scope.h"

namespace sluice {

// Whether ControlFlowGradient handles ops of this type.
bool IsControlFlowGradient(std::string_view op_type);
// Whether ops of this type occur in while loops only.
bool IsLoopOp(std::string_view op_type);

// Of a Merge: a Switch, so that only the branch that ran gets a gradient. Of a
// Switch: a Merge of what comes from the branches.
Grads ControlFlowGradient(const Scope& scope, const Node& op,
                          std::span<const Grad> dy);

}  // namespace sluice
