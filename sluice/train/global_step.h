// The global step: a counter on which all workers agree.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "sluice/client/variable.h"
#include "sluice/session/session.h"

namespace sluice {

// The one in the collection, or the variable called "global_step"; none if the
// graph has neither, or several.
Variable GetGlobalStep(Graph& graph);
// A new int64 variable "global_step". Fails the scope if there is one already.
Variable CreateGlobalStep(const Scope& scope);
Variable GetOrCreateGlobalStep(const Scope& scope);

// A copy of the step that hooks fetch along with a training step, made once per
// graph. It may be read before or after that step counts. None without a step.
Output GlobalStepRead(Graph& graph);

// Its value now.
absl::StatusOr<int64_t> GlobalStep(Session& session, const Variable& step);
// An integer scalar of any type.
absl::StatusOr<int64_t> IntegerOf(const Tensor& tensor);

}  // namespace sluice
