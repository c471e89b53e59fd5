// A peer at a lane that says what it likes.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/testing/eventually.h"
#include "sluice/rpc/lane_connection.h"
#include "sluice/rpc/lane_socket.h"

namespace sluice {

inline void SendWithDescriptors(int fd, const LaneHeader& header, int count) {
  iovec bytes = {const_cast<LaneHeader*>(&header), sizeof(header)};
  const std::vector<int> fds(static_cast<size_t>(count), STDERR_FILENO);
  const size_t size = fds.size() * sizeof(int);
  std::vector<char> control(CMSG_SPACE(size));
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(size);
  std::memcpy(CMSG_DATA(part), fds.data(), size);
  sendmsg(fd, &message, MSG_NOSIGNAL);
}

// How many descriptors this process has open.
inline ptrdiff_t OpenDescriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

class RawPeer {
 public:
  explicit RawPeer(const std::string& lane) : fd_(*ConnectLane(lane)) {}
  ~RawPeer() { close(fd_); }
  void Say(std::string_view bytes) const {
    // May be cut off in the middle.
    send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void Say(const LaneHeader& header) const {
    Say({reinterpret_cast<const char*>(&header), sizeof(header)});
  }
  void SayWithDescriptors(const LaneHeader& header, int count) const {
    SendWithDescriptors(fd_, header, count);
  }
  ssize_t Hear(msghdr* message) const { return recvmsg(fd_, message, 0); }
  // Waits for the end of the connection; false if it goes on.
  bool IsHungUp() const {
    return Eventually([&] {
      char bytes[4096];
      const ssize_t got = recv(fd_, bytes, sizeof(bytes), MSG_DONTWAIT);
      return got == 0 || (got < 0 && errno != EAGAIN);
    });
  }

 private:
  const int fd_;
};

inline LaneHeader Hello() {
  LaneHeader hello;
  hello.code = kLaneVersion;
  return hello;
}

}  // namespace sluice
