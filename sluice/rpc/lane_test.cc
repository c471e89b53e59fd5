// What is special about lanes; what they have in common with gRPC is in
// generic_server_test.cc and remote_worker_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/base/testing/eventually.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/generic_server.h"
#include "sluice/rpc/lane_channel.h"
#include "sluice/rpc/lane_client.h"
#include "sluice/rpc/lane_connection.h"
#include "sluice/rpc/lane_socket.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/testing/lane_only.h"
#include "sluice/rpc/testing/raw_peer.h"
#include "sluice/rpc/testing/raw_server.h"

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

// Hands on what each end sends, until one hangs up.
void Relay(int one, int other) {
  pollfd ends[] = {{one, POLLIN, 0}, {other, POLLIN, 0}};
  while (poll(ends, 2, -1) > 0) {
    for (const int i : {0, 1}) {
      if (ends[i].revents == 0) continue;
      char bytes[4096];
      const ssize_t got = recv(ends[i].fd, bytes, sizeof(bytes), 0);
      if (got <= 0) return;
      send(ends[1 - i].fd, bytes, static_cast<size_t>(got), MSG_NOSIGNAL);
    }
  }
}

TEST_F(LaneTest, ALaneThatFailsOnceIsTriedAgain) {
  Start();
  const std::string served = lane_;
  lane_ = NewLaneName();
  // Does not block, so that it can be told to stop.
  const int listener = *ListenForLanes(lane_);
  const auto next = [&] {
    pollfd more = {listener, POLLIN, 0};
    poll(&more, 1, -1);
    return accept(listener, nullptr, nullptr);
  };
  std::thread relay([&] {
    close(next());  // Without a hello.
    const int client = next();
    if (client < 0) return;
    const int server = *ConnectLane(served);
    Relay(client, server);
    close(client);
    close(server);
  });
  auto channel = Channel();
  EXPECT_TRUE(ComesByLane(*channel));
  channel = nullptr;
  shutdown(listener, SHUT_RDWR);
  relay.join();
  close(listener);
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

TEST_F(LaneTest, ACancellationMayGoWithItsCallHoweverThatEnds) {
  Start();
  constexpr int kThreads = 4;
  std::vector<std::thread> callers;
  for (int i = 0; i < kThreads; ++i) {
    callers.emplace_back([&] {
      for (int lanes = 0; lanes < 50; ++lanes) {
        auto channel = LaneOnly::Connect(lane_);
        ASSERT_NE(channel, nullptr);
        // Breaks the lane while calls begin.
        std::thread breaker([&] { channel->lane().HangUp(); });
        absl::Status last;
        while (last.ok()) {
          auto cancellation = std::make_unique<Cancellation>();
          RpcChannel::Options options;
          options.cancellation = cancellation.get();
          Notification done;
          channel->Call("/who", pb::GetStatusRequest(), options,
                        [&](absl::Status status, const grpc::ByteBuffer&) {
                          last = std::move(status);
                          done.Notify();
                        });
          ASSERT_TRUE(done.WaitFor(kLanePatience));
        }
        EXPECT_TRUE(absl::IsUnavailable(last)) << last;
        breaker.join();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST_F(LaneTest, WhoIsCancelledAlreadyIsAnsweredAtOnce) {
  Start();
  auto channel = LaneOnly::Connect(lane_);
  ASSERT_NE(channel, nullptr);
  Cancellation cancellation;
  cancellation.Cancel(absl::AbortedError("before"));
  RpcChannel::Options options;
  options.cancellation = &cancellation;
  absl::Status ended;
  channel->Call("/wait", pb::GetStatusRequest(), options,
                [&](absl::Status status, const grpc::ByteBuffer&) {
                  ended = std::move(status);
                });
  EXPECT_EQ(ended, absl::AbortedError("before"));
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

TEST_F(LaneTest, ACancelledCallHasItsRoomUntilTheServerHasAnswered) {
  limits_.streams = 1;
  Start();
  auto channel = Channel();
  ASSERT_TRUE(ComesByLane(*channel));
  Cancellation cancellation;
  RpcChannel::Options options;
  options.cancellation = &cancellation;
  absl::Status ended;
  channel->Call("/wait", pb::GetStatusRequest(), options,
                [&](absl::Status status, const grpc::ByteBuffer&) {
                  ended = std::move(status);
                });
  const auto call = WaitForCall();
  ASSERT_NE(call, nullptr);
  cancellation.Cancel(absl::AbortedError("no"));
  EXPECT_EQ(ended, absl::AbortedError("no"));
  const auto caller = Ask(*channel);
  ASSERT_TRUE(caller.ok()) << caller.status();
  EXPECT_THAT(*caller, StartsWith("ipv"));
  call->Fail(absl::AbortedError("late"));
  EXPECT_TRUE(ComesByLane(*channel));
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

TEST_F(LaneTest, DescriptorsThatNobodyAskedForAreClosed) {
  Start();
  ASSERT_NE(LaneOnly::Connect(lane_), nullptr);
  const ptrdiff_t before = OpenDescriptors();
  for (int i = 0; i < 20; ++i) {
    RawPeer peer(lane_);
    peer.SayWithDescriptors(Hello(), 3);
    EXPECT_TRUE(peer.IsHungUp());
  }
  EXPECT_TRUE(Eventually([&] { return OpenDescriptors() <= before; }));
}

TEST(LaneClient, TakesOneDescriptorWithTheHello) {
  { const RawServer first(Hello()); }
  const ptrdiff_t before = OpenDescriptors();
  for (int i = 0; i < 20; ++i) {
    const RawServer server(Hello(), 3);
    ASSERT_NE(server.client, nullptr);
  }
  EXPECT_TRUE(Eventually([&] { return OpenDescriptors() <= before; }));
}

TEST(LaneClient, ShowsALandingNothingThatIsNoTensorsBeginning) {
  LaneHeader hello = Hello();
  hello.call = 10;
  const RawServer server(hello);
  ASSERT_NE(server.client, nullptr);
  class Unused : public Landing {
   public:
    void* Place(std::string_view, size_t) override {
      ADD_FAILURE();
      return nullptr;
    }
    bool Borrow(std::string_view, const grpc::Slice&) override {
      ADD_FAILURE();
      return false;
    }
  } landing;
  RpcChannel::Options options;
  options.landing = &landing;
  Notification done;
  size_t size = 0;
  RpcChannel::Done on_done = [&](const absl::Status&,
                                 const grpc::ByteBuffer& bytes) {
    size = bytes.Length();
    done.Notify();
  };
  ASSERT_TRUE(server.client->Call("/a", {}, options, on_done));
  LaneHeader answer;
  answer.kind = LaneKind::kAnswer;
  answer.call = 1;
  answer.lead = 70'000;
  answer.tail = 20'000;
  std::string bytes(sizeof(answer) + 90'000, 'x');
  std::memcpy(bytes.data(), &answer, sizeof(answer));
  ASSERT_EQ(send(server.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  ASSERT_TRUE(done.WaitFor(kLanePatience));
  EXPECT_EQ(size, 90'000u);
}

LaneHeader CallTo(std::string_view path, uint64_t number) {
  LaneHeader header;
  header.kind = LaneKind::kCall;
  header.call = number;
  header.text = static_cast<uint32_t>(path.size());
  return header;
}

TEST_F(LaneTest, NoTimeoutIsTooLong) {
  Start();
  const RawPeer peer(lane_);
  peer.Say(Hello());
  LaneHeader header = CallTo("/wait", 1);
  header.timeout_us = INT64_MAX;
  peer.Say(header);
  peer.Say("/wait");
  const auto call = WaitForCall();
  ASSERT_NE(call, nullptr);
  EXPECT_GT(call->deadline(), std::chrono::system_clock::now());
}

TEST_F(LaneTest, ACallThatIsOpenCannotBeMadeAgain) {
  Start();
  const RawPeer peer(lane_);
  peer.Say(Hello());
  for (int i = 0; i < 2; ++i) {
    peer.Say(CallTo("/wait", 1));
    peer.Say("/wait");
  }
  EXPECT_TRUE(peer.IsHungUp());
}

TEST(LaneServer, WhoTakesNoAnswersIsNotHeardUntilItDoes) {
  constexpr int kCalls = 500;
  std::atomic<int> served{0};
  const grpc::Slice megabyte(std::string(1 << 20, 'x'));
  GenericServer::Options options;
  options.address = "localhost:0";
  options.lane = NewLaneName();
  options.handler = [&](const std::shared_ptr<ServerCall>& call) {
    ++served;
    call->Reply(grpc::ByteBuffer(&megabyte, 1));
  };
  const std::string lane = options.lane;
  auto server = *GenericServer::Start(std::move(options));
  const int fd = *ConnectLane(lane);
  std::string bytes(sizeof(LaneHeader), ' ');
  const LaneHeader hello = Hello();
  std::memcpy(bytes.data(), &hello, sizeof(hello));
  for (int i = 0; i < kCalls; ++i) {
    LaneHeader header = CallTo("", static_cast<uint64_t>(i));
    header.lead = 5000;  // So that few are read at once.
    bytes.append(reinterpret_cast<const char*>(&header), sizeof(header));
    bytes.append(header.lead, 'x');
  }
  size_t sent = 0;
  const auto say = [&] {
    const ssize_t more =
        send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (more > 0) sent += static_cast<size_t>(more);
  };
  ASSERT_TRUE(Eventually([&] {
    say();
    return served >= 64;
  }));
  // Time enough to be served, if it were heard.
  const auto other = LaneOnly::Connect(lane);
  ASSERT_NE(other, nullptr);
  for (int i = 0; i < 100; ++i) {
    say();
    Notification done;
    other->Call(
        "/a", grpc::ByteBuffer(), {},
        [&](const absl::Status&, const grpc::ByteBuffer&) { done.Notify(); });
    ASSERT_TRUE(done.WaitFor(kLanePatience));
  }
  EXPECT_LT(served, 300);
  std::vector<char> answers(1 << 20);
  EXPECT_TRUE(Eventually([&] {
    say();
    while (recv(fd, answers.data(), answers.size(), MSG_DONTWAIT) > 0) {
    }
    return served == kCalls + 100;
  }));
  close(fd);
}

TEST_F(LaneTest, APeerThatNeverSaysHelloIsHungUpOn) {
  limits_.handshake_ms = 100;
  Start();
  EXPECT_TRUE(RawPeer(lane_).IsHungUp());
}

TEST_F(LaneTest, AClientThatIsKilledIsGoneThoughAChildOfItLives) {
  Start();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t client = fork();
  ASSERT_GE(client, 0);
  if (client == 0) {
    const RawPeer peer(lane_);
    peer.Say(Hello());
    LaneHeader header;
    header.kind = LaneKind::kCall;
    header.text = 5;
    peer.Say(header);
    peer.Say("/wait");
    const pid_t child = fork();
    if (child != 0 && write(ends[1], &child, sizeof(child)) < 0) _exit(1);
    alarm(120);  // Whatever becomes of the test.
    while (true) pause();
  }
  pid_t child = 0;
  ASSERT_EQ(read(ends[0], &child, sizeof(child)), ssize_t{sizeof(child)});
  const auto call = WaitForCall();
  ASSERT_NE(call, nullptr);
  Notification cancelled;
  call->OnCancel([&] { cancelled.Notify(); });
  kill(client, SIGKILL);
  EXPECT_TRUE(cancelled.WaitFor(kLanePatience));
  EXPECT_EQ(kill(child, SIGKILL), 0);  // It had the socket all the time.
  EXPECT_EQ(waitpid(client, nullptr, 0), client);
  close(ends[0]);
  close(ends[1]);
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

// Whether a loop of a process that can open nothing tells so.
bool IsToldWithoutDescriptors() {
  class Nobody : public LaneLoop::Watcher {
    void Ready(uint32_t) override {}
    void Tick(SteadyTime) override {}
  };
  constexpr rlimit kNone = {0, 0};
  setrlimit(RLIMIT_NOFILE, &kNone);
  return absl::IsUnavailable(
      LaneLoop::Next().Add(STDIN_FILENO, std::make_shared<Nobody>()));
}

TEST(LaneLoop, WithoutDescriptorsThereAreNoLanes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // It has no loops yet.
  EXPECT_EXIT(_exit(IsToldWithoutDescriptors() ? 0 : 1),
              testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sluice
