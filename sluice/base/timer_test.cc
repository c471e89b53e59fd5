#include "sluice/base/timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "sluice/base/mutex.h"
#include "sluice/base/simulation.h"

namespace sluice {
namespace {

TEST(CallLater, CallsInTheOrderOfTimeAndNotBefore) {
  const SteadyTime begin = RealClock().Now();
  std::vector<int> order;
  Notification done;
  CallLater(std::chrono::milliseconds(20), [&] {
    order.push_back(2);
    EXPECT_GE(RealClock().Now() - begin, std::chrono::milliseconds(20));
    done.Notify();
  });
  CallLater(std::chrono::milliseconds(1), [&] { order.push_back(1); });
  ASSERT_TRUE(done.WaitFor(std::chrono::seconds(60)));
  EXPECT_THAT(order, testing::ElementsAre(1, 2));
}

TEST(CallLater, ACallbackMayAskForAnother) {
  Notification done;
  CallLater(std::chrono::milliseconds(1), [&] {
    CallLater(std::chrono::milliseconds(1), [&] { done.Notify(); });
  });
  EXPECT_TRUE(done.WaitFor(std::chrono::seconds(60)));
}

}  // namespace
}  // namespace sluice
