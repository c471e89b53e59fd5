// RunBlocking: for the few tasks that wait for others (planning a step while
// peers register their parts, opening a session). Threads are made on demand,
// kept for a while and reused, so that waiting tasks can never starve each
// other. Not for anything that happens once per step.
#pragma once

#include "absl/functional/any_invocable.h"

namespace sluice {

void RunBlocking(absl::AnyInvocable<void()> task);

struct BlockingPoolStats {
  int threads = 0;  // Busy and idle ones.
  int queued = 0;   // Tasks that no thread has taken yet.
};
BlockingPoolStats GetBlockingPoolStats();

}  // namespace sluice
