// RunBlocking: for the few tasks that wait for others (planning a step while
// peers register their parts, opening a session). Threads are made on demand,
// kept for a while and reused, so that waiting tasks can never starve each
// other. Not for anything that happens once per step.
#pragma once

#include "absl/functional/any_invocable.h"

namespace sluice {

void RunBlocking(absl::AnyInvocable<void()> task);

}  // namespace sluice
