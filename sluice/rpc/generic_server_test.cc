#include "sluice/rpc/generic_server.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sluice/base/mutex.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/client_call.h"
#include "sluice/rpc/lane_channel.h"
#include "sluice/rpc/send_buffer.h"
#include "sluice/rpc/testing/lane_only.h"

namespace sluice {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

// A server, a channel to it, and the calls it was given.
class GenericServerTest : public testing::Test {
 protected:
  void Serve(CallHandler handler) {
    Listen(0, std::move(handler));
    if (lane_.empty()) {
      channel_ = *RpcChannel::Create(StrCat("localhost:", server_->port()));
    } else {
      channel_ = LaneOnly::Connect(lane_);
      ASSERT_NE(channel_, nullptr);
    }
  }
  void Listen(int port, CallHandler handler) {
    GenericServer::Options options;
    options.address = StrCat("localhost:", port);
    options.limits = limits_;
    options.lane = lane_;
    options.handler = std::move(handler);
    server_ = *GenericServer::Start(std::move(options));
  }
  // Serves by keeping the calls.
  void ServeLater() {
    Serve([this](std::shared_ptr<ServerCall> call) {
      MutexLock lock(mu_);
      calls_.push_back(std::move(call));
      arrived_.NotifyAll();
    });
  }
  std::shared_ptr<ServerCall> WaitForCall() {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    MutexLock lock(mu_);
    while (calls_.empty()) {
      if (!arrived_.WaitUntil(mu_, until)) return nullptr;
    }
    std::shared_ptr<ServerCall> call = calls_.back();
    calls_.pop_back();
    return call;
  }

  struct Answer {
    Notification done;
    absl::Status status;
    grpc::ByteBuffer bytes;
    absl::Status Wait() {
      return done.WaitFor(kPatience) ? status : absl::UnknownError("no answer");
    }
  };
  std::shared_ptr<Answer> Call(const char* path,
                               RpcChannel::Options options = {}) {
    options.wait_for_ready = true;
    return CallAtOnce(path, options);
  }
  std::shared_ptr<Answer> CallAtOnce(
      const char* path, const RpcChannel::Options& options = {},
      const google::protobuf::MessageLite& request = pb::GetStatusRequest()) {
    auto answer = std::make_shared<Answer>();
    channel_->Call(path, request, options,
                   [answer](absl::Status status, grpc::ByteBuffer bytes) {
                     answer->status = std::move(status);
                     answer->bytes.Swap(&bytes);
                     answer->done.Notify();
                   });
    return answer;
  }

  // As clients that are not ours call: by gRPC, and it alone.
  grpc::Status CallAsOthers(grpc::ClientContext& context,
                            const google::protobuf::MessageLite& request) {
    grpc::GenericStub stub(
        grpc::CreateChannel(StrCat("localhost:", server_->port()),
                            grpc::InsecureChannelCredentials()));
    grpc::CompletionQueue queue;
    const auto call =
        stub.PrepareUnaryCall(&context, "/a/B", *ToByteBuffer(request), &queue);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, &queue);
    void* tag;
    bool ok;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    return status;
  }

  Limits limits_;
  std::string lane_;  // By which the channel goes; empty: by gRPC.
  std::unique_ptr<GenericServer> server_;
  std::shared_ptr<RpcChannel> channel_;
  Mutex mu_;
  CondVar arrived_;
  std::vector<std::shared_ptr<ServerCall>> calls_ SLUICE_GUARDED_BY(mu_);
};

// What holds for calls by gRPC and by a lane.
class CallTest : public GenericServerTest,
                 public testing::WithParamInterface<const char*> {
 protected:
  CallTest() {
    if (GetParam() == std::string("Lane")) lane_ = NewLaneName();
  }
};
INSTANTIATE_TEST_SUITE_P(By, CallTest, testing::Values("Grpc", "Lane"),
                         [](const auto& info) { return info.param; });

