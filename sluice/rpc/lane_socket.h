// The sockets of lanes: of this machine's network namespace, without a file,
// for processes of one user. Private to rpc/.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"

namespace sluice {

// Descriptors that do not block, and that programs started later do not get.
absl::StatusOr<int> ListenForLanes(const std::string& name);
// NOT_FOUND if nobody listens there: the name is that of another machine, or of
// a process that is gone. PERMISSION_DENIED if the peer is another user's.
// Other errors may pass.
absl::StatusOr<int> ConnectLane(const std::string& name);

// The process at the other end; PERMISSION_DENIED if it is another user's.
absl::StatusOr<pid_t> PeerOfLane(int fd);

}  // namespace sluice
