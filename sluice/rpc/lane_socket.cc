#include "sluice/rpc/lane_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "sluice/base/errno_status.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

// The first byte is 0: a name of the abstract namespace, which goes with the
// socket.
struct Address {
  sockaddr_un bytes = {};
  socklen_t size = 0;
};

absl::StatusOr<Address> AddressOf(const std::string& name) {
  Address address;
  if (name.empty() || name.size() + 1 > sizeof(address.bytes.sun_path)) {
    return InvalidArgument("'", name, "' is no name of a lane");
  }
  address.bytes.sun_family = AF_UNIX;
  std::memcpy(address.bytes.sun_path + 1, name.data(), name.size());
  address.size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

using SocketCall = int (*)(int, const sockaddr*, socklen_t);

absl::StatusOr<int> Open(const std::string& name, SocketCall call) {
  SLUICE_ASSIGN_OR_RETURN(const Address address, AddressOf(name));
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return ErrnoStatus(errno, "a socket for a lane");
  if (call(fd, reinterpret_cast<const sockaddr*>(&address.bytes),
           address.size) == 0) {
    return fd;
  }
  const int error = errno;
  close(fd);
  if (error == ECONNREFUSED) return NotFound("nobody listens at lane ", name);
  return Unavailable("lane ", name, ": ", strerror(error));
}

}  // namespace

absl::StatusOr<int> ListenForLanes(const std::string& name) {
  SLUICE_ASSIGN_OR_RETURN(const int fd, Open(name, bind));
  constexpr int kBacklog = 1024;
  if (listen(fd, kBacklog) == 0) return fd;
  const int error = errno;
  close(fd);
  return ErrnoStatus(error, "listening for lanes");
}

absl::StatusOr<int> ConnectLane(const std::string& name) {
  SLUICE_ASSIGN_OR_RETURN(const int fd, Open(name, connect));
  const absl::StatusOr<pid_t> peer = PeerOfLane(fd);
  if (peer.ok()) return fd;
  close(fd);
  return peer.status();
}

absl::StatusOr<pid_t> PeerOfLane(int fd) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return ErrnoStatus(errno, "the peer of a lane");
  }
  if (peer.uid != geteuid()) {
    return PermissionDenied("A lane is for processes of one user; the peer is ",
                            peer.uid, "'s");
  }
  return peer.pid;
}

}  // namespace sluice
