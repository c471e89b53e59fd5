#include "tests/simulation/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/kernel/testing/op_test.h"
#include "sluice/rpc/remote_worker.h"
#include "tests/simulation/task.h"

namespace sluice::sim {
namespace {

constexpr char kTask[] = "/job:a/replica:0/task:0";
constexpr char kAsker[] = "/job:b/replica:0/task:0";

class SimulatedNetwork : public testing::Test {
 protected:
  SimulatedNetwork() {
    task_.Start();
    // Minutes pass here.
    task_.StopHousekeeping();
    worker_ = *MakeRemoteWorker(
        {kTask, "a:1"}, {kAsker, "b:1"}, [this](const std::string& address) {
          return network_.Connect("b:1", kOutside, address);
        });
  }
  ~SimulatedNetwork() override {
    if (task_.up()) SLUICE_EXPECT_OK(task_.Kill());
  }

  void RunFor(nanoseconds time) {
    const SteadyTime until = scheduler_.Now() + time;
    while (scheduler_.RunOne(until)) {
    }
  }
  // What a call tells that is over within a minute.
  absl::Status Result(absl::FunctionRef<void(WorkerInterface::Done)> start) {
    absl::Status result = Unknown("no answer");
    start([&](absl::Status status) { result = std::move(status); });
    RunFor(seconds(60));
    return result;
  }
  absl::Status Open(const std::string& handle = "s") {
    return Result(
        [&](auto done) { worker_->CreateSession({handle}, std::move(done)); });
  }
  absl::Status Close(const std::string& handle = "s") {
    return Result(
        [&](auto done) { worker_->DeleteSession(handle, std::move(done)); });
  }

  const Addresses addresses_ = {{kTask, "a:1"}, {kAsker, "b:1"}};
  Trace trace_{/*keep=*/false};
  Scheduler scheduler_{/*seed=*/1};
  Network network_{scheduler_, trace_};
  Task task_{scheduler_, network_, addresses_, kTask};
  std::shared_ptr<PeerWorker> worker_;
};

TEST_F(SimulatedNetwork, ATaskThatIsGoneRefusesAndComesBackWithoutItsSessions) {
  SLUICE_ASSERT_OK(Open());
  EXPECT_EQ(task_.worker().num_sessions(), 1);
  SLUICE_ASSERT_OK(task_.Kill());
  EXPECT_TRUE(absl::IsUnavailable(Open()));
  task_.Start();
  SLUICE_EXPECT_OK(Open());
}

TEST_F(SimulatedNetwork, ALinkThatIsCutForLongBreaksItsCalls) {
  network_.Cut("a:1", "b:1");
  EXPECT_TRUE(absl::IsUnavailable(Open()));
  network_.Heal("a:1", "b:1");
  SLUICE_EXPECT_OK(Open());
}

TEST_F(SimulatedNetwork, ALinkThatIsCutForShortDelaysItsCalls) {
  network_.Cut("a:1", "b:1");
  scheduler_.After(seconds(5), kOutside,
                   [this] { network_.Heal("a:1", "b:1"); });
  SLUICE_EXPECT_OK(Open());
}

TEST_F(SimulatedNetwork, ACallHasNoAnswerButItsOwn) {
  network_.weather.duplicate = 1;
  for (int i = 0; i < 20; ++i) {
    SLUICE_EXPECT_OK(Open(StrCat(i)));
    SLUICE_EXPECT_OK(Close(StrCat(i)));
  }
  EXPECT_EQ(network_.num_open_calls(), 0u);
}

// A promise of the stubs, seen from here: the clock is ours.
TEST_F(SimulatedNetwork, APeerThatDidNotHearOfAnEndIsToldAgain) {
  SLUICE_ASSERT_OK(Open());
  network_.Cut("a:1", "b:1");
  EXPECT_FALSE(Close().ok());
  EXPECT_EQ(task_.worker().num_sessions(), 1);
  network_.Heal("a:1", "b:1");
  RunFor(seconds(60));
  EXPECT_EQ(task_.worker().num_sessions(), 0);
  EXPECT_EQ(scheduler_.num_events(), 0u);
}

}  // namespace
}  // namespace sluice::sim
