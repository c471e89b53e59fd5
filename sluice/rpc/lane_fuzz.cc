// Any bytes sent to a lane end that lane at most; others are served on, and
// calls by it end.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "sluice/base/logging.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/lane_channel.h"
#include "sluice/rpc/lane_client.h"
#include "sluice/rpc/lane_connection.h"
#include "sluice/rpc/lane_server.h"
#include "sluice/rpc/lane_socket.h"
#include "sluice/rpc/testing/lane_only.h"

namespace sluice {
namespace {

struct Serving {
  std::string lane = NewLaneName();
  std::unique_ptr<LaneServer> server;
  std::shared_ptr<LaneOnly> friendly;

  Serving() {
    SetLogSinkForTest([](LogLevel, const std::string&) {});
    GenericServer::Options options;
    options.lane = lane;
    options.limits.message_bytes = 1 << 20;
    options.handler = [](const std::shared_ptr<ServerCall>& call) {
      call->OnCancel([] {});
      if (call->path().size() % 2 == 0) {
        call->Reply(call->request());
      } else {
        call->Fail(absl::NotFoundError(call->path()));
      }
    };
    server = *LaneServer::Start(options);
    friendly = LaneOnly::Connect(lane);
  }

  // A lane that behaves is served whatever others send.
  void CheckFriendly() const {
    Notification done;
    grpc::Slice slice("hello");
    friendly->Call(
        "/a", grpc::ByteBuffer(&slice, 1), {},
        [&](const absl::Status&, const grpc::ByteBuffer&) { done.Notify(); });
    if (!done.WaitFor(std::chrono::seconds(20))) std::abort();
  }
};

void SendAll(int fd, const char* bytes, size_t size) {
  char answers[4096];
  while (size > 0) {
    const ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
    if (sent > 0) {
      bytes += sent;
      size -= static_cast<size_t>(sent);
    } else if (errno != EAGAIN) {
      return;  // It was hung up on.
    }
    while (recv(fd, answers, sizeof(answers), MSG_DONTWAIT) > 0) {
    }
  }
}

void RunOneInput(const Serving& serving, const std::string& input) {
  const int fd = *ConnectLane(serving.lane);
  if (input.empty() || input[0] % 4 != 0) {
    LaneHeader hello;
    hello.code = kLaneVersion;
    SendAll(fd, reinterpret_cast<const char*>(&hello), sizeof(hello));
  }
  SendAll(fd, input.data(), input.size());
  shutdown(fd, SHUT_WR);
  // The server ends the lane when it has read all.
  char answers[4096];
  while (true) {
    const ssize_t got = recv(fd, answers, sizeof(answers), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN)) break;
  }
  close(fd);
}

// The other way round: `input` is what a server says to three calls.
void RunAsServer(const std::string& input) {
  static const auto* name = new std::string(NewLaneName());
  static const int listener = *ListenForLanes(*name);
  Notification ready;
  std::shared_ptr<LaneClient> client;
  LaneClient::Connect(*name, [&](auto connected) {
    if (connected.ok()) client = *std::move(connected);
    ready.Notify();
  });
  const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
  LaneHeader hello;
  hello.code = kLaneVersion;
  hello.call = 100;
  SendAll(fd, reinterpret_cast<const char*>(&hello), sizeof(hello));
  ready.Wait();
  TensorLanding landings[3];
  Notification ends[3];
  for (int i = 0; i < 3; ++i) {
    RpcChannel::Options options;
    options.landing = &landings[i];
    RpcChannel::Done done = [&, i](const absl::Status& status,
                                   grpc::ByteBuffer bytes) {
      if (status.ok()) landings[i].Take(&bytes).IgnoreError();
      ends[i].Notify();
    };
    if (!client->Call("/a", {}, options, done)) std::abort();
  }
  SendAll(fd, input.data(), input.size());
  shutdown(fd, SHUT_WR);
  for (Notification& end : ends) {
    if (!end.WaitFor(std::chrono::seconds(20))) std::abort();
  }
  close(fd);
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* serving = new sluice::Serving;
  sluice::RunOneInput(*serving,
                      std::string(reinterpret_cast<const char*>(data), size));
  sluice::RunAsServer(std::string(reinterpret_cast<const char*>(data), size));
  static int inputs = 0;
  if (++inputs % 100 == 1) serving->CheckFriendly();
  return 0;
}
