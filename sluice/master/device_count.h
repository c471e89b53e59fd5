// How many devices a task may be given by its configuration.
#pragma once

#include "absl/status/status.h"
#include "sluice/base/status.h"

namespace sluice {

// More than any machine has; each has its own tables.
inline constexpr int kMostCpus = 1 << 16;

inline absl::Status CheckDeviceCount(int num_cpus) {
  if (num_cpus < 1) {
    return NotFound("No CPU devices are available in this process");
  }
  if (num_cpus > kMostCpus) {
    return InvalidArgument("device_count asks for ", num_cpus,
                           " CPU devices; a task has at most ", kMostCpus);
  }
  return absl::OkStatus();
}

}  // namespace sluice
