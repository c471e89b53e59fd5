// Lease: says to a server that the opener of a session lives, by a call that
// stays open (session_uses.h is the other side).
#pragma once

#include <memory>
#include <string>

namespace sluice {

class RpcChannel;

// Thread-safe. Ended by its destruction, or by the end of the session. A server
// that knows no leases, as TensorFlow's, is asked once.
class Lease {
 public:
  Lease(std::shared_ptr<RpcChannel> channel, std::string session_handle);
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace sluice
