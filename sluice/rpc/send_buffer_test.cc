#include "sluice/rpc/send_buffer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sluice/base/strings.h"

namespace sluice {
namespace {

int SendBuffer(int fd) {
  int bytes = 0;
  socklen_t size = sizeof(bytes);
  EXPECT_EQ(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &size), 0);
  return bytes;
}

// A connection from `port`, or any port, to a listener of ours.
class Connection {
 public:
  explicit Connection(int port = 0) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(Bind(listener_, 0), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    near_ = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(Bind(near_, port), 0);
    const sockaddr_in to = Name(listener_);
    EXPECT_EQ(
        connect(near_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    accepted_ = accept(listener_, nullptr, nullptr);
    EXPECT_GE(accepted_, 0);
  }
  // At once, so that its port can be used again.
  ~Connection() {
    const linger at_once = {1, 0};
    setsockopt(near_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    for (const int fd : {near_, accepted_, listener_}) close(fd);
  }
  int port() const { return ntohs(Name(near_).sin_port); }
  std::string peer() const { return StrCat("ipv4:127.0.0.1:", port()); }
  int near() const { return near_; }
  int accepted() const { return accepted_; }

 private:
  static int Bind(int fd, int port) {
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<uint16_t>(port));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof(at));
  }
  static sockaddr_in Name(int fd) {
    sockaddr_in name = {};
    socklen_t size = sizeof(name);
    EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size), 0);
    return name;
  }

  int listener_, near_, accepted_;
};

TEST(SendBuffer, IsBoundedTowardsAPeerOfThisMachine) {
  const Connection connection;
  const int before = SendBuffer(connection.accepted());
  const int other = SendBuffer(connection.near());
  KeepSendsInCache(connection.peer());
  EXPECT_LT(SendBuffer(connection.accepted()), before);
  EXPECT_EQ(SendBuffer(connection.near()), other) << "sends to another port";
}

TEST(SendBuffer, IsBoundedForAPeerThatCameBack) {
  int port = 0;
  int bound = 0;
  {
    const Connection first;
    port = first.port();
    KeepSendsInCache(first.peer());
    bound = SendBuffer(first.accepted());
  }
  const Connection second(port);
  EXPECT_GT(SendBuffer(second.accepted()), bound);
  KeepSendsInCache(second.peer());
  EXPECT_EQ(SendBuffer(second.accepted()), bound);
}

TEST(SendBuffer, OfPeersThatHaveNoPortIsLeftAlone) {
  const Connection connection;
  const int before = SendBuffer(connection.accepted());
  for (const char* peer : {"", "unix:/tmp/socket", "ipv4:127.0.0.1:", ":"}) {
    KeepSendsInCache(peer);
  }
  EXPECT_EQ(SendBuffer(connection.accepted()), before);
}

}  // namespace
}  // namespace sluice
