// Checks that a node was built for the types that a resource turns out to have.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "sluice/kernel/kernel.h"

namespace sluice {

// An error that shows both, in TensorFlow's words, unless the node has exactly
// these types of inputs and outputs.
absl::Status MatchSignature(const KernelContext& ctx,
                            const std::vector<DType>& inputs,
                            const std::vector<DType>& outputs);

}  // namespace sluice
