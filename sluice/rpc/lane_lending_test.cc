// Tensors that a lane lends instead of sending them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "sluice/base/mutex.h"
#include "sluice/base/testing/eventually.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/generic_server.h"
#include "sluice/rpc/lane_channel.h"
#include "sluice/rpc/lane_socket.h"
#include "sluice/rpc/testing/lane_only.h"
#include "sluice/rpc/testing/raw_peer.h"
#include "sluice/tensor/buffer.h"

namespace sluice {
namespace {

constexpr auto kLendingPatience = std::chrono::seconds(60);

// The server lends a tensor to whoever asks.
class LendingTest : public testing::Test {
 protected:
  LendingTest() {
    GenericServer::Options options;
    options.address = "localhost:0";
    options.lane = NewLaneName();
    options.handler = [this](const std::shared_ptr<ServerCall>& call) {
      if (call->path() == "/empty") {
        call->Reply({});
      } else {
        call->Reply(*EncodeRecvTensor(tensor_, false, 0));
      }
    };
    lane_ = options.lane;
    server_ = *GenericServer::Start(std::move(options));
    channel_ = LaneOnly::Connect(lane_);
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
    EXPECT_TRUE(done.WaitFor(kLendingPatience));
    return received;
  }

  std::string lane_;
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

TEST_F(LendingTest, TheClientGetsADescriptorToReadOnly) {
  const RawPeer peer(lane_);
  peer.Say(Hello());
  LaneHeader hello;
  iovec bytes = {&hello, sizeof(hello)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ASSERT_TRUE(Eventually([&] { return peer.Hear(&message) > 0; }));
  const cmsghdr* const part = CMSG_FIRSTHDR(&message);
  ASSERT_NE(part, nullptr);
  int fd;
  std::memcpy(&fd, CMSG_DATA(part), sizeof(int));
  EXPECT_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
  close(fd);
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
  Tensor lent = Receive();
  ASSERT_TRUE(lent.initialized());
  channel_->lane().Close(absl::UnavailableError("broken"));
  server_ = nullptr;
  // Its reader is this process, which reads on: nobody may write to it.
  EXPECT_FALSE(tensor_.unique());
  EXPECT_EQ(lent.data<float>()[7], 5);
  lent = Tensor();
  EXPECT_TRUE(Eventually([&] { return tensor_.unique(); }));
}

TEST_F(LendingTest, AForkedChildReturnsNothing) {
  ASSERT_NE(channel_, nullptr);
  Tensor lent = Receive();
  ASSERT_TRUE(lent.buffer()->borrowed());
  const pid_t child = fork();
  if (child == 0) {
    lent = Tensor();
    channel_ = nullptr;
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  // The server has read what the child may have sent when this is answered.
  Notification done;
  absl::Status ended;
  channel_->Call("/empty", pb::GetStatusRequest(), {},
                 [&](absl::Status end, const grpc::ByteBuffer&) {
                   ended = std::move(end);
                   done.Notify();
                 });
  ASSERT_TRUE(done.WaitFor(kLendingPatience));
  SLUICE_EXPECT_OK(ended);
  EXPECT_FALSE(tensor_.unique());
  lent = Tensor();
  EXPECT_TRUE(Eventually([&] { return tensor_.unique(); }));
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
    EXPECT_TRUE(done.WaitFor(kLendingPatience));
  }
  Receive();
  EXPECT_TRUE(Eventually([&] { return tensor_.unique(); }));
}

}  // namespace
}  // namespace sluice
