#include "sluice/rpc/lease.h"

#include <gtest/gtest.h>

#include <vector>

#include "sluice/base/status.h"
#include "sluice/base/testing/virtual_time.h"
#include "sluice/proto/task_status.pb.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/testing/local_channel.h"

namespace sluice {
namespace {

using absl::StatusCode;
using std::chrono::hours;
using std::chrono::seconds;

class LeaseTest : public testing::Test {
 protected:
  LeaseTest() {
    handlers_->Set("a:1", [this](std::shared_ptr<ServerCall> call) {
      pb::HoldRequest request;
      EXPECT_EQ(call->path(), paths::kHold);
      EXPECT_TRUE(FromByteBuffer(&call->request(), &request));
      EXPECT_EQ(request.session_handle(), "s");
      calls_.push_back(std::move(call));
    });
  }
  std::unique_ptr<Lease> Take() {
    auto channel = std::make_shared<LocalChannel>(handlers_, "a:1");
    channel_ = channel;
    return std::make_unique<Lease>(std::move(channel), "s");
  }
  // Ends the call that is open.
  void Answer(StatusCode code) {
    if (code == StatusCode::kOk) {
      calls_.back()->Reply(*ToByteBuffer(pb::HoldResponse()));
    } else {
      calls_.back()->Fail(absl::Status(code, "why"));
    }
  }

  VirtualTime time_;
  const std::shared_ptr<LocalHandlers> handlers_ =
      std::make_shared<LocalHandlers>();
  std::weak_ptr<RpcChannel> channel_;
  std::vector<std::shared_ptr<ServerCall>> calls_;
};

TEST_F(LeaseTest, IsTakenAgainWhateverBrokeIt) {
  const auto lease = Take();
  size_t taken = 1;
  for (const StatusCode code :
       {StatusCode::kUnavailable, StatusCode::kResourceExhausted,
        StatusCode::kInternal, StatusCode::kCancelled, StatusCode::kUnknown,
        StatusCode::kDeadlineExceeded, StatusCode::kUnauthenticated}) {
    ASSERT_EQ(calls_.size(), taken);
    Answer(code);
    time_.Pass(seconds(60));
    EXPECT_EQ(calls_.size(), ++taken) << code;
  }
}

TEST_F(LeaseTest, IsOverWhenTheServerSaysSo) {
  for (const StatusCode code :
       {StatusCode::kOk, StatusCode::kAborted, StatusCode::kNotFound,
        StatusCode::kUnimplemented, StatusCode::kInvalidArgument,
        StatusCode::kPermissionDenied}) {
    calls_.clear();
    const auto lease = Take();
    Answer(code);
    time_.Pass(hours(1));
    EXPECT_EQ(calls_.size(), 1) << code;
  }
}

// A server that is short of something has no use for more calls.
TEST_F(LeaseTest, IsNotTakenInARush) {
  int calls = 0;
  handlers_->Set("a:1", [&](const std::shared_ptr<ServerCall>& call) {
    ++calls;
    call->Fail(ResourceExhausted("no memory"));
  });
  const auto lease = Take();
  time_.Pass(seconds(100));
  EXPECT_GE(calls, 2);
  EXPECT_LE(calls, 10);
}

TEST_F(LeaseTest, EndsWithItsObject) {
  for (const bool broken : {false, true}) {
    calls_.clear();
    auto lease = Take();
    bool heard = false;
    calls_[0]->OnCancel([&] { heard = true; });
    if (broken) Answer(StatusCode::kInternal);
    lease = nullptr;
    // At once, if no timer runs.
    time_.Pass(broken ? seconds(60) : seconds(0));
    EXPECT_TRUE(channel_.expired());
    EXPECT_EQ(heard, !broken);
    time_.Pass(hours(1));
    EXPECT_EQ(calls_.size(), 1);
  }
}

}  // namespace
}  // namespace sluice
