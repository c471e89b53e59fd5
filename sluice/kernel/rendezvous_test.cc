#include "sluice/kernel/rendezvous.h"

#include "sluice/base/strings.h"
#include "sluice/kernel/testing/rendezvous_conformance.h"

namespace sluice {
namespace {

RendezvousEnds LocalEnds() {
  auto table = std::make_shared<LocalRendezvous>();
  return {table, table,
          [](const std::string& edge) {
            return StrCat(
                "/job:a/replica:0/task:0/device:CPU:0;1;"
                "/job:a/replica:0/task:0/device:CPU:1;",
                edge, ";0:0");
          },
          nullptr};
}

INSTANTIATE_TEST_SUITE_P(Local, RendezvousConformance,
                         testing::Values(LocalEnds));

TEST(LocalRendezvous, SeveralValuesUnderOneKeyComeInOrder) {
  LocalRendezvous table;
  for (float x : {1, 2}) SLUICE_ASSERT_OK(table.Send("k", {Tensor::Scalar(x)}));
  for (float x : {1, 2}) {
    EXPECT_EQ(StartRecv(table, "k").Wait()->tensor.scalar<float>(), x);
  }
}

TEST(LocalRendezvous, ListsTheKeysThatAreWaitedFor) {
  LocalRendezvous table;
  const PendingRecv recv = StartRecv(table, "k");
  EXPECT_THAT(table.Waiting(), testing::ElementsAre("k"));
  SLUICE_ASSERT_OK(table.Send("k", {}));
  SLUICE_ASSERT_OK(table.Send("unclaimed", {}));
  EXPECT_THAT(table.Waiting(), testing::IsEmpty());
}

TEST(LocalRendezvous, ItsEndIsToldToWhoWaits) {
  auto table = std::make_unique<LocalRendezvous>();
  const PendingRecv recv = StartRecv(*table, "k");
  table = nullptr;
  EXPECT_TRUE(absl::IsCancelled(recv.Wait().status()));
}

TEST(RendezvousKey, IsTakenApart) {
  const std::string prefix = RendezvousKeyPrefix(
      "/job:ps/replica:0/task:1/device:CPU:0", 0xabc,
      "/job:worker/replica:0/task:0/device:CPU:0", "edge_7_w");
  const absl::StatusOr<RendezvousKey> key =
      RendezvousKey::Parse(StrCat(prefix, "12:3"));
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(key->src.job, "ps");
  EXPECT_EQ(key->src_text, "/job:ps/replica:0/task:1/device:CPU:0");
  EXPECT_EQ(key->src_incarnation, 0xabcu);
  EXPECT_EQ(key->dst.job, "worker");
  EXPECT_EQ(key->edge, "edge_7_w");
  EXPECT_EQ(key->frame_and_iter, "12:3");
}

TEST(RendezvousKey, AnythingElseIsAnError) {
  const std::string device = "/job:a/replica:0/task:0/device:CPU:0";
  for (const std::string& bad : {
           std::string(),
           std::string(";;;;"),
           StrCat(device, ";1;", device, ";e"),
           StrCat(device, ";1;", device, ";e;0:0;more"),
           StrCat(device, ";1;", device, ";;0:0"),
           StrCat(device, ";xyz;", device, ";e;0:0"),
           StrCat(device, ";11112222333344445;", device, ";e;0:0"),
           StrCat("/job:a;1;", device, ";e;0:0"),
           StrCat(device, ";1;nowhere;e;0:0"),
       }) {
    EXPECT_THAT(RendezvousKey::Parse(bad).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         testing::HasSubstr("rendezvous key")))
        << bad;
  }
}

}  // namespace
}  // namespace sluice
