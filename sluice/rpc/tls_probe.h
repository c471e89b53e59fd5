// Finds out why a connection failed, where gRPC says no more than that it was
// closed.
#pragma once

#include <string>

#include "sluice/rpc/tls.h"

namespace sluice {

// Connects to `address` once more and looks at what the peer does: it wants TLS
// and `tls` is null, or the reverse; its certificate is expired, of another CA,
// for another host; it does not take ours. In words a user can act on; "" if
// nothing of the kind is found. Blocks for a few seconds at most.
std::string TlsProblem(const std::string& address, const TlsIdentityPtr& tls);

// Whether the certificate is for `host`, a name or an address: peers refuse one
// that is not.
bool IsForHost(const TlsIdentity& tls, const std::string& host);

}  // namespace sluice