TEST_P(CallTest, HandsOverThePathAndReturnsTheAnswer) {
  Serve([](std::shared_ptr<ServerCall> call) {
    if (call->path() == "/a/B") {
      pb::RegisterGraphResponse response;
      response.set_graph_handle("h");
      call->Reply(*ToByteBuffer(response));
    } else {
      call->Fail(absl::NotFoundError(call->path()));
    }
  });
  auto good = Call("/a/B");
  SLUICE_ASSERT_OK(good->Wait());
  pb::RegisterGraphResponse response;
  ASSERT_TRUE(FromByteBuffer(&good->bytes, &response));
  EXPECT_EQ(response.graph_handle(), "h");
  EXPECT_EQ(Call("/a/C")->Wait(), absl::NotFoundError("/a/C"));
}

// gRPC writes three bytes for each of these.
TEST_P(CallTest, ALongErrorInAnyLanguageComesWhole) {
  std::string text;
  while (text.size() < 15000) text += "\xe7\xa5\x9e";
  Serve([&](const std::shared_ptr<ServerCall>& call) {
    call->Fail(NotFound(text));
  });
  const absl::Status status = Call("/s/Fail")->Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message().size(), text.size());
  EXPECT_TRUE(status.message() == text);
}

// Of a server that is asked by others, whose headers have 8 KB.
TEST_F(GenericServerTest, ALongErrorKeepsItsCodeAtOtherClients) {
  std::string text;
  while (text.size() < 15000) text += "\xe7\xa5\x9e";
  Serve([&](const std::shared_ptr<ServerCall>& call) {
    call->Fail(NotFound(text));
  });
  grpc::ClientContext context;
  const grpc::Status status = CallAsOthers(context, pb::GetStatusRequest());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), testing::EndsWith(" ... [truncated]"));
}

TEST_F(GenericServerTest, AServerIsReachedAsSoonAsItIsThere) {
  const CallHandler answer = [](std::shared_ptr<ServerCall> call) {
    call->Reply({});
  };
  Serve(answer);
  const int port = server_->port();
  server_ = nullptr;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(CallAtOnce("/a/B")->Wait().code(),
              absl::StatusCode::kUnavailable);
  }
  Listen(port, answer);
  SLUICE_EXPECT_OK(CallAtOnce("/a/B")->Wait());
}

TEST_P(CallTest, ThousandsMayWait) {
  ServeLater();
  constexpr int kCalls = 2000;
  std::vector<std::shared_ptr<Answer>> answers;
  for (int i = 0; i < kCalls; ++i) answers.push_back(Call("/a/B"));
  for (int i = 0; i < kCalls; ++i) {
    const auto call = WaitForCall();
    ASSERT_NE(call, nullptr);
    call->Fail(absl::AbortedError("later"));
  }
  for (const auto& answer : answers) {
    EXPECT_EQ(answer->Wait(), absl::AbortedError("later"));
  }
}

TEST_P(CallTest, AClientThatGoesAwayIsTold) {
  ServeLater();
  Cancellation cancellation;
  RpcChannel::Options options;
  options.cancellation = &cancellation;
  auto answer = Call("/a/B", options);
  auto call = WaitForCall();
  ASSERT_NE(call, nullptr);
  Notification told;
  call->OnCancel([&] { told.Notify(); });
  cancellation.Cancel(absl::CancelledError("enough"));
  EXPECT_TRUE(told.WaitFor(kPatience));
  EXPECT_EQ(answer->Wait(), absl::CancelledError("enough"));
  // Who registers afterwards is told at once.
  bool again = false;
  call->OnCancel([&] { again = true; });
  EXPECT_TRUE(again);
  call->Fail(absl::CancelledError("nobody listens"));
}

TEST_P(CallTest, ADeadlineEndsIt) {
  ServeLater();
  RpcChannel::Options options;
  options.deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  auto answer = Call("/a/B", options);
  EXPECT_TRUE(absl::IsDeadlineExceeded(answer->Wait()));
  if (auto call = WaitForCall()) call->Fail(absl::OkStatus());
}

