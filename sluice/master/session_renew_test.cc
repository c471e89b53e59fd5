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

// A session of /job:a's master, which uses /job:b and /job:c too.
class RestartTest : public testing::Test {
 protected:
  RestartTest() {
    MasterEnv env;
    env.workers = workers_;
    env.own_task = "/job:a/replica:0/task:0";
    b_.cpus = 2;
    master_ = std::make_unique<Master>(env, SessionOptions());
    Open({});
  }
  ~RestartTest() override {
    Close();
    EXPECT_THAT(b_.sessions, IsEmpty());
    EXPECT_THAT(c_.sessions, IsEmpty());
  }

  void Close() {
    session_->Close(ClosedByClient(), [](absl::Status) {});
  }
  void Open(const SessionOptions& options) {
    if (session_ != nullptr) Close();
    master_->CreateSession(
        options, nullptr,
        [&](absl::StatusOr<std::shared_ptr<MasterSession>> session) {
          session_ = *std::move(session);
        });
    SLUICE_EXPECT_OK(session_->Extend([](Graph& graph) {
      Scope scope(graph);
      scope.Device("/job:a").Named("on_a").AddNode("NoOp", {});
      const Scope b = scope.Device("/job:b");
      b.Named("on_b").AddNode("NoOp", {});
      b.Named("also_on_b").AddNode("NoOp", {});
      scope.Device("/job:b/cpu:1").Named("on_cpu_1").AddNode("NoOp", {});
      const Scope c = scope.Device("/job:c");
      c.Named("on_c").AddNode("NoOp", {});
      const Output shape = b.Const(Tensor::Vector<int32_t>({2, 2}));
      for (int64_t seed : {0, 7}) {
        b.Named(seed == 0 ? "random" : "seeded")
            .AddNode("RandomUniform", {shape},
                     {{"dtype", DType::kFloat}, {"seed", seed}});
      }
      const Output number = b.Const(Tensor::Scalar<int32_t>(1));
      b.Named("array").AddNode("TensorArrayV3", {number},
                               {{"dtype", DType::kFloat}});
      b.Named("stack").AddNode("StackV2", {number},
                               {{"elem_type", DType::kFloat}});
      b.Named("assert").AddNode("Assert",
                                {b.Const(Tensor::Scalar<bool>(true)), number},
                                {{"T", std::vector<DType>{DType::kInt32}}});
      for (const Scope* of : {&b, &c}) {
        of->Named(of == &b ? "queue" : "queue_on_c")
            .AddNode("FIFOQueueV2", {},
                     {{"component_types", std::vector<DType>{DType::kFloat}}});
      }
      return scope.status();
    }));
  }

  using PlanPtr = std::shared_ptr<const StepPlan>;
  static StepSignature Signature(std::vector<std::string> targets) {
    targets.push_back("on_a");
    return {{}, {}, targets};
  }
  PlanPtr PlanOf(const std::vector<std::string>& targets) {
    auto plan = session_->Plan(Signature(targets));
    SLUICE_EXPECT_OK(plan.status());
    return plan.ok() ? *plan : nullptr;
  }
  PlanPtr Plan(const std::string& target) { return PlanOf({target}); }
  // The same task in another process: it knows of nothing.
  static void Restart(FakeWorker& worker) {
    worker.incarnation += 10;
    worker.sessions.clear();
  }
  void RestartB() { Restart(b_); }
  // A step in which b and c answer so.
  absl::Status Run(const PlanPtr& plan, const absl::Status& of_b,
                   const absl::Status& of_c = absl::OkStatus()) {
    absl::Status result = absl::UnknownError("runs");
    session_->Run(plan, {}, [&](absl::Status status) { result = status; });
    b_.AnswerSteps(of_b);
    c_.AnswerSteps(of_c);
    (*workers_)["a"].AnswerSteps(absl::OkStatus());
    return result;
  }

  const absl::Status restarted_ = absl::AbortedError(
      "Session handle is not found: 1. Possibly this worker (\"/job:b\") just "
      "restarted.");
  const absl::Status lost_ = absl::UnavailableError("Socket closed");
  std::shared_ptr<FakeWorkers> workers_ =
      std::make_shared<FakeWorkers>(std::vector<std::string>{"a", "b", "c"});
  FakeWorker& b_ = (*workers_)["b"];
  FakeWorker& c_ = (*workers_)["c"];
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
  EXPECT_EQ(session_->FindPlan(Signature({"on_b"})), nullptr);
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

TEST_F(RestartTest, AllItsDevicesAreTakenInAgain) {
  const PlanPtr old = Plan("on_cpu_1");
  RestartB();
  EXPECT_FALSE(Run(old, restarted_).ok());
  SLUICE_EXPECT_OK(Run(Plan("on_cpu_1"), absl::OkStatus()));
}

TEST_F(RestartTest, ALossElsewhereHoldsItBackFromNoOtherStep) {
  const PlanPtr both = PlanOf({"on_b", "on_c"});
  const PlanPtr of_b = Plan("on_b");
  Plan("queue_on_c");
  Restart(b_);
  Restart(c_);
  EXPECT_TRUE(absl::IsAborted(Run(both, restarted_, restarted_)));
  c_.register_status = restarted_;  // It does not know the session.
  EXPECT_THAT(session_->Plan(Signature({"on_b", "on_c"})).status(),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("restarted")));
  // What b keeps now belongs to its new life.
  Plan("queue");
  EXPECT_TRUE(MasterSession::IsDoubtful(*of_b));
  SLUICE_EXPECT_OK(Run(Plan("on_b"), absl::OkStatus()));
  EXPECT_THAT(c_.sessions, IsEmpty());
}

