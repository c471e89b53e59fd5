#include "sluice/rpc/recent_ids.h"

#include <gtest/gtest.h>

#include "sluice/base/testing/virtual_time.h"

namespace sluice {
namespace {

TEST(RecentIds, NoticesARepetition) {
  RecentIds ids;
  EXPECT_TRUE(ids.Add(1));
  EXPECT_TRUE(ids.Add(2));
  EXPECT_FALSE(ids.Add(1));
}

// Adds those from `first` to `last`; false if one was seen.
bool AddAll(RecentIds& ids, int64_t first, int64_t last) {
  bool added = true;
  for (int64_t id = first; id <= last; ++id) added &= ids.Add(id);
  return added;
}

TEST(RecentIds, ForgetsTheOldest) {
  RecentIds ids(IdsKept{.time = std::chrono::seconds(0), .least = 2});
  EXPECT_TRUE(AddAll(ids, 1, 6));
  EXPECT_FALSE(ids.Add(6));
  EXPECT_FALSE(ids.Add(5));
  EXPECT_TRUE(ids.Add(1));
}

// A client that lost its connection in silence comes back after half a minute.
TEST(RecentIds, RemembersForAMinuteHoweverManyCome) {
  VirtualTime time;
  RecentIds ids;
  EXPECT_TRUE(AddAll(ids, 1, 300'000));
  time.Pass(std::chrono::seconds(59));
  EXPECT_TRUE(AddAll(ids, 300'001, 600'000));
  EXPECT_FALSE(ids.Add(1));
}

TEST(RecentIds, ForgetsAfterAWhileWhenManyCome) {
  VirtualTime time;
  RecentIds ids(IdsKept{.least = 2});
  for (const int64_t first : {1, 11, 21}) {
    EXPECT_TRUE(AddAll(ids, first, first + 9));
    time.Pass(std::chrono::seconds(61));
  }
  EXPECT_FALSE(ids.Add(30));
  EXPECT_TRUE(ids.Add(1));
}

TEST(RecentIds, AnIdleTaskForgetsNothing) {
  VirtualTime time;
  RecentIds ids(IdsKept{.least = 2});
  EXPECT_TRUE(ids.Add(1));
  time.Pass(std::chrono::hours(1));
  EXPECT_FALSE(ids.Add(1));
}

TEST(RecentIds, HowManyAreRememberedHasABound) {
  VirtualTime time;
  RecentIds ids(IdsKept{.least = 2, .most = 8});
  EXPECT_TRUE(AddAll(ids, 1, 9));
  EXPECT_FALSE(ids.Add(9));
  EXPECT_FALSE(ids.Add(5));
  EXPECT_TRUE(ids.Add(1));
}

// It is remembered from then on.
TEST(RecentIds, ARepetitionCountsAsTheLatest) {
  RecentIds ids(IdsKept{.time = std::chrono::seconds(0), .least = 2});
  EXPECT_TRUE(AddAll(ids, 1, 3));
  EXPECT_FALSE(ids.Add(1));
  EXPECT_TRUE(AddAll(ids, 4, 4));
  EXPECT_FALSE(ids.Add(1));
  EXPECT_TRUE(ids.Add(2));
}

TEST(RecentIds, ZeroIsNoId) {
  RecentIds ids;
  EXPECT_TRUE(ids.Add(0));
  EXPECT_TRUE(ids.Add(0));
}

}  // namespace
}  // namespace sluice
