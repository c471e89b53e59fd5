#include "sluice/kernel/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

std::vector<std::string> Whats(const WaitTable& table) {
  std::vector<std::string> names;
  for (const WaitInfo& wait : table.List()) names.push_back(wait.what);
  return names;
}

TEST(WaitTable, ListsWhatIsWaitedForInTheOrderItBegan) {
  WaitTable table;
  const auto a = table.Add({"a", "here", 1, {}});
  const auto b = table.Add({"b", "there", 2, {}});
  table.Add({"c", "there", 2, {}});
  table.Remove(b);
  EXPECT_THAT(Whats(table), testing::ElementsAre("a", "c"));
  table.Remove(b);  // Again: nothing happens.
  table.Remove(a);
  table.Add({"d", "there", 2, {}});
  EXPECT_THAT(Whats(table), testing::ElementsAre("c", "d"));
  EXPECT_EQ(table.List()[0].where, "there");
  EXPECT_EQ(table.List()[0].step_id, 2);
}

TEST(StepStatsCollector, GathersNodesByDevice) {
  StepStatsCollector collector;
  NodeStats node;
  for (const auto& [device, name] :
       {std::pair{"cpu0", "a"}, {"cpu1", "b"}, {"cpu0", "c"}}) {
    node.node = name;
    collector.Add(device, node);
  }
  const auto devices = collector.Take();
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].device, "cpu0");
  ASSERT_EQ(devices[0].nodes.size(), 2u);
  EXPECT_EQ(devices[0].nodes[1].node, "c");
  EXPECT_TRUE(collector.Take().empty());
}

TEST(StepStatsCollector, HasABound) {
  StepStatsCollector collector(/*most_nodes=*/2);
  EXPECT_FALSE(collector.full());
  collector.Add("cpu0", {});
  collector.Add("cpu1", {});
  EXPECT_TRUE(collector.full());
  collector.Add("cpu1", {});
  collector.Add("cpu2", {});
  const auto devices = collector.Take();
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[1].nodes.size(), 1u);
}

TEST(DeadFetch, IsKnownAgain) {
  EXPECT_EQ(DeadFetch(3).message(), "Retval[3] does not have value");
  EXPECT_EQ(DeadFetchOf(DeadFetch(3)), 3);
  EXPECT_EQ(
      DeadFetchOf(absl::InvalidArgumentError("Retval[3] does not have value")),
      std::nullopt);
}

}  // namespace
}  // namespace sluice