TEST_F(RestartTest, APlanOfALifeBeforeTheLastIsReplaced) {
  const PlanPtr old = Plan("on_b");
  RestartB();
  EXPECT_FALSE(Run(old, restarted_).ok());
  Plan("on_b");
  Plan("queue");
  // As when it was registered all along and comes into use only now.
  EXPECT_FALSE(Run(old, restarted_).ok());
  SLUICE_EXPECT_OK(Run(Plan("on_b"), absl::OkStatus()));
}

TEST_F(RestartTest, EagerPlacementIsNoReasonToDoWithoutIt) {
  SessionOptions options;
  options.eager_placement = true;
  Open(options);
  const PlanPtr old = Plan("on_b");
  RestartB();
  EXPECT_FALSE(Run(old, restarted_).ok());
  SLUICE_EXPECT_OK(Run(Plan("on_b"), absl::OkStatus()));
}

TEST_F(RestartTest, ACallableGoesOnWithAnotherPlan) {
  const StepSignature signature = Signature({"on_b"});
  const auto handle = session_->MakeCallable(signature, {});
  SLUICE_ASSERT_OK(handle.status());
  const PlanPtr old = (*session_->FindCallable(*handle))->plan;
  RestartB();
  EXPECT_FALSE(Run(old, restarted_).ok());
  session_->RenewCallable(*handle, Plan("on_b"));
  const auto renewed = *session_->FindCallable(*handle);
  EXPECT_FALSE(MasterSession::IsDoubtful(*renewed->plan));
  EXPECT_EQ(renewed->signature, signature);
  SLUICE_EXPECT_OK(session_->ReleaseCallable(*handle));
  session_->RenewCallable(*handle, old);  // Nobody needs it any more.
  EXPECT_FALSE(session_->FindCallable(*handle).ok());
}

TEST_F(RestartTest, GraphsOfATensorFlowTaskAreNotSentToItsNextLife) {
  b_.takes_groups = false;
  const PlanPtr old = Plan("on_b");
  RestartB();
  EXPECT_FALSE(Run(old, restarted_).ok());
  EXPECT_EQ(Plan("on_b"), old);
  EXPECT_THAT(b_.sessions, IsEmpty());
}

TEST_F(RestartTest, ATaskThatGoesOnceMoreIsAnErrorOneRecoversFrom) {
  SessionOptions options;
  options.task_deadline = std::chrono::milliseconds(20);
  Open(options);
  const PlanPtr old = Plan("on_b");
  RestartB();
  EXPECT_FALSE(Run(old, restarted_).ok());
  b_.answers_status = false;
  Notification ended;
  absl::Status status;
  session_->PlanAsync(Signature({"on_b"}), [&](const auto& plan) {
    status = plan.status();
    ended.Notify();
  });
  b_.AnswerStatus(b_.devices());
  ASSERT_TRUE(ended.WaitFor(std::chrono::seconds(60)));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr("gave up waiting for /job:b")));
  // It is not lost for good.
  b_.answers_status = true;
  SLUICE_EXPECT_OK(Run(Plan("on_b"), absl::OkStatus()));
}

TEST_F(RestartTest, ATaskThatIsLeftOutLosesItsSessionToo) {
  // It said what it has in one life and took the session in the next.
  const PlanPtr plan = Plan("on_b");
  b_.incarnation += 10;
  EXPECT_FALSE(Run(plan, restarted_).ok());
  b_.answers_status = false;
  Notification ended;
  session_->PlanAsync(Signature({"on_b"}), [&](auto) { ended.Notify(); });
  b_.AnswerStatus(b_.devices());
  // Now it is left out until it answers again, which it does not.
  EXPECT_THAT(b_.sessions, ElementsAre(session_->handle()));
  Close();
  EXPECT_THAT(b_.sessions, IsEmpty());
  ASSERT_TRUE(ended.WaitFor(std::chrono::seconds(60)));
}

class PassingStateTest : public RestartTest,
                         public testing::WithParamInterface<const char*> {};

TEST_P(PassingStateTest, IsNothingThatATaskKeeps) {
  const PlanPtr old = Plan(GetParam());
  RestartB();
  EXPECT_FALSE(Run(old, restarted_).ok());
  SLUICE_EXPECT_OK(Run(Plan(GetParam()), absl::OkStatus()));
  EXPECT_THAT(b_.sessions, ElementsAre(session_->handle()));
}

INSTANTIATE_TEST_SUITE_P(All, PassingStateTest,
                         testing::Values("random", "array", "stack", "assert"));

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
