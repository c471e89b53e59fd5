// ResourceEpoch: lets kernels keep what they found in a ResourceManager.
#pragma once

#include <cstdint>

namespace sluice {

// Changes whenever a manager of this process drops something by name or by
// container; what kernels kept from before must be looked up again. Step
// containers do not count: nobody keeps what lies there. Thread-safe.
uint64_t ResourceEpoch();

}  // namespace sluice
