// What is special about lanes; what they have in common with gRPC is in
// generic_server_test.cc and remote_worker_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/base/testing/eventually.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/generic_server.h"
#include "sluice/rpc/lane_channel.h"
#include "sluice/rpc/lane_connection.h"
#include "sluice/rpc/lane_socket.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/testing/lane_only.h"
#include "sluice/tensor/buffer.h"

namespace sluice {
namespace {

using testing::StartsWith;

constexpr auto kLanePatience = std::chrono::seconds(60);

// A server with a lane, which tells callers who they are.
class LaneTest : public testing::Test {
 protected:
  void Start(int port = 0) {
    GenericServer::Options options;
    options.address = StrCat("localhost:", port);
    options.lane = lane_ = NewLaneName();
    options.limits = limits_;
    options.handler = [this](std::shared_ptr<ServerCall> call) {
      if (call->path() == "/wait") {
        MutexLock lock(mu_);
        waiting_.push_back(std::move(call));
        return;
      }
      pb::GetStatusResponse response;
      response.set_sluice_lane(lane_);
      if (call->path() != paths::kGetStatus) {
        response.add_device_attributes()->set_name(call->peer());
      }
      call->Reply(*ToByteBuffer(response));
    };
    server_ = *GenericServer::Start(std::move(options));
  }
  void TearDown() override {
    MutexLock lock(mu_);
    for (const auto& call : waiting_) call->Fail(absl::AbortedError("over"));
    waiting_.clear();
  }

  std::shared_ptr<RpcChannel> Channel() {
    return *CreateLaneChannel(StrCat("localhost:", server_->port()), nullptr);
  }
  // Who the server takes the caller for.
  static absl::StatusOr<std::string> Ask(RpcChannel& channel,
                                         const char* path = "/who") {
    Notification done;
    absl::StatusOr<std::string> result;
    RpcChannel::Options options;
    options.deadline = RealClock().Now() + kLanePatience;
    channel.Call(path, pb::GetStatusRequest(), options,
                 [&](const absl::Status& status, grpc::ByteBuffer bytes) {
                   pb::GetStatusResponse response;
                   if (!status.ok()) {
                     result = status;
                   } else if (FromByteBuffer(&bytes, &response)) {
                     result = response.device_attributes(0).name();
                   }
                   done.Notify();
                 });
    EXPECT_TRUE(done.WaitFor(kLanePatience * 2));
    return result;
  }
  static bool IsLane(const absl::StatusOr<std::string>& caller) {
    return caller.ok() && caller->starts_with("process:");
  }
  static bool ComesByLane(RpcChannel& channel) {
    return Eventually([&] { return IsLane(Ask(channel)); });
  }
  std::shared_ptr<ServerCall> WaitForCall() {
    std::shared_ptr<ServerCall> call;
    Eventually([&] {
      MutexLock lock(mu_);
      if (!waiting_.empty()) call = waiting_.back();
      return call != nullptr;
    });
    return call;
  }

