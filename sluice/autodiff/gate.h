// Waiting for several things at once: TensorFlow's `group` and `tuple`.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "sluice/graph/scope.h"

namespace sluice {

// A NoOp that runs after all of `nodes`. If these are on several devices, each
// device gets a NoOp of its own that the one returned waits for. nullptr if the
// scope has failed.
Node* Group(const Scope& scope, std::span<Node* const> nodes,
            std::string_view name = "group_deps");

// The same gradients, of which none can be used before all are computed. Of
// slices the values wait. None stays none; at least one must be there.
std::vector<Grad> Tuple(const Scope& scope, std::span<const Grad> grads);

}  // namespace sluice
