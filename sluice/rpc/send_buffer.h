// How much the kernel holds of what goes to a peer on this machine. Private to
// rpc/.
#pragma once

#include <cstddef>
#include <string>

namespace sluice {

// A message of this size or more is worth KeepSendsInCache.
inline constexpr size_t kLargeMessage = 1 << 20;

// Of megabytes that go to a process of this machine, the kernel takes up to
// 4 MB before the receiver runs: by then they have left the cache. This bounds
// what it takes on our connection to `peer` (as gRPC names it), which makes
// large transfers 1.3 to 1.8 times as fast; peers on other machines are left to
// the kernel, whom the bound would slow down. gRPC has no option for it.
void KeepSendsInCache(const std::string& peer);

}  // namespace sluice