TEST_P(CallTest, ShutdownEndsThoseThatWaitAndLaterAnswersAreHarmless) {
  ServeLater();
  auto answer = Call("/a/B");
  auto call = WaitForCall();
  ASSERT_NE(call, nullptr);
  std::weak_ptr<ServerCall> watch = call;
  server_->Shutdown();
  EXPECT_FALSE(answer->Wait().ok());
  call->Reply(*ToByteBuffer(pb::GetStatusResponse()));
  call = nullptr;
  EXPECT_TRUE(watch.expired());
  server_->Shutdown();  // Again: nothing happens.
}

TEST_F(GenericServerTest, TwoServersCannotShareAPort) {
  ServeLater();
  GenericServer::Options options;
  options.address = StrCat("localhost:", server_->port());
  EXPECT_TRUE(
      absl::IsUnknown(GenericServer::Start(std::move(options)).status()));
}

TEST_P(CallTest, ARequestOverTheLimitIsRefused) {
  limits_.message_bytes = 100;
  Serve([](std::shared_ptr<ServerCall> call) {
    call->Reply(*ToByteBuffer(pb::GetStatusResponse()));
  });
  pb::RegisterGraphResponse request;
  for (const int size : {50, 200}) {
    request.set_graph_handle(std::string(size, 'x'));
    Answer answer;
    channel_->Call("/a/B", *ToByteBuffer(request), {},
                   [&](absl::Status status, grpc::ByteBuffer) {
                     answer.status = std::move(status);
                     answer.done.Notify();
                   });
    const absl::Status status = answer.Wait();
    if (size == 50) {
      SLUICE_EXPECT_OK(status);
    } else {
      EXPECT_THAT(status,
                  StatusIs(absl::StatusCode::kResourceExhausted,
                           testing::HasSubstr("limit message_bytes=100")));
    }
  }
}

// Before it is there as a whole.
TEST_F(GenericServerTest, ARequestThatFindsNoRoomIsRefused) {
  limits_.arriving_bytes = 8 << 20;
  Serve([](const std::shared_ptr<ServerCall>& call) {
    call->Reply(*ToByteBuffer(pb::GetStatusResponse()));
  });
  const auto send = [&](size_t bytes) {
    pb::RegisterGraphRequest request;
    request.set_session_handle(std::string(bytes, 'x'));
    return CallAtOnce("/s/Large", {}, request)->Wait();
  };
  EXPECT_EQ(send(200 << 20).code(), absl::StatusCode::kResourceExhausted);
  SLUICE_EXPECT_OK(send(1000));
}

// What it unfolds to, no limit would see before it is there.
TEST_F(GenericServerTest, ACompressedRequestIsRefused) {
  std::atomic<int> served{0};
  Serve([&](const std::shared_ptr<ServerCall>& call) {
    ++served;
    call->Reply(*ToByteBuffer(pb::GetStatusResponse()));
  });
  pb::RegisterGraphRequest request;
  request.set_session_handle(std::string(1 << 20, 'x'));
  const auto send = [&](grpc_compression_algorithm algorithm) {
    grpc::ClientContext context;
    context.set_compression_algorithm(algorithm);
    return CallAsOthers(context, request).error_code();
  };
  EXPECT_EQ(send(GRPC_COMPRESS_GZIP), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(send(GRPC_COMPRESS_DEFLATE), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(served, 0);
  EXPECT_EQ(send(GRPC_COMPRESS_NONE), grpc::StatusCode::OK);
}

// Of each connection of this process that has one end at `port`.
std::vector<int> SendBuffersAt(int port) {
  std::vector<int> buffers;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in6 near = {}, far = {};  // The port is where IPv4 has it.
    socklen_t size = sizeof(near);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&near), &size) != 0) {
      continue;
    }
    size = sizeof(far);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&far), &size) != 0 ||
        (ntohs(near.sin6_port) != port && ntohs(far.sin6_port) != port)) {
      continue;
    }
    int bytes = 0;
    size = sizeof(bytes);
    getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &size);
    buffers.push_back(bytes);
  }
  return buffers;
}

