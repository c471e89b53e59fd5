#include "sluice/train/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "sluice/base/mutex.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/train/step_timer.h"
#include "sluice/train/testing/fake_clock.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using Seconds = Coordinator::Seconds;

TEST(Coordinator, AnErrorOfOneThreadStopsAll) {
  Coordinator coordinator;
  coordinator.Start("waits", [&] {
    EXPECT_TRUE(coordinator.WaitForStop(Seconds(60)));
    return absl::InternalError("only a consequence");
  });
  coordinator.Start("fails", [] { return absl::DataLossError("broken"); });
  EXPECT_THAT(coordinator.Join(Seconds(60)),
              StatusIs(absl::StatusCode::kDataLoss, "broken"));
  EXPECT_TRUE(coordinator.ShouldStop());
}

TEST(Coordinator, TheEndOfTheInputIsNoError) {
  Coordinator coordinator;
  coordinator.Start("ends", [] { return absl::OutOfRangeError("done"); });
  SLUICE_EXPECT_OK(coordinator.Join(Seconds(60)));
  EXPECT_TRUE(coordinator.ShouldStop());
}

TEST(Coordinator, NamesThreadsThatDoNotStop) {
  Coordinator coordinator;
  auto release = std::make_shared<Notification>();
  coordinator.Start("stubborn", [release] {
    release->Wait();
    return absl::OkStatus();
  });
  coordinator.RequestStop();
  EXPECT_THAT(coordinator.Join(Seconds(0)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("threads still running: stubborn")));
  SLUICE_EXPECT_OK(coordinator.Join(Seconds(0), true));
  release->Notify();
  SLUICE_EXPECT_OK(coordinator.Join(Seconds(60)));
}

TEST(Coordinator, ALoopRunsUntilAllStop) {
  Coordinator coordinator;
  std::atomic<int> calls = 0;
  coordinator.StartLoop("loop", Seconds(0), [&] {
    if (++calls == 3) coordinator.RequestStop();
    return absl::OkStatus();
  });
  SLUICE_EXPECT_OK(coordinator.Join(Seconds(60)));
  EXPECT_EQ(calls, 3);
}

TEST(StepTimer, TriggersFirstAndThenEverySoManySteps) {
  StepTimer timer(0, 3);
  EXPECT_TRUE(timer.ShouldTrigger(5));
  EXPECT_FALSE(timer.Triggered(5).has_value());
  EXPECT_FALSE(timer.ShouldTrigger(5));
  EXPECT_FALSE(timer.ShouldTrigger(7));
  EXPECT_TRUE(timer.ShouldTrigger(8));
  EXPECT_EQ(timer.Triggered(9)->steps, 4);
}

TEST(StepTimer, TriggersEverySoManySecondsButNotTwiceForOneStep) {
  FakeClock clock;
  StepTimer timer(2, 0, clock);
  timer.Triggered(1);
  clock.SetSeconds(1.999);
  EXPECT_FALSE(timer.ShouldTrigger(2));
  clock.SetSeconds(2);
  EXPECT_FALSE(timer.ShouldTrigger(1));
  EXPECT_TRUE(timer.ShouldTrigger(2));
  EXPECT_EQ(timer.Triggered(2)->seconds, 2.0);
}

}  // namespace
}  // namespace sluice
