// A server at a lane that says what it likes.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "sluice/base/mutex.h"
#include "sluice/rpc/lane_channel.h"
#include "sluice/rpc/lane_client.h"
#include "sluice/rpc/testing/raw_peer.h"

namespace sluice {

// Has one client.
class RawServer {
 public:
  explicit RawServer(const LaneHeader& hello, int descriptors = 1) {
    const std::string name = NewLaneName();
    const int listener = *ListenForLanes(name);
    Notification ready;
    LaneClient::Connect(name, [&](auto connected) {
      if (connected.ok()) client = *std::move(connected);
      ready.Notify();
    });
    fd = accept(listener, nullptr, nullptr);
    SendWithDescriptors(fd, hello, descriptors);
    EXPECT_TRUE(ready.WaitFor(std::chrono::seconds(60)));
    close(listener);
  }
  ~RawServer() {
    if (client != nullptr) client->Close(absl::UnavailableError("over"));
    close(fd);
  }

  int fd;
  std::shared_ptr<LaneClient> client;
};

}  // namespace sluice
