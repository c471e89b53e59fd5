// ClusterTest: a cluster in the test's own process.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "sluice/base/strings.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/server/server.h"
#include "sluice/session/session.h"

namespace sluice {

// A socket bound to a free port; `listen` makes it a peer that is not ours.
struct Port {
  int fd;
  int number;
  Port() : fd(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
    number = ntohs(address.sin_port);
  }
  ~Port() { Release(); }
  void Release() {
    if (fd >= 0) close(fd);
    fd = -1;
  }
};

inline std::vector<int> FreePorts(int count) {
  std::vector<Port> ports(count);
  std::vector<int> numbers;
  for (const Port& port : ports) numbers.push_back(port.number);
  return numbers;
}

inline std::string Local(int port) { return StrCat("localhost:", port); }

// 1 ps and 2 workers in this process.
class ClusterTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<int> ports = FreePorts(3);
    spec_ = ClusterSpec{{"ps", {Local(ports[0])}},
                        {"worker", {Local(ports[1]), Local(ports[2])}}};
    ps_ = Start("ps", 0);
    worker0_ = Start("worker", 0);
    worker1_ = Start("worker", 1);
  }
  void TearDown() override {
    for (auto& server : {ps_, worker0_, worker1_}) {
      if (server != nullptr) SLUICE_EXPECT_OK(server->Stop());
    }
  }
  std::shared_ptr<Server> Start(const std::string& job, int task) {
    auto server = Server::Create(spec_, job, task);
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *server : nullptr;
  }
  // The same server through the network: no name by which this process knows
  // its own.
  static std::string Remote(const Server& server) {
    std::string target = server.target();
    target.replace(target.find("localhost"), 9, "Localhost");
    return target;
  }
  std::unique_ptr<Session> Open(const std::string& target, Graph& graph) {
    SessionConfig config;
    config.target = target;
    return *Session::Create(config, graph);
  }

  ClusterSpec spec_;
  std::shared_ptr<Server> ps_, worker0_, worker1_;
};

}  // namespace sluice
