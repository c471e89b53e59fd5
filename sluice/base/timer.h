// CallLater: for what has to happen after a while. Callbacks run on one thread,
// which is made at first use, and must not block.
#pragma once

#include <chrono>

#include "absl/functional/any_invocable.h"

namespace sluice {

void CallLater(std::chrono::nanoseconds delay,
               absl::AnyInvocable<void()> callback);

}  // namespace sluice
