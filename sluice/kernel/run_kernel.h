// RunKernel: one op on given inputs, without a graph to run. Constant folding
// and op tests use it.
#pragma once

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/kernel/kernel.h"

namespace sluice {

// Runs `kernel` for `node` with value inputs only. Async kernels are waited
// for.
absl::StatusOr<std::vector<Tensor>> RunKernel(Kernel& kernel, const Node& node,
                                              Device& device,
                                              std::span<const Tensor> inputs);

// A CPU device for work outside of any task.
Device& ScratchDevice();

}  // namespace sluice
