// The ops of a Saver.
#pragma once

#include <map>
#include <string>

#include "sluice/client/variable.h"
#include "sluice/proto/saver.pb.h"

namespace sluice {

// By the name in the checkpoint, which the parts of a variable share.
using SavedVariables = std::multimap<std::string, Variable>;

struct SaverOpsOptions {
  bool sharded = false;
  bool reshape = false;
  // SaverOptions has what this means.
  std::string gather_to = {};
  pb::SaverDef::CheckpointFormatVersion version = pb::SaverDef::V2;
};

// Adds them and says how they are called; for at least one variable. Errors go
// to the scope.
pb::SaverDef BuildSaverOps(const Scope& scope, const SavedVariables& variables,
                           const SaverOpsOptions& options);

}  // namespace sluice
