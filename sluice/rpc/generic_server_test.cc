#include "sluice/rpc/generic_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/mutex.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/client_call.h"

namespace sluice {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

// A server, a channel to it, and the calls it was given.
class GenericServerTest : public testing::Test {
 protected:
  void Serve(CallHandler handler) {
    GenericServer::Options options;
    options.address = "localhost:0";
    options.handler = std::move(handler);
    server_ = *GenericServer::Start(std::move(options));
    channel_ = *RpcChannel::Create(StrCat("localhost:", server_->port()));
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
    auto answer = std::make_shared<Answer>();
    options.wait_for_ready = true;
    channel_->Call(path, ToByteBuffer(pb::GetStatusRequest()), options,
                   [answer](absl::Status status, grpc::ByteBuffer bytes) {
                     answer->status = std::move(status);
                     answer->bytes = std::move(bytes);
                     answer->done.Notify();
                   });
    return answer;
  }

  std::unique_ptr<GenericServer> server_;
  std::shared_ptr<RpcChannel> channel_;
  Mutex mu_;
  CondVar arrived_;
  std::vector<std::shared_ptr<ServerCall>> calls_ SLUICE_GUARDED_BY(mu_);
};

TEST_F(GenericServerTest, HandsOverThePathAndReturnsTheAnswer) {
  Serve([](std::shared_ptr<ServerCall> call) {
    if (call->path() == "/a/B") {
      pb::RegisterGraphResponse response;
      response.set_graph_handle("h");
      call->Reply(ToByteBuffer(response));
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

TEST_F(GenericServerTest, ThousandsOfCallsMayWait) {
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

TEST_F(GenericServerTest, AClientThatGoesAwayIsTold) {
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

TEST_F(GenericServerTest, ADeadlineEndsTheCall) {
  ServeLater();
  RpcChannel::Options options;
  options.deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  auto answer = Call("/a/B", options);
  EXPECT_TRUE(absl::IsDeadlineExceeded(answer->Wait()));
  if (auto call = WaitForCall()) call->Fail(absl::OkStatus());
}

TEST_F(GenericServerTest, ShutdownEndsCallsThatWaitAndLaterAnswersAreHarmless) {
  ServeLater();
  auto answer = Call("/a/B");
  auto call = WaitForCall();
  ASSERT_NE(call, nullptr);
  std::weak_ptr<ServerCall> watch = call;
  server_->Shutdown();
  EXPECT_FALSE(answer->Wait().ok());
  call->Reply(ToByteBuffer(pb::GetStatusResponse()));
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
