// The ops of a Saver.
#pragma once

#include <map>
#include <string>

#include "sluice/client/variable.h"
#include "sluice/proto/saver.pb.h"

namespace sluice {

struct SaverOpsOptions {
  bool sharded = false;
  bool reshape = false;
  // SaverOptions has what this means.
  std::string gather_to = {};
  pb::SaverDef::CheckpointFormatVersion version = pb::SaverDef::V2;
};

// Adds them and says how they are called. `variables` by name in the
// checkpoint; at least one. Errors go to the scope.
pb::SaverDef BuildSaverOps(const Scope& scope,
                           const std::map<std::string, Variable>& variables,
                           const SaverOpsOptions& options);

}  // namespace sluice
