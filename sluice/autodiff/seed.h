// The gradients that the walk from ys starts with.
#pragma once

#include "absl/status/statusor.h"
#include "sluice/graph/scope.h"

namespace sluice {

// The gradient of y number `index`: `given` under the name `grad_ys_<index>`,
// or ones if there is none. An error if y cannot have such a gradient.
absl::StatusOr<Grad> SeedGradient(const Scope& scope, Output y,
                                  const Grad& given, int index);

}  // namespace sluice
