// Errors of system calls as statuses, with TensorFlow's codes and texts:
// "<context>; No such file or directory".
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace sluice {

// `error` is an errno value other than 0.
absl::Status ErrnoStatus(int error, std::string_view context);

}  // namespace sluice
