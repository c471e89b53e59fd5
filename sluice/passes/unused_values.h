// FindUnused: the nodes of a step that compute what nobody takes. They are
// there because something waits for them: the gradients of an op are tied
// together, so that those of its constants are computed with those of its
// variables.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sluice/graph/graph.h"

namespace sluice {

// For each id whether the step may do without the node. `order` has all nodes
// of the step, inputs first. A node that is left out does nothing but compute,
// and only nodes that are left out take its values; who waits for it has to
// wait for what it waits for. An explicit wait for the read of a variable, or
// for its Identity elsewhere, stays, as do checks (CheckNumerics), everything
// with effects, and the nodes named in `targets`.
std::vector<bool> FindUnused(const std::vector<const Node*>& order,
                             std::span<const std::string> targets);

}  // namespace sluice
