// What to say when a checkpoint lacks tensors that a program wants.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "sluice/io/checkpoint_reader.h"

namespace sluice {

// NOT_FOUND with all of `wanted` that `reader` has not, what there is instead,
// and which of that may be meant; OK if nothing is missing. The first line is
// TensorFlow's, "Key <name> not found in checkpoint".
absl::Status MissingKeys(CheckpointReader& reader, const std::string& prefix,
                         std::span<const std::string> wanted);

// Those of `present` that `name` may be a slip or another scope of, the
// likeliest first; at most three.
std::vector<std::string> NearMatches(const std::string& name,
                                     const std::vector<std::string>& present);

}  // namespace sluice
