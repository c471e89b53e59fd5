#include "sluice/rpc/send_buffer.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "sluice/base/mutex.h"

namespace sluice {
namespace {

// The kernel doubles it for its own needs, and cuts it to net.core.wmem_max.
constexpr int kBytes = 384 << 10;
// Connections that are remembered; more than a cluster on one machine has.
constexpr size_t kRemembered = 1024;
constexpr int kElsewhere = -1;

using NameOfEnd = int (*)(int, sockaddr*, socklen_t*);

// One end of a TCP connection; IPv4 in its form of IPv6.
std::optional<sockaddr_in6> EndOf(int fd, NameOfEnd name_of_end) {
  sockaddr_storage any = {};
  socklen_t size = sizeof(any);
  if (name_of_end(fd, reinterpret_cast<sockaddr*>(&any), &size) != 0) {
    return std::nullopt;
  }
  sockaddr_in6 end = {};
  if (any.ss_family == AF_INET6) {
    std::memcpy(&end, &any, sizeof(end));
    return end;
  }
  if (any.ss_family != AF_INET) return std::nullopt;
  sockaddr_in v4;
  std::memcpy(&v4, &any, sizeof(v4));
  end.sin6_port = v4.sin_port;
  end.sin6_addr.s6_addr[10] = end.sin6_addr.s6_addr[11] = 0xff;
  std::memcpy(&end.sin6_addr.s6_addr[12], &v4.sin_addr, sizeof(v4.sin_addr));
  return end;
}

bool IsLoopbackV4(const in6_addr& address) {
  return IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127;
}

// Both ends of the connection are on this machine, that of the peer at `port`.
bool IsLocal(int fd, int port) {
  const std::optional<sockaddr_in6> peer = EndOf(fd, getpeername);
  if (!peer || ntohs(peer->sin6_port) != port) return false;
  const std::optional<sockaddr_in6> own = EndOf(fd, getsockname);
  if (!own) return false;
  return IN6_ARE_ADDR_EQUAL(&peer->sin6_addr, &own->sin6_addr) ||
         (IsLoopbackV4(peer->sin6_addr) && IsLoopbackV4(own->sin6_addr));
}

bool IsBounded(int fd) {
  int bytes = 0;
  socklen_t size = sizeof(bytes);
  return getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &size) == 0 &&
         bytes <= 2 * kBytes;
}

// Bounds every local connection to a peer at `port`; returns one of them.
// Should one close at this moment, another of the program's descriptors may
// have taken its number: then that sends by smaller pieces, no more.
int Bound(int port) {
  int found = kElsewhere;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end;
       !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    int fd = 0;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    if (!IsLocal(fd, port)) continue;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kBytes, sizeof(kBytes));
    found = fd;
  }
  return found;
}

int PortOf(const std::string& peer) {
  const size_t colon = peer.rfind(':');
  int port = 0;
  if (colon != std::string::npos) {
    std::from_chars(peer.data() + colon + 1, peer.data() + peer.size(), port);
  }
  return port;
}

}  // namespace

void KeepSendsInCache(const std::string& peer) {
  static Mutex mu;
  static auto* const bounded = new absl::flat_hash_map<std::string, int>;
  const int port = PortOf(peer);
  if (port == 0) return;
  MutexLock lock(mu);
  const auto [known, is_new] = bounded->try_emplace(peer, kElsewhere);
  if (!is_new && known->second == kElsewhere) return;
  // A peer that came back has another connection, perhaps by the same number.
  if (!is_new && IsLocal(known->second, port) && IsBounded(known->second)) {
    return;
  }
  known->second = Bound(port);
  if (bounded->size() > kRemembered) bounded->clear();
}

}  // namespace sluice
