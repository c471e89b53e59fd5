#include "sluice/train/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "absl/strings/str_split.h"
#include "sluice/base/mutex.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/train/step_timer.h"
#include "sluice/train/testing/fake_clock.h"
#include "sluice/train/testing/scenarios.h"

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

// tests/scenarios/README.md says what a line holds.
void PlayCoordinator(const std::vector<std::string>& fields) {
  ASSERT_EQ(fields.size(), 5u);
  Coordinator coordinator;
  auto release = std::make_shared<Notification>();
  const std::vector<std::string> kinds = absl::StrSplit(fields[1], ' ');
  for (const std::string& kind : kinds) {
    if (kind == "-") continue;
    coordinator.Start(kind, [coordinator, release, kind]() -> absl::Status {
      if (kind == "ok") return absl::OkStatus();
      if (kind == "waits") {
        coordinator.WaitForStop(Seconds(60));
        return absl::OkStatus();
      }
      if (kind != "stubborn") return ScenarioError(kind);
      release->Wait();
      return absl::OkStatus();
    });
  }
  const std::vector<std::string> acts = absl::StrSplit(fields[2], ", ");
  for (const std::string& act : acts) {
    if (act == "stop") coordinator.RequestStop();
    if (act == "clear") coordinator.ClearStop();
    if (act.starts_with("error ")) {
      coordinator.RequestStop(ScenarioError(act.substr(6)));
    }
  }
  const bool stubborn = fields[1] == "stubborn";
  const absl::Status joined = coordinator.Join(Seconds(stubborn ? 0.01 : 60));
  const std::string code(absl::StatusCodeToString(joined.code()));
  const std::string& result = fields[4];
  if (result.starts_with("still")) {
    EXPECT_THAT(std::string(joined.message()), testing::EndsWith(result));
  } else {
    EXPECT_EQ(code, result);
  }
  release->Notify();
  EXPECT_TRUE(coordinator.JoinFor(Seconds(60)));
  EXPECT_EQ(coordinator.ShouldStop(), fields[3] == "yes");
}

TEST(Coordinator, PlaysTheScenariosOfPython) {
  for (const std::vector<std::string>& fields : ScenarioTable("coordinator")) {
    SCOPED_TRACE(fields[0]);
    PlayCoordinator(fields);
  }
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
