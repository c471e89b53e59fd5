// The ops of a Saver.
#pragma once

#include <map>
#include <string>

#include "sluice/client/variable.h"
#include "sluice/proto/saver.pb.h"

namespace sluice {

// Adds them and says how they are called. `variables` by name in the
// checkpoint; at least one. Errors go to the scope.
pb::SaverDef BuildSaverOps(const Scope& scope,
                           const std::map<std::string, Variable>& variables,
                           bool sharded, bool reshape);

}  // namespace sluice
