// Identifiers that must differ between processes and machines.
#pragma once

#include <cstdint>

namespace sluice {

// A random number from the system's source, never 0. Thread-safe.
uint64_t RandomId();

}  // namespace sluice