TEST_F(GenericServerTest, TheKernelHoldsLittleOfWhatIsLarge) {
  pb::RegisterGraphRequest large;
  large.set_session_handle(std::string(2 * kLargeMessage, 'x'));
  Serve([&](const std::shared_ptr<ServerCall>& call) {
    call->Reply(*ToByteBuffer(large));
  });
  const int port = server_->port();
  for (int i = 0; i < 2; ++i) {
    SLUICE_ASSERT_OK(CallAtOnce("/s/Large", {}, large)->Wait());
  }
  // One that is not used yet, to compare.
  const int other = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(other, reinterpret_cast<sockaddr*>(&at), sizeof(at)), 0);
  int untouched = 0;
  socklen_t size = sizeof(untouched);
  getsockopt(other, SOL_SOCKET, SO_SNDBUF, &untouched, &size);
  const std::vector<int> buffers = SendBuffersAt(port);
  close(other);
  EXPECT_EQ(std::count_if(buffers.begin(), buffers.end(),
                          [&](int bytes) { return bytes < untouched; }),
            2)
      << "the server's end and the client's: "
      << testing::PrintToString(buffers);
}

TEST_F(GenericServerTest, HeadersOverTheLimitAreRefused) {
  limits_.metadata_bytes = 10000;
  Serve([](std::shared_ptr<ServerCall> call) {
    call->Reply(*ToByteBuffer(pb::GetStatusResponse()));
  });
  for (const int size : {5000, 20000}) {
    grpc::ClientContext context;
    context.AddMetadata("x", std::string(size, 'x'));
    const grpc::Status status = CallAsOthers(context, pb::GetStatusRequest());
    EXPECT_EQ(status.error_code(), size == 5000
                                       ? grpc::StatusCode::OK
                                       : grpc::StatusCode::RESOURCE_EXHAUSTED)
        << status.error_message();
  }
}

TEST_F(GenericServerTest, CallsOverTheLimitWaitForOthers) {
  limits_.streams = 1;
  ServeLater();
  // The client learns of the limit with the first answer.
  auto warm = Call("/a/B");
  WaitForCall()->Fail(absl::AbortedError(""));
  EXPECT_FALSE(warm->Wait().ok());
  auto first = Call("/a/1"), second = Call("/a/2");
  for (const char* path : {"/a/1", "/a/2"}) {
    const auto call = WaitForCall();
    ASSERT_NE(call, nullptr);
    EXPECT_EQ(call->path(), path);
    {
      MutexLock lock(mu_);
      EXPECT_TRUE(calls_.empty());
    }
    call->Fail(absl::AbortedError("in turn"));
  }
  EXPECT_EQ(first->Wait(), absl::AbortedError("in turn"));
  EXPECT_EQ(second->Wait(), absl::AbortedError("in turn"));
}

TEST_F(GenericServerTest, APeerThatSaysNothingIsDropped) {
  limits_.handshake_ms = 100;
  ServeLater();
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(server_->port()));
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
            0);
  timeval patience = {.tv_sec = 60, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  char bytes[100];
  ssize_t got;
  while ((got = recv(fd, bytes, sizeof(bytes), 0)) > 0) {
  }
  EXPECT_TRUE(got == 0 || errno == ECONNRESET) << strerror(errno);
  close(fd);
}

TEST(RpcChannel, AnAddressIsHostAndPort) {
  for (const char* good : {"localhost:1", "[::1]:2", "a.b:65535"}) {
    SLUICE_EXPECT_OK(RpcChannel::Create(good).status());
  }
  for (const char* bad : {"", "host", ":1", "host:", "host:x", "host:65536",
                          "host:-1", "a/b:1"}) {
    EXPECT_THAT(
        RpcChannel::Create(bad).status(),
        StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr(bad)))
        << bad;
  }
}

}  // namespace
}  // namespace sluice
