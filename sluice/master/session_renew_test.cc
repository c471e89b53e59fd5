// Sessions one of whose tasks is restarted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/graph/scope.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/master/master.h"
#include "sluice/master/testing/fake_worker.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A session of /job:a's master, which uses /job:b too.
class RestartTest : public testing::Test {
 protected:
  RestartTest() {
    MasterEnv env;
    env.workers = workers_;
    env.own_task = "/job:a/replica:0/task:0";
    master_ = std::make_unique<Master>(env, SessionOptions());
    master_->CreateSession(
        {}, nullptr,
        [&](absl::StatusOr<std::shared_ptr<MasterSession>> session) {
          session_ = *std::move(session);
        });
    SLUICE_EXPECT_OK(session_->Extend([](Graph& graph) {
      Scope scope(graph);
      scope.Device("/job:a").Named("on_a").AddNode("NoOp", {});
      const Scope b = scope.Device("/job:b");
      b.Named("on_b").AddNode("NoOp", {});
      b.Named("also_on_b").AddNode("NoOp", {});
      const Output shape = b.Const(Tensor::Vector<int32_t>({2, 2}));
      for (int64_t seed : {0, 7}) {
        b.Named(seed == 0 ? "random" : "seeded")
            .AddNode("RandomUniform", {shape},
                     {{"dtype", DType::kFloat}, {"seed", seed}});
      }
      b.Named("queue").AddNode(
          "FIFOQueueV2", {},
          {{"component_types", std::vector<DType>{DType::kFloat}}});
      return scope.status();
    }));
  }
  ~RestartTest() override {
    session_->Close(ClosedByClient(), [](absl::Status) {});
    EXPECT_THAT(b_.sessions, IsEmpty());
  }

  using PlanPtr = std::shared_ptr<const StepPlan>;
  PlanPtr Plan(const std::string& target) {
    auto plan = session_->Plan({{}, {}, {"on_a", target}});
    SLUICE_EXPECT_OK(plan.status());
    return plan.ok() ? *plan : nullptr;
  }
  // The same task in another process: it knows of nothing.
  void RestartB() {
    ++b_.incarnation;
    b_.sessions.clear();
  }
  // A step in which b answers so.
  absl::Status Run(const PlanPtr& plan, const absl::Status& of_b) {
    absl::Status result = absl::UnknownError("runs");
    session_->Run(plan, {}, [&](absl::Status status) { result = status; });
    b_.AnswerSteps(of_b);
    (*workers_)["a"].AnswerSteps(absl::OkStatus());
    return result;
  }

  const absl::Status restarted_ = absl::AbortedError(
      "Session handle is not found: 1. Possibly this worker (\"/job:b\") just "
      "restarted.");
  const absl::Status lost_ = absl::UnavailableError("Socket closed");
  std::shared_ptr<FakeWorkers> workers_ =
      std::make_shared<FakeWorkers>(std::vector<std::string>{"a", "b"});
  FakeWorker& b_ = (*workers_)["b"];
  std::unique_ptr<Master> master_;
  std::shared_ptr<MasterSession> session_;
};

TEST_F(RestartTest, ATaskThatKeptNothingIsTakenInAgain) {
  const PlanPtr old = Plan("on_b");
  const PlanPtr other = Plan("also_on_b");
  SLUICE_EXPECT_OK(Run(old, absl::OkStatus()));
  RestartB();
  EXPECT_THAT(Run(old, restarted_),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("restarted")));
  // Only that step has failed. All plans of the task are made anew.
  EXPECT_TRUE(MasterSession::IsDoubtful(*old));
  EXPECT_EQ(session_->FindPlan({{}, {}, {"on_a", "on_b"}}), nullptr);
  const int before = b_.registered;
  const PlanPtr renewed = Plan("on_b");
  EXPECT_NE(renewed, old);
  EXPECT_THAT(b_.sessions, ElementsAre(session_->handle()));
  EXPECT_EQ(b_.registered, before + 1);
  EXPECT_TRUE(MasterSession::IsDoubtful(*other));
  EXPECT_NE(Plan("also_on_b"), other);
  SLUICE_EXPECT_OK(Run(renewed, absl::OkStatus()));
  EXPECT_EQ(Plan("on_b"), renewed);
}

TEST_F(RestartTest, AStepAfterTheLossFindsOut) {
  const PlanPtr old = Plan("on_b");
  EXPECT_THAT(Run(old, lost_),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("closed")));
  // As long as it is away nothing changes.
  b_.refuses_status = lost_;
  EXPECT_EQ(Plan("on_b"), old);
  EXPECT_THAT(Run(old, lost_),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("closed")));
  b_.refuses_status = absl::OkStatus();
  RestartB();
  const PlanPtr renewed = Plan("on_b");
  EXPECT_NE(renewed, old);
  SLUICE_EXPECT_OK(Run(renewed, absl::OkStatus()));
}

TEST_F(RestartTest, ATaskThatWasOnlyOutOfReachIsTheSame) {
  const PlanPtr plan = Plan("queue");
  EXPECT_THAT(Run(plan, lost_),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("closed")));
  EXPECT_EQ(Plan("queue"), plan);
  EXPECT_FALSE(MasterSession::IsDoubtful(*plan));
  EXPECT_THAT(b_.sessions, ElementsAre(session_->handle()));
}

TEST_F(RestartTest, APlanIsMadeAnewWhenItsTaskRestartsMeanwhile) {
  RestartB();
  b_.register_status = restarted_;
  SLUICE_EXPECT_OK(Run(Plan("on_b"), absl::OkStatus()));
  EXPECT_THAT(b_.sessions, ElementsAre(session_->handle()));
}

TEST_F(RestartTest, RandomNumbersThatNeedNotRepeatAreNothingKept) {
  const PlanPtr old = Plan("random");
  RestartB();
  EXPECT_FALSE(Run(old, restarted_).ok());
  SLUICE_EXPECT_OK(Run(Plan("random"), absl::OkStatus()));
  EXPECT_THAT(b_.sessions, ElementsAre(session_->handle()));
}

TEST_F(RestartTest, ATaskThatIsLeftOutLosesItsSessionToo) {
  // It said what it has in one life and took the session in the next.
  const PlanPtr plan = Plan("on_b");
  ++b_.incarnation;
  EXPECT_FALSE(Run(plan, restarted_).ok());
  b_.answers_status = false;
  Notification ended;
  session_->PlanAsync({{}, {}, {"on_a", "on_b"}},
                      [&](auto) { ended.Notify(); });
  b_.AnswerStatus(std::vector<DeviceInfo>{b_.device()});
  // Now it is left out until it answers again, which it does not.
  EXPECT_THAT(b_.sessions, ElementsAre(session_->handle()));
  session_->Close(ClosedByClient(), [](absl::Status) {});
  EXPECT_THAT(b_.sessions, IsEmpty());
  ASSERT_TRUE(ended.WaitFor(std::chrono::seconds(60)));
}

class KeptStateTest : public RestartTest,
                      public testing::WithParamInterface<const char*> {};

TEST_P(KeptStateTest, StaysLostWithItsTask) {
  const PlanPtr old = Plan("on_b");
  Plan(GetParam());
  RestartB();
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Run(old, restarted_),
                StatusIs(absl::StatusCode::kAborted, HasSubstr("restarted")));
    EXPECT_EQ(Plan("on_b"), old);
  }
  EXPECT_THAT(b_.sessions, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(All, KeptStateTest,
                         testing::Values("queue", "seeded"));

}  // namespace
}  // namespace sluice
