// What several commands need.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/server/cluster_spec.h"

namespace sluice::tools {

// As of every command that does not understand its arguments.
inline constexpr int kWrongUsage = 2;

// Says what went wrong; returns the exit status for it: kWrongUsage if it is
// what the user gave that is wrong or is not there.
int Complain(const absl::Status& status);

// A cluster as text, or as a JSON file that the text names.
absl::StatusOr<ClusterSpec> ReadCluster(const std::string& given);

}  // namespace sluice::tools
