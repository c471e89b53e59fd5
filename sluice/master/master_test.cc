#include "sluice/master/master.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "sluice/graph/scope.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/master/testing/fake_worker.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using SessionOr = absl::StatusOr<std::shared_ptr<MasterSession>>;

// A master over the tasks /job:a and /job:b, both played by the test.
class MasterTest : public testing::Test {
 protected:
  MasterTest() {
    MasterEnv env;
    env.workers = workers_;
    env.own_task = "/job:a/replica:0/task:0";
    master_ = std::make_unique<Master>(env, SessionOptions());
  }

  SessionOr Create() {
    SessionOr result = absl::UnknownError("waits");
    master_->CreateSession({}, nullptr,
                           [&](SessionOr session) { result = session; });
    return result;
  }
  // A session with one node on each task, and the plan of both.
  std::shared_ptr<MasterSession> SessionWithPlan() {
    std::shared_ptr<MasterSession> session = *Create();
    SLUICE_EXPECT_OK(session->Extend([](Graph& graph) {
      Scope scope(graph);
      scope.Device("/job:a").Named("on_a").AddNode("NoOp", {});
      scope.Device("/job:b").Named("on_b").AddNode("NoOp", {});
      return scope.status();
    }));
    auto plan = session->Plan({{}, {}, {"on_a", "on_b"}});
    EXPECT_TRUE(plan.ok()) << plan.status();
    plan_ = *plan;
    return session;
  }
  std::shared_ptr<absl::Status> Run(MasterSession& session) {
    auto status = std::make_shared<absl::Status>(absl::UnknownError("runs"));
    session.Run(plan_, {}, [status](absl::Status s) { *status = s; });
    return status;
  }
  std::shared_ptr<absl::Status> Close(MasterSession& session) {
    auto status = std::make_shared<absl::Status>(absl::UnknownError("closes"));
    session.Close(ClosedByClient(), [status](absl::Status s) { *status = s; });
    return status;
  }
  void AnswerSteps(const absl::Status& a, const absl::Status& b) {
    (*workers_)["a"].AnswerSteps(a);
    (*workers_)["b"].AnswerSteps(b);
  }

  std::shared_ptr<FakeWorkers> workers_ =
      std::make_shared<FakeWorkers>(std::vector<std::string>{"a", "b"});
  std::unique_ptr<Master> master_;
  std::shared_ptr<const StepPlan> plan_;
};

TEST_F(MasterTest, ASessionIsFoundByItsHandleUntilItIsClosed) {
  const SessionOr session = Create();
  ASSERT_TRUE(session.ok()) << session.status();
  const std::string handle = (*session)->handle();
  EXPECT_EQ(*master_->FindSession(handle), *session);
  EXPECT_THAT((*workers_)["b"].sessions, ElementsAre(handle));
  absl::Status closed = absl::UnknownError("");
  master_->CloseSession(handle, ClosedByClient(),
                        [&](absl::Status s) { closed = s; });
  SLUICE_EXPECT_OK(closed);
  EXPECT_THAT((*workers_)["a"].sessions, IsEmpty());
  EXPECT_THAT((*workers_)["b"].sessions, IsEmpty());
  EXPECT_TRUE(absl::IsAborted(master_->FindSession(handle).status()));
}

TEST_F(MasterTest, ASessionThatOneWorkerRefusesIsTakenFromTheOthers) {
  (*workers_)["b"].create_status = absl::InternalError("no room");
  EXPECT_EQ(Create().status(), absl::InternalError("no room"));
  EXPECT_EQ(master_->num_sessions(), 0);
  EXPECT_THAT((*workers_)["a"].sessions, IsEmpty());
}

TEST_F(MasterTest, ASessionWhoseClientWentAwayIsNotKept) {
  (*workers_)["b"].answers_status = false;
  auto cancellation = std::make_shared<Cancellation>();
  SessionOr result = absl::UnknownError("waits");
  master_->CreateSession({}, cancellation, [&](SessionOr s) { result = s; });
  cancellation->Cancel(absl::CancelledError("gone"));
  EXPECT_EQ(result.status(), absl::CancelledError("gone"));
  EXPECT_EQ(master_->num_sessions(), 0);
  (*workers_)["b"].AnswerStatus(absl::UnavailableError("late"));
}

TEST_F(MasterTest, ItsEndEndsSessionsThatAreBeingOpened) {
  (*workers_)["b"].answers_status = false;
  SessionOr result = absl::UnknownError("waits");
  master_->CreateSession({}, nullptr, [&](SessionOr s) { result = s; });
  master_ = nullptr;
  EXPECT_TRUE(absl::IsCancelled(result.status())) << result.status();
  (*workers_)["b"].AnswerStatus(
      std::vector<DeviceInfo>{(*workers_)["b"].device()});
}

TEST_F(MasterTest, AfterShutdownNoSessionIsOpened) {
  master_->Shutdown();
  EXPECT_TRUE(absl::IsCancelled(Create().status()));
}

TEST_F(MasterTest, AStepEndsWhenAllItsPartsHave) {
  auto session = SessionWithPlan();
  const auto status = Run(*session);
  (*workers_)["a"].AnswerSteps(absl::OkStatus());
  EXPECT_TRUE(absl::IsUnknown(*status));
  (*workers_)["b"].AnswerSteps(absl::OkStatus());
  SLUICE_EXPECT_OK(*status);
}