  Limits limits_;
  std::string lane_;
  Mutex mu_;
  std::vector<std::shared_ptr<ServerCall>> waiting_ SLUICE_GUARDED_BY(mu_);
  std::unique_ptr<GenericServer> server_;
};

TEST_F(LaneTest, CallsGoByTheLaneOnceTheServerHasAnswered) {
  Start();
  auto channel = Channel();
  EXPECT_THAT(*Ask(*channel), StartsWith("ipv"));
  EXPECT_TRUE(ComesByLane(*channel));
  EXPECT_EQ(*Ask(*channel), StrCat("process:", getpid()));
  EXPECT_TRUE(channel->last_answer().has_value());
}

TEST_F(LaneTest, AServerWithoutALaneIsAskedOnce) {
  int asked = 0;
  GenericServer::Options options;
  options.address = "localhost:0";
  options.handler = [&](const std::shared_ptr<ServerCall>& call) {
    if (call->path() == paths::kGetStatus) ++asked;
    pb::GetStatusResponse response;
    response.add_device_attributes()->set_name(call->peer());
    call->Reply(*ToByteBuffer(response));
  };
  auto server = *GenericServer::Start(std::move(options));
  auto channel =
      *CreateLaneChannel(StrCat("localhost:", server->port()), nullptr);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(IsLane(Ask(*channel)));
  channel = nullptr;
  server = nullptr;
  EXPECT_EQ(asked, 1);
}

TEST_F(LaneTest, ALaneOfAnotherMachineIsNotMissed) {
  Start();
  lane_ = NewLaneName();  // Where nobody listens.
  auto channel = Channel();
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(IsLane(Ask(*channel)));
}

TEST_F(LaneTest, TheUserMayForbidThem) {
  Start();
  setenv("SLUICE_LANE", "grpc", 1);
  auto channel = Channel();
  unsetenv("SLUICE_LANE");
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(IsLane(Ask(*channel)));
}

TEST_F(LaneTest, ABrokenLaneEndsItsCallsAndIsTakenAnew) {
  Start();
  auto channel = Channel();
  ASSERT_TRUE(ComesByLane(*channel));
  absl::Status ended;
  Notification done;
  channel->Call("/wait", pb::GetStatusRequest(), {},
                [&](absl::Status status, const grpc::ByteBuffer&) {
                  ended = std::move(status);
                  done.Notify();
                });
  ASSERT_NE(WaitForCall(), nullptr);
  const int port = server_->port();
  server_ = nullptr;
  EXPECT_TRUE(done.WaitFor(kLanePatience));
  EXPECT_TRUE(absl::IsUnavailable(ended)) << ended;
  EXPECT_TRUE(absl::IsUnavailable(Ask(*channel).status()));
  Start(port);
  EXPECT_TRUE(ComesByLane(*channel));
}

TEST_F(LaneTest, WhatALaneHasNoRoomForGoesByGrpc) {
  limits_.streams = 2;
  Start();
  auto channel = Channel();
  ASSERT_TRUE(ComesByLane(*channel));
  for (int i = 0; i < 2; ++i) {
    channel->Call("/wait", pb::GetStatusRequest(), {},
                  [](const absl::Status&, const grpc::ByteBuffer&) {});
  }
  EXPECT_THAT(*Ask(*channel), StartsWith("ipv"));
}

TEST_F(LaneTest, CallsOutliveTheirChannel) {
  Start();
  Notification done;
  absl::Status ended;
  {
    auto channel = Channel();
    ASSERT_TRUE(ComesByLane(*channel));
    channel->Call("/wait", pb::GetStatusRequest(), {},
                  [&](absl::Status status, const grpc::ByteBuffer&) {
                    ended = std::move(status);
                    done.Notify();
                  });
  }
  auto call = WaitForCall();
  ASSERT_NE(call, nullptr);
  call->Fail(absl::AbortedError("late"));
  EXPECT_TRUE(done.WaitFor(kLanePatience));
  EXPECT_EQ(ended, absl::AbortedError("late"));
}

// A peer that is not one of us.
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

LaneHeader Hello() {
  LaneHeader hello;
  hello.code = kLaneVersion;
  return hello;
}

TEST_F(LaneTest, APeerThatTalksNonsenseIsHungUpOnAndNobodyElse) {
  Start();
  auto channel = LaneOnly::Connect(lane_);
  ASSERT_NE(channel, nullptr);
  std::vector<std::vector<LaneHeader>> nonsense(7, {Hello()});
  LaneHeader header;
  header.kind = LaneKind::kCall;
  nonsense[0] = {header};  // Before its hello.
  nonsense[1].push_back(Hello());
  nonsense[2][0].code = 99;
  header.kind = LaneKind::kAnswer;
  nonsense[3].push_back(header);
  header.kind = LaneKind{77};
  nonsense[4].push_back(header);
  header.kind = LaneKind::kCall;
  header.text = 1 << 20;
  nonsense[5].push_back(header);
  header.text = 0;
  header.lead = header.tail = ~uint64_t{0};
  nonsense[6].push_back(header);
  for (const std::vector<LaneHeader>& headers : nonsense) {
    RawPeer peer(lane_);
    for (const LaneHeader& one : headers) peer.Say(one);
    EXPECT_TRUE(peer.IsHungUp());
  }
  {
    RawPeer peer(lane_);
    peer.Say(
        "GET / HTTP/1.1\r\nHost: here\r\nAccept: every kind of thing\r\n"
        "and more than a header\r\n\r\n");
    EXPECT_TRUE(peer.IsHungUp());
  }
  {
    RawPeer gone(lane_);  // Says half a header and goes.
    gone.Say("sluice");
  }
  EXPECT_TRUE(IsLane(Ask(*channel)));
}

TEST_F(LaneTest, APeerThatNeverSaysHelloIsHungUpOn) {
  limits_.handshake_ms = 100;
  Start();
  EXPECT_TRUE(RawPeer(lane_).IsHungUp());
}

TEST_F(LaneTest, ALargeRequestArrivesWhole) {
  GenericServer::Options options;
  options.address = "localhost:0";
  options.lane = NewLaneName();
  options.handler = [](const std::shared_ptr<ServerCall>& call) {
    call->Reply(call->request());
  };
  const std::string lane = options.lane;
  auto server = *GenericServer::Start(std::move(options));
  auto channel = LaneOnly::Connect(lane);
  ASSERT_NE(channel, nullptr);
  for (const size_t size : {0, 1, 5000, 100'000, 20'000'000}) {
    pb::RegisterGraphResponse message;
    std::string* text = message.mutable_graph_handle();
    text->resize(size);
    for (size_t i = 0; i < size; ++i) (*text)[i] = static_cast<char>(i % 127);
    Notification done;
    pb::RegisterGraphResponse back;
    absl::Status ended;
    channel->Call("/echo", message, {},
                  [&](absl::Status status, grpc::ByteBuffer bytes) {
                    ended = std::move(status);
                    if (!FromByteBuffer(&bytes, &back)) ended = Internal("bad");
                    done.Notify();
                  });
    ASSERT_TRUE(done.WaitFor(kLanePatience));
    SLUICE_EXPECT_OK(ended);
    EXPECT_TRUE(back.graph_handle() == *text) << size;
  }
}

// The server lends a tensor to whoever asks.
class LendingTest : public testing::Test {
 protected:
  LendingTest() {
    GenericServer::Options options;
    options.address = "localhost:0";
    options.lane = NewLaneName();
    options.handler = [this](const std::shared_ptr<ServerCall>& call) {
      call->Reply(*EncodeRecvTensor(tensor_, false, 0));
    };
    const std::string lane = options.lane;
    server_ = *GenericServer::Start(std::move(options));
    channel_ = LaneOnly::Connect(lane);
    for (float& x : tensor_.mutable_data<float>()) x = 5;
  }
  Tensor Receive() {
    TensorLanding landing;
    Tensor received;
    Notification done;
    RpcChannel::Options options;
    options.landing = &landing;
    channel_->Call("/recv", pb::GetStatusRequest(), options,
                   [&](const absl::Status& status, grpc::ByteBuffer bytes) {
                     SLUICE_EXPECT_OK(status);
                     auto got = landing.Take(&bytes);
                     if (got.ok()) received = std::move(got->tensor);
                     done.Notify();
                   });
    EXPECT_TRUE(done.WaitFor(kLanePatience));
    return received;
  }

  Tensor tensor_{DType::kFloat, {200'000}};
  std::unique_ptr<GenericServer> server_;
  std::shared_ptr<LaneOnly> channel_;
};

TEST_F(LendingTest, TheSameMemoryIsLentAgainAndAgain) {
  ASSERT_NE(channel_, nullptr);
  const Tensor first = Receive();
  ASSERT_TRUE(first.initialized());
  EXPECT_TRUE(first.buffer()->borrowed());
  const Tensor second = Receive();
  EXPECT_EQ(first.raw(), second.raw());
  EXPECT_NE(first.raw(), tensor_.raw());
  EXPECT_EQ(second.data<float>()[199'999], 5);
}

TEST_F(LendingTest, ALoanOutlivesItsChannelAndIsReturnedThen) {
  ASSERT_NE(channel_, nullptr);
  Tensor lent = Receive();
  channel_ = nullptr;
  EXPECT_EQ(lent.data<float>()[7], 5);
  EXPECT_FALSE(tensor_.unique());
  lent = Tensor();
  EXPECT_TRUE(Eventually([&] { return tensor_.unique(); }));
}

TEST_F(LendingTest, WhatWasLentStaysWhenTheLaneBreaks) {
  ASSERT_NE(channel_, nullptr);
  const Tensor lent = Receive();
  ASSERT_TRUE(lent.initialized());
  channel_->lane().Close(absl::UnavailableError("broken"));
  server_ = nullptr;
  // Its reader is this process, which lives: nobody may write to it.
  EXPECT_FALSE(tensor_.unique());
  EXPECT_EQ(lent.data<float>()[7], 5);
}

TEST_F(LendingTest, AnAnswerThatNobodyWantsIsReturnedAtOnce) {
  ASSERT_NE(channel_, nullptr);
  for (int i = 0; i < 50; ++i) {
    RpcChannel::Options options;
    Cancellation cancellation;
    options.cancellation = &cancellation;
    Notification done;
    channel_->Call(
        "/recv", pb::GetStatusRequest(), options,
        [&](const absl::Status&, const grpc::ByteBuffer&) { done.Notify(); });
    cancellation.Cancel(absl::CancelledError("no"));
    EXPECT_TRUE(done.WaitFor(kLanePatience));
  }
  Receive();
  EXPECT_TRUE(Eventually([&] { return tensor_.unique(); }));
}

}  // namespace
}  // namespace sluice
