#include "tools/sluice/cluster.h"

#include <cstdio>
#include <fstream>
#include <sstream>

#include "sluice/base/status.h"

namespace sluice::tools {

int Complain(const absl::Status& status) {
  std::fprintf(stderr, "sluice: %s\n", std::string(status.message()).c_str());
  const bool given =
      absl::IsInvalidArgument(status) || absl::IsNotFound(status);
  return given ? kWrongUsage : 1;
}

absl::StatusOr<ClusterSpec> ReadCluster(const std::string& given) {
  if (!given.ends_with(".json")) return ClusterSpec::Parse(given);
  std::ifstream file(given);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return NotFound("cannot read ", given);
  return ClusterSpec::Parse(text.str());
}

}  // namespace sluice::tools
