// MemoryLimit: how much memory this process may use.
#pragma once

#include <cstdint>
#include <string>

namespace sluice {

// The smallest of the machine's memory and the limits of the control groups
// that the process is in, of either version, in bytes. `root` stands before the
// paths of the system's files, for tests.
int64_t MemoryLimit(const std::string& root = "");

}  // namespace sluice
