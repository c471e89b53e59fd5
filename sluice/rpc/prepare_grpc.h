// Private to rpc/.
#pragma once

namespace sluice {

// Called before this process first uses gRPC. Debian builds abseil with its
// search for deadlocks switched on, which leads every lock that gRPC takes
// through one graph of the whole process. Its complaints come in our log.
void PrepareGrpc();

}  // namespace sluice