TEST_F(MasterTest, AnErrorOfOnePartCancelsTheOthersAndNamesItsTask) {
  auto session = SessionWithPlan();
  const auto status = Run(*session);
  AnswerSteps(absl::OutOfRangeError("end of data"), absl::OkStatus());
  EXPECT_THAT(*status, StatusIs(absl::StatusCode::kOutOfRange,
                                "From /job:a/replica:0/task:0:\nend of data"));
}

TEST_F(MasterTest, TheCauseIsReportedAlsoWhenItsConsequenceComesFirst) {
  auto session = SessionWithPlan();
  const auto status = Run(*session);
  (*workers_)["a"].AnswerSteps(Derived(absl::AbortedError("follows")));
  (*workers_)["b"].AnswerSteps(absl::InternalError("cause"));
  EXPECT_THAT(*status,
              StatusIs(absl::StatusCode::kInternal, HasSubstr("cause")));
}

TEST_F(MasterTest, ClosingCancelsStepsAndWaitsForThem) {
  auto session = SessionWithPlan();
  const auto step = Run(*session);
  const auto first = Close(*session);
  const auto second = Close(*session);
  EXPECT_TRUE(absl::IsUnknown(*first));
  EXPECT_TRUE(absl::IsUnknown(*second));
  AnswerSteps(absl::OkStatus(), absl::OkStatus());
  EXPECT_THAT(*step,
              StatusIs(absl::StatusCode::kCancelled,
                       HasSubstr("explicit call to `Session::Close()`")));
  SLUICE_EXPECT_OK(*first);
  SLUICE_EXPECT_OK(*second);
  EXPECT_THAT((*workers_)["a"].sessions, IsEmpty());
  SLUICE_EXPECT_OK(*Close(*session));
}

TEST_F(MasterTest, AClosedSessionIsNotFound) {
  auto session = SessionWithPlan();
  SLUICE_ASSERT_OK(*Close(*session));
  const std::string text =
      StrCat("Session ", session->handle(), " is not found.");
  EXPECT_THAT(*Run(*session), StatusIs(absl::StatusCode::kAborted, text));
  EXPECT_THAT(session->Plan({{}, {}, {"on_a"}}).status(),
              StatusIs(absl::StatusCode::kAborted, text));
}

TEST_F(MasterTest, ResetClosesSessionsAndClearsContainersEverywhere) {
  auto session = SessionWithPlan();
  absl::Status reset = absl::UnknownError("");
  master_->Reset({"c"}, [&](absl::Status s) {
    reset = s;
    // It may call the master again.
    EXPECT_EQ(master_->num_sessions(), 0);
    master_->Reset({}, [](absl::Status) {});
  });
  SLUICE_EXPECT_OK(reset);
  EXPECT_TRUE(absl::IsAborted(*Run(*session)));
  EXPECT_THAT((*workers_)["b"].cleaned, IsEmpty());
  (*workers_)["b"].clean_status = absl::UnavailableError("away");
  master_->Reset({"c"}, [&](absl::Status s) { reset = s; });
  EXPECT_TRUE(absl::IsUnavailable(reset));
  EXPECT_THAT((*workers_)["a"].cleaned, ElementsAre("c"));
}

TEST_F(MasterTest, AStepCanBeCancelled) {
  auto session = SessionWithPlan();
  absl::Status status = absl::UnknownError("runs");
  const int64_t id =
      session->Run(plan_, {}, [&](absl::Status s) { status = s; });
  session->CancelStep(id, absl::DeadlineExceededError("too slow"));
  AnswerSteps(absl::OkStatus(), absl::OkStatus());
  EXPECT_EQ(status, absl::DeadlineExceededError("too slow"));
  session->CancelStep(id, absl::CancelledError(""));  // It is over: nothing.
}

TEST_F(MasterTest, PlansAreMadeOncePerKindOfStep) {
  auto session = SessionWithPlan();
  const int before = (*workers_)["a"].registered;
  EXPECT_EQ(*session->Plan({{}, {}, {"on_a", "on_b"}}), plan_);
  EXPECT_EQ((*workers_)["a"].registered, before);
  EXPECT_NE(*session->Plan({{}, {}, {"on_a"}}), plan_);
  EXPECT_EQ((*workers_)["a"].registered, before + 1);
}

TEST_F(MasterTest, OnlyStepsThatReachANodeThatCannotBePlacedFail) {
  std::shared_ptr<MasterSession> session = *Create();
  SLUICE_ASSERT_OK(session->Extend([](Graph& graph) {
    Scope scope(graph);
    scope.Named("fine").AddNode("NoOp", {});
    scope.Device("/job:nowhere").Named("lost").AddNode("NoOp", {});
    return scope.status();
  }));
  EXPECT_TRUE(session->Plan({{}, {}, {"fine"}}).ok());
  EXPECT_THAT(
      session->Plan({{}, {}, {"lost"}}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               testing::AllOf(HasSubstr("lost"), HasSubstr("/job:nowhere"),
                              HasSubstr("/job:b/replica:0/task:0"))));
}

TEST(LocalMasters, AreFoundWhileTheyLive) {
  auto master = MakePrivateMaster({});
  AddLocalMaster("grpc://here:1", master);
  EXPECT_EQ(FindLocalMaster("grpc://here:1"), master);
  // Only its own entry goes with a master.
  auto successor = MakePrivateMaster({});
  RemoveLocalMaster("grpc://here:1", successor);
  EXPECT_EQ(FindLocalMaster("grpc://here:1"), master);
  master = nullptr;
  EXPECT_EQ(FindLocalMaster("grpc://here:1"), nullptr);
}

}  // namespace
}  // namespace sluice
