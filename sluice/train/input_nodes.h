// What the functions of input.h share.
#pragma once

#include <cstdint>
#include <optional>

#include "sluice/graph/scope.h"

namespace sluice {

// For the node that is called what the scope is.
Scope Itself(const Scope& scope);
// Attrs `seed` and `seed2` as Python sets them for a seed of an op.
void SetQueueSeeds(const std::optional<int64_t>& seed, AttrMap* attrs);
// How full a queue is that has `count` of `whole` elements.
Output QueueFraction(const Scope& scope, Output count, int64_t whole);

}  // namespace sluice
