// Channels that take a lane where there is one. Private to rpc/, server/ and
// session/.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "sluice/rpc/client_call.h"

namespace sluice {

// As RpcChannel::CreateWithTls. Once the server has answered, it is asked for
// its lane; if that is on this machine, calls go by it from then on, by gRPC
// before and when it breaks. Under TLS all go by gRPC.
absl::StatusOr<std::shared_ptr<RpcChannel>> CreateLaneChannel(
    const std::string& address, TlsIdentityPtr tls);

// False if SLUICE_LANE=grpc says that all calls go by gRPC.
bool LanesAllowed();

// What the lanes of this process hold and could not send yet.
int64_t LaneBytesQueued();

// A name for a lane that nobody else has.
std::string NewLaneName();

}  // namespace sluice
