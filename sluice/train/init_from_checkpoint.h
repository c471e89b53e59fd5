// Variables that begin with values of a checkpoint.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "sluice/graph/scope.h"

namespace sluice {

// Replaces the initializers of global variables by reads of a checkpoint: a
// prefix, or a directory, which stands for its newest one. Keys of `assignment`
// are tensors of the checkpoint and values names of variables; or both are
// scopes, which end in "/" ("/" alone is the root). To be called before an
// initializer for all variables is built. Nothing changes after an error.
absl::Status InitFromCheckpoint(
    const Scope& scope, const std::string& dir_or_prefix,
    const std::map<std::string, std::string>& assignment);

}  // namespace sluice
