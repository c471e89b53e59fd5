#include "sluice/rpc/session_uses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/kernel/testing/op_test.h"
#include "sluice/proto/task_status.pb.h"
#include "sluice/rpc/client_call.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/testing/local_call.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

class SessionUsesTest : public testing::Test {
 protected:
  SessionUsesTest() {
    uses_.Add("s", "ipv4:10.0.0.1:4711", [this] { ++ended_; });
  }
  static std::shared_ptr<LocalCall> HoldCall() {
    return std::make_shared<LocalCall>(paths::kHold, pb::HoldRequest());
  }
  // As if so much time had passed.
  void CollectAfter(std::chrono::seconds time, bool connected = false) {
    uses_.Collect({}, CoarseNow() + time,
                  [=](const std::string&) { return connected; });
  }

  SessionUses uses_;
  int ended_ = 0;
};

TEST_F(SessionUsesTest, ASessionThatIsHeldStaysHoweverLittleItIsUsed) {
  auto call = HoldCall();
  ASSERT_TRUE(uses_.Hold("s", call));
  CollectAfter(hours(1000));
  EXPECT_EQ(ended_, 0);
  EXPECT_EQ(call->answers(), 0);
}

TEST_F(SessionUsesTest, ASessionWhoseHolderDiedIsEndedAfterAGrace) {
  auto call = HoldCall();
  ASSERT_TRUE(uses_.Hold("s", call));
  call->Cancel();
  CollectAfter(minutes(1));
  EXPECT_EQ(ended_, 0);
  CollectAfter(minutes(3));
  EXPECT_EQ(ended_, 1);
  EXPECT_EQ(uses_.Find("s"), nullptr);
  CollectAfter(minutes(3));
  EXPECT_EQ(ended_, 1);
}

TEST_F(SessionUsesTest, AHolderMayComeBack) {
  auto first = HoldCall();
  ASSERT_TRUE(uses_.Hold("s", first));
  first->Cancel();
  ASSERT_TRUE(uses_.Hold("s", HoldCall()));
  CollectAfter(hours(1000));
  EXPECT_EQ(ended_, 0);
}

// Its call may have broken without its connection.
TEST_F(SessionUsesTest, AHolderThatUsesItsSessionIsThere) {
  auto call = HoldCall();
  ASSERT_TRUE(uses_.Hold("s", call));
  call->Cancel();
  uses_.Find("s")->Touch(CoarseNow() + minutes(2));
  CollectAfter(minutes(3));
  EXPECT_EQ(ended_, 0);
  CollectAfter(minutes(5));
  EXPECT_EQ(ended_, 1);
}

TEST_F(SessionUsesTest, AStepKeepsASession) {
  auto call = HoldCall();
  ASSERT_TRUE(uses_.Hold("s", call));
  call->Cancel();
  uses_.Find("s")->BeginStep(7);
  CollectAfter(hours(1));
  EXPECT_EQ(ended_, 0);
  uses_.Find("s")->EndStep(7);
  CollectAfter(hours(1));
  EXPECT_EQ(ended_, 1);
}

TEST_F(SessionUsesTest, WhoHoldsNothingIsGoneOnlyWithoutConnectionAndUse) {
  CollectAfter(hours(1), /*connected=*/false);
  EXPECT_EQ(ended_, 0);
  CollectAfter(hours(1000), /*connected=*/true);
  EXPECT_EQ(ended_, 0);
  CollectAfter(hours(1000), /*connected=*/false);
  EXPECT_EQ(ended_, 1);
}

// Looking for its connection takes a while.
TEST_F(SessionUsesTest, AHolderThatComesMeanwhileKeepsTheSession) {
  auto call = HoldCall();
  uses_.Collect({}, CoarseNow() + hours(1000), [&](const std::string&) {
    EXPECT_TRUE(uses_.Hold("s", call));
    return false;
  });
  EXPECT_EQ(ended_, 0);
  EXPECT_EQ(call->answers(), 0);
}

TEST_F(SessionUsesTest, HoldersHearOfTheEndOfTheirSession) {
  auto call = HoldCall();
  ASSERT_TRUE(uses_.Hold("s", call));
  uses_.Remove("s");
  pb::HoldResponse response;
  SLUICE_EXPECT_OK(call->Take(&response));
  EXPECT_FALSE(uses_.Hold("s", HoldCall()));
  EXPECT_EQ(ended_, 0);
}

// Serves one call of a client and says who it was.
std::string PeerOfACall(const std::string& listen, const std::string& host) {
  std::string peer;
  Notification handled;
  GenericServer::Options options;
  options.address = listen;
  options.handler = [&](const std::shared_ptr<ServerCall>& call) {
    peer = call->peer();
    EXPECT_TRUE(ConnectedPeers().contains(peer)) << peer;
    call->Reply(*ToByteBuffer(pb::HoldResponse()));
    handled.Notify();
  };
  auto server = GenericServer::Start(std::move(options));
  if (!server.ok()) return "";
  auto channel = *RpcChannel::Create(StrCat(host, ":", (*server)->port()));
  Notification answered;
  channel->Call("/any", *ToByteBuffer(pb::HoldRequest()), {},
                [&](const absl::Status&, const auto&) { answered.Notify(); });
  answered.Wait();
  handled.Wait();
  return peer;
}

TEST(ConnectedPeers, AreNamedAsGrpcNamesThem) {
  EXPECT_THAT(PeerOfACall("127.0.0.1:0", "127.0.0.1"),
              testing::StartsWith("ipv4:127.0.0.1:"));
  // One socket for both families.
  EXPECT_THAT(PeerOfACall("[::]:0", "127.0.0.1"),
              testing::StartsWith("ipv4:127.0.0.1:"));
  // Not every machine has it.
  EXPECT_THAT(PeerOfACall("[::1]:0", "[::1]"),
              testing::AnyOf("", testing::StartsWith("ipv6:")));
  EXPECT_FALSE(ConnectedPeers().contains("ipv4:127.0.0.1:1"));
}

}  // namespace
}  // namespace sluice
