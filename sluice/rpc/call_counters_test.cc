#include "sluice/rpc/call_counters.h"

#include <gtest/gtest.h>

#include "sluice/rpc/paths.h"

namespace sluice {
namespace {

TEST(CallCounters, CountByMethodAndListWhatWasCalled) {
  CallCounters counters;
  EXPECT_TRUE(counters.List().empty());
  counters.Of(paths::kRunGraph).calls += 2;
  counters.Of(paths::kRunGraph).request_bytes += 10;
  counters.Of("/somebody.Else/Calls").calls += 1;
  counters.Of("/somebody.Else/CallsAgain").calls += 1;
  const std::vector<CallCounters::Method> list = counters.List();
  ASSERT_EQ(list.size(), 2);
  EXPECT_EQ(list[0].name, "RunGraph");
  EXPECT_EQ(list[0].calls, 2);
  EXPECT_EQ(list[0].request_bytes, 10);
  EXPECT_EQ(list[1].name, "others");
  EXPECT_EQ(list[1].calls, 2);
}

}  // namespace
}  // namespace sluice
