#include "sluice/rpc/recent_ids.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(RecentIds, NoticesARepetition) {
  RecentIds ids(10);
  EXPECT_TRUE(ids.Add(1));
  EXPECT_TRUE(ids.Add(2));
  EXPECT_FALSE(ids.Add(1));
}

TEST(RecentIds, ForgetsTheOldest) {
  RecentIds ids(2);
  for (int64_t id : {1, 2, 3}) EXPECT_TRUE(ids.Add(id));
  EXPECT_FALSE(ids.Add(3));
  EXPECT_FALSE(ids.Add(2));
  EXPECT_TRUE(ids.Add(1));
}

TEST(RecentIds, ZeroIsNoId) {
  RecentIds ids(2);
  EXPECT_TRUE(ids.Add(0));
  EXPECT_TRUE(ids.Add(0));
}

}  // namespace
}  // namespace sluice
