// gRPC's own words in our log. Private to rpc/.
#pragma once

namespace sluice {

// From now on what gRPC has to complain about comes as a warning of ours, the
// same words once in ten seconds: a peer whose handshake fails tries again and
// again, and so does a stranger.
void TakeOverGrpcLog();

}  // namespace sluice
