// What several commands need.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/server/cluster_spec.h"

namespace sluice::tools {

// Says what went wrong; returns the exit status for it.
int Complain(const absl::Status& status);

// A cluster as text, or as a JSON file that the text names.
absl::StatusOr<ClusterSpec> ReadCluster(const std::string& given);

}  // namespace sluice::tools
