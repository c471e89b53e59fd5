#include "sluice/master/master.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "absl/functional/function_ref.h"
#include "sluice/base/logging.h"
#include "sluice/base/simulation.h"
#include "sluice/graph/scope.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/master/testing/master_test.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(MasterTest, APartialRunThatIsSetUpWhileItsSessionClosesLeavesNothing) {
  const std::shared_ptr<MasterSession> session = SessionWithPlan();
  FakeWorker& own = (*workers_)["a"];
  const StepSignature signature = {{}, {}, {"on_a"}};
  SLUICE_EXPECT_OK(session->SetUpPartialRun(signature).status());
  EXPECT_EQ(own.open_steps.size(), 1u);
  own.at_step_rendezvous = [&] { SLUICE_EXPECT_OK(*Close(*session)); };
  EXPECT_THAT(session->SetUpPartialRun(signature).status(),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("is not found")));
  EXPECT_THAT(own.open_steps, IsEmpty());
}

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

TEST_F(MasterTest, ATaskThatIsGoneWhenItsSessionIsOpenedIsWaitedFor) {
  FakeWorker& gone = (*workers_)["b"];
  gone.create_status = absl::UnavailableError("Connection reset by peer");
  gone.at_create = [&] { gone.answers_status = false; };
  SessionOr result = absl::UnknownError("waits");
  master_->CreateSession({}, nullptr, [&](const SessionOr& s) { result = s; });
  EXPECT_EQ(result.status(), absl::UnknownError("waits"));
  EXPECT_THAT((*workers_)["a"].sessions, IsEmpty());
  gone.create_status = absl::OkStatus();
  gone.AnswerStatus(std::vector<DeviceInfo>{gone.device()});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT((*workers_)["a"].sessions, ElementsAre((*result)->handle()));
  EXPECT_THAT(gone.sessions, ElementsAre((*result)->handle()));
}

TEST_F(MasterTest, ATaskThatIsGoneWhenItsSessionIsOpenedIsLeftOut) {
  FakeWorker& gone = (*workers_)["b"];
  gone.create_status = absl::UnavailableError("Connection reset by peer");
  gone.at_create = [&] { gone.answers_status = false; };
  SessionOptions options;
  options.wanted_devices = {"/job:a"};
  options.patience = std::chrono::milliseconds(1);
  std::promise<SessionOr> promise;
  master_->CreateSession(options, nullptr,
                         [&](const SessionOr& s) { promise.set_value(s); });
  const SessionOr session = promise.get_future().get();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_THAT((*workers_)["a"].sessions, ElementsAre((*session)->handle()));
  EXPECT_EQ(gone.created, 1);
  gone.AnswerStatus(absl::CancelledError("over"));
}

TEST_F(MasterTest, ATaskThatAnswersAndRefusesIsNotAskedForever) {
  (*workers_)["b"].create_status = absl::UnavailableError("busy");
  EXPECT_EQ(Create().status(), absl::UnavailableError("busy"));
  EXPECT_EQ((*workers_)["b"].created, 4);
  EXPECT_THAT((*workers_)["a"].sessions, IsEmpty());
}

TEST_F(MasterTest, ASessionWhoseClientWentAwayIsNotKept) {
  (*workers_)["b"].answers_status = false;
  auto cancellation = std::make_shared<Cancellation>();
  SessionOr result = absl::UnknownError("waits");
  master_->CreateSession({}, cancellation,
                         [&](const SessionOr& s) { result = s; });
  cancellation->Cancel(absl::CancelledError("gone"));
  EXPECT_EQ(result.status(), absl::CancelledError("gone"));
  EXPECT_EQ(master_->num_sessions(), 0);
  (*workers_)["b"].AnswerStatus(absl::UnavailableError("late"));
}

TEST_F(MasterTest, ItsEndEndsSessionsThatAreBeingOpened) {
  (*workers_)["b"].answers_status = false;
  SessionOr result = absl::UnknownError("waits");
  master_->CreateSession({}, nullptr, [&](const SessionOr& s) { result = s; });
  master_ = nullptr;
  EXPECT_TRUE(absl::IsCancelled(result.status())) << result.status();
  (*workers_)["b"].AnswerStatus(
      std::vector<DeviceInfo>{(*workers_)["b"].device()});
}

// The end of each of them lets the other one finish: the master has stopped,
// but has not come to that one yet.
TEST_F(MasterTest, ASessionThatOpensWhileTheMasterEndsIsNotKept) {
  FakeWorker& late = (*workers_)["b"];
  late.answers_status = false;
  std::vector<absl::Status> ended;
  for (int i = 0; i < 2; ++i) {
    master_->CreateSession({}, nullptr, [&](const SessionOr& session) {
      ended.push_back(session.status());
      late.AnswerStatus(std::vector<DeviceInfo>{late.device()});
    });
  }
  master_->Shutdown();
  EXPECT_THAT(
      ended,
      ElementsAre(
          StatusIs(absl::StatusCode::kCancelled, "The server was stopped."),
          StatusIs(absl::StatusCode::kCancelled, "The server was stopped.")));
  EXPECT_EQ(late.created, 1);
  EXPECT_EQ(master_->num_sessions(), 0);
  EXPECT_THAT((*workers_)["a"].sessions, IsEmpty());
  EXPECT_THAT(late.sessions, IsEmpty());
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

// What waits there could take what the client does next.
TEST_F(MasterTest, AFailedStepIsReportedWhenItHasEndedOnAllTasks) {
  auto session = SessionWithPlan();
  FakeWorker& other = (*workers_)["b"];
  other.holds_ends = true;
  const auto status = Run(*session);
  AnswerSteps(absl::OutOfRangeError("end of data"), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnknown(*status)) << *status;
  const auto closed = Close(*session);
  ASSERT_EQ(other.ends.size(), 1);
  EXPECT_TRUE(absl::IsUnknown(*closed)) << *closed;
  other.ends[0](absl::OkStatus());
  EXPECT_TRUE(absl::IsOutOfRange(*status)) << *status;
  SLUICE_EXPECT_OK(*closed);
}

TEST_F(MasterTest, TheCauseIsReportedAlsoWhenItsConsequenceComesFirst) {
  auto session = SessionWithPlan();
  const auto status = Run(*session);
  (*workers_)["a"].AnswerSteps(Derived(absl::AbortedError("follows")));
  (*workers_)["b"].AnswerSteps(absl::InternalError("cause"));
  EXPECT_THAT(*status,
              StatusIs(absl::StatusCode::kInternal, HasSubstr("cause")));
}

TEST_F(MasterTest, SeveralCausesAreAllReported) {
  auto session = SessionWithPlan();
  const auto status = Run(*session);
  // Answers that were under way when the others were told to stop.
  auto a = std::move((*workers_)["a"].steps);
  auto b = std::move((*workers_)["b"].steps);
  a[0].done(absl::InternalError("first"));
  b[0].done(absl::OutOfRangeError("second"));
  EXPECT_THAT(*status,
              StatusIs(absl::StatusCode::kInternal,
                       "\n=====================\n"
                       "Internal: From /job:a/replica:0/task:0:\nfirst\n"
                       "Out of range: From /job:b/replica:0/task:0:\nsecond"
                       "\n=====================\n"));
}

TEST_F(MasterTest, AStepEndsWhenItsTimeIsUp) {
  auto session = SessionWithPlan();
  Notification ended;
  absl::Status status;
  MasterSession::RunArgs args;
  args.options.timeout_ms = 20;
  session->Run(plan_, args, [&](absl::Status s) {
    status = std::move(s);
    ended.Notify();
  });
  (*workers_)["a"].AnswerSteps(absl::OkStatus());
  Notification cancelled;
  Cancellation& part = *(*workers_)["b"].steps[0].cancellation;
  const auto token = part.Register([&] { cancelled.Notify(); });
  if (token != Cancellation::kNone) {
    ASSERT_TRUE(cancelled.WaitFor(std::chrono::seconds(60)));
  }
  (*workers_)["b"].AnswerSteps(absl::OkStatus());
  ASSERT_TRUE(ended.WaitFor(std::chrono::seconds(60)));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                               "Operation timed out. The step still ran on "
                               "/job:b/replica:0/task:0."));
}

// Its time passes when the test says so, and timers go off with it.
class HandClock : public Simulation {
 public:
  HandClock() { SetSimulation(this); }
  ~HandClock() override { SetSimulation(nullptr); }
  SteadyTime Now() override { return now_; }
  int64_t WallMicros() override { return 0; }
  void CallLater(std::chrono::nanoseconds delay,
                 absl::AnyInvocable<void()> timer) override {
    timers_.emplace(now_ + delay, std::move(timer));
  }
  void RunBlocking(absl::AnyInvocable<void()> task) override { task(); }
  uint64_t RandomId() override { return ++last_id_; }

  size_t timers() const { return timers_.size(); }
  void Pass(std::chrono::nanoseconds time) {
    now_ += time;
    while (!timers_.empty() && timers_.begin()->first <= now_) {
      auto timer = timers_.extract(timers_.begin());
      timer.mapped()();
    }
  }

 private:
  SteadyTime now_ = SteadyTime(std::chrono::hours(1));
  std::multimap<SteadyTime, absl::AnyInvocable<void()>> timers_;
  uint64_t last_id_ = 0;
};

TEST_F(MasterTest, AStepHasOneTimerHoweverManyEndBeforeIt) {
  HandClock clock;
  auto session = SessionWithPlan();
  const auto run = [&](int timeout_ms) {
    auto status = std::make_shared<absl::Status>(absl::UnknownError("runs"));
    MasterSession::RunArgs args;
    args.options.timeout_ms = timeout_ms;
    session->Run(plan_, args, [status](absl::Status s) { *status = s; });
    return status;
  };
  const auto slow = run(60'000);
  EXPECT_EQ(clock.timers(), 1u);
  for (int i = 0; i < 3; ++i) {
    run(10);
    EXPECT_EQ(clock.timers(), 2u);
    clock.Pass(std::chrono::milliseconds(10));
    EXPECT_EQ(clock.timers(), 1u);
  }
  clock.Pass(std::chrono::minutes(1));
  EXPECT_EQ(clock.timers(), 0u);
  AnswerSteps(absl::OkStatus(), absl::OkStatus());
  EXPECT_TRUE(absl::IsDeadlineExceeded(*slow)) << *slow;
}

TEST_F(MasterTest, OpeningASessionEndsWhenItsTimeIsUp) {
  (*workers_)["b"].answers_status = false;
  SessionOptions options;
  options.operation_timeout_ms = 20;
  Notification ended;
  SessionOr result = absl::UnknownError("waits");
  master_->CreateSession(options, nullptr, [&](SessionOr s) {
    result = std::move(s);
    ended.Notify();
  });
  ASSERT_TRUE(ended.WaitFor(std::chrono::seconds(60)));
  EXPECT_THAT(result.status(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                        HasSubstr("/job:b/replica:0/task:0")));
  (*workers_)["b"].AnswerStatus(absl::UnavailableError("late"));
}

TEST_F(MasterTest, AClientElsewhereHearsWhichTaskWasStopped) {
  SessionOptions options;
  options.remote = true;
  SessionOr remote = absl::UnknownError("waits");
  master_->CreateSession(options, nullptr,
                         [&](const SessionOr& s) { remote = s; });
  ASSERT_TRUE(remote.ok()) << remote.status();
  auto local = SessionWithPlan();
  const auto step = Run(*local);
  absl::Status remote_step = absl::UnknownError("runs");
  SLUICE_ASSERT_OK((*remote)->Extend([](Graph& graph) {
    Scope scope(graph);
    scope.Device("/job:b").Named("on_b").AddNode("NoOp", {});
    return scope.status();
  }));
  auto plan = (*remote)->Plan({{}, {}, {"on_b"}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  (*remote)->Run(*plan, {}, [&](absl::Status s) { remote_step = s; });
  master_->Shutdown();
  AnswerSteps(absl::OkStatus(), absl::OkStatus());
  EXPECT_THAT(
      *step, StatusIs(absl::StatusCode::kCancelled, "The server was stopped."));
  EXPECT_THAT(remote_step,
              StatusIs(absl::StatusCode::kUnavailable,
                       "The master /job:a/replica:0/task:0 at here:1 was "
                       "stopped."));
}

TEST_F(MasterTest, AClientsOptionsAreOverTheServers) {
  SessionOptions server;
  server.operation_timeout_ms = 7000;
  server.device_filters = {"/job:b"};
  server.fold_constants = false;
  MasterEnv env = master_->env();
  master_ = std::make_unique<Master>(env, server);
  EXPECT_EQ((*Create())->options().operation_timeout_ms, 7000);
  EXPECT_FALSE((*Create())->options().fold_constants);
  SessionOptions options;
  options.operation_timeout_ms = 9000;
  options.device_filters = {"/job:a"};
  SessionOr session = absl::UnknownError("waits");
  master_->CreateSession(options, nullptr,
                         [&](const SessionOr& s) { session = s; });
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ((*session)->options().operation_timeout_ms, 9000);
  EXPECT_THAT((*session)->options().device_filters,
              ElementsAre("/job:b", "/job:a"));
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
  master_->Reset({"c"}, {}, [&](absl::Status s) {
    reset = s;
    // It may call the master again.
    EXPECT_EQ(master_->num_sessions(), 0);
    master_->Reset({}, {}, [](absl::Status) {});
  });
  SLUICE_EXPECT_OK(reset);
  EXPECT_TRUE(absl::IsAborted(*Run(*session)));
  EXPECT_THAT((*workers_)["b"].cleaned, IsEmpty());
  (*workers_)["b"].clean_status = absl::UnavailableError("away");
  master_->Reset({"c"}, {}, [&](absl::Status s) { reset = s; });
  EXPECT_TRUE(absl::IsUnavailable(reset));
  EXPECT_THAT((*workers_)["a"].cleaned, ElementsAre("c"));
}

TEST_F(MasterTest, ResetClearsOnlyTheTasksThatTheFiltersLeave) {
  absl::Status reset = absl::UnknownError("");
  master_->Reset({"c"}, {"/job:a"}, [&](absl::Status s) { reset = s; });
  SLUICE_EXPECT_OK(reset);
  EXPECT_THAT((*workers_)["a"].cleaned, ElementsAre("c"));
  EXPECT_THAT((*workers_)["b"].cleaned, IsEmpty());
  master_->Reset({"d"}, {"/job:c"}, [&](absl::Status s) { reset = s; });
  SLUICE_EXPECT_OK(reset);
  EXPECT_THAT((*workers_)["a"].cleaned, ElementsAre("c"));
  master_->Reset({"c"}, {"?"}, [&](absl::Status s) { reset = s; });
  EXPECT_TRUE(absl::IsInvalidArgument(reset));
}

TEST_F(MasterTest, AStepCanBeCancelled) {
  auto session = SessionWithPlan();
  absl::Status status = absl::UnknownError("runs");
  const int64_t id =
      session->Run(plan_, {}, [&](absl::Status s) { status = s; });
  session->CancelStep(id, absl::CancelledError("enough"));
  AnswerSteps(absl::OkStatus(), absl::OkStatus());
  EXPECT_EQ(status, absl::CancelledError("enough"));
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

// The lines that the master logs meanwhile.
std::vector<std::string> Logged(absl::FunctionRef<void()> what) {
  static Mutex mu;
  std::vector<std::string> lines;
  SetLogSinkForTest([&](LogLevel, const std::string& line) {
    MutexLock lock(mu);
    lines.push_back(line);
  });
  what();
  SetLogSinkForTest({});
  return lines;
}

TEST_F(MasterTest, StateThatStraysToAnotherJobIsWarnedOfOnce) {
  for (const bool other : {true, false}) {
    std::shared_ptr<MasterSession> session;
    // The own task is /job:b's, or /job:a's, which unplaced ops go to.
    MasterEnv env;
    env.workers = workers_;
    env.own_task =
        other ? "/job:b/replica:0/task:0" : "/job:a/replica:0/task:0";
    Master master(env, SessionOptions());
    master.CreateSession({}, nullptr, [&](SessionOr s) { session = *s; });
    const auto grow = [&](const std::string& name) {
      return Logged([&] {
        SLUICE_ASSERT_OK(session->Extend([&](Graph& graph) {
          Scope scope(graph);
          scope.Named(name).AddNode(
              "VariableV2", {},
              {{"dtype", DType::kFloat}, {"shape", PartialShape::Scalar()}});
          scope.Named(name + "_neg").Add("Neg", {scope.Scalar(1.0f)});
          return scope.status();
        }));
        SLUICE_EXPECT_OK(session->Plan({{}, {}, {name}}).status());
      });
    };
    const auto warns = testing::Contains(testing::AllOf(
        HasSubstr("x on /job:a"), HasSubstr("sluice_prefer_own_task")));
    if (other) {
      EXPECT_THAT(grow("x"), warns);
    } else {
      EXPECT_THAT(grow("x"), IsEmpty());
    }
    EXPECT_THAT(grow("y"), IsEmpty());
  }
}

TEST_F(MasterTest, UnplacedOpsGoToTheSessionsTaskOnRequest) {
  MasterEnv env;
  env.workers = workers_;
  env.own_task = "/job:b/replica:0/task:0";
  Master master(env, SessionOptions());
  SessionOptions options;
  for (const bool prefer : {false, true}) {
    options.prefer_own_task = prefer;
    std::shared_ptr<MasterSession> session;
    master.CreateSession(options, nullptr, [&](SessionOr s) { session = *s; });
    SLUICE_ASSERT_OK(session->Extend([](Graph& graph) {
      Scope scope(graph);
      scope.Named("anywhere").AddNode("NoOp", {});
      scope.Device("/cpu:0").Named("any_cpu").AddNode("NoOp", {});
      return scope.status();
    }));
    const int on_a = (*workers_)["a"].registered;
    const int on_b = (*workers_)["b"].registered;
    SLUICE_EXPECT_OK(session->Plan({{}, {}, {"anywhere", "any_cpu"}}).status());
    EXPECT_EQ((*workers_)["a"].registered - on_a, prefer ? 0 : 1);
    EXPECT_EQ((*workers_)["b"].registered - on_b, prefer ? 1 : 0);
  }
}

TEST_F(MasterTest, EagerPlacementFailsEveryStep) {
  SessionOptions options;
  options.eager_placement = true;
  std::shared_ptr<MasterSession> session;
  master_->CreateSession(options, nullptr, [&](SessionOr s) { session = *s; });
  SLUICE_ASSERT_OK(session->Extend([](Graph& graph) {
    Scope scope(graph);
    scope.Named("fine").AddNode("NoOp", {});
    scope.Device("/job:nowhere").Named("lost").AddNode("NoOp", {});
    return scope.status();
  }));
  EXPECT_THAT(session->Plan({{}, {}, {"fine"}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("device for operation lost")));
}

TEST_F(MasterTest, OptionsThatChangeNothingAreNamedOnce) {
  SessionOptions options;
  options.without_effect = {"graph_options.x", "rpc_options.y"};
  const auto lines = Logged([&] {
    master_->CreateSession(options, nullptr, [](const SessionOr&) {});
  });
  EXPECT_THAT(lines, testing::Contains(HasSubstr(
                         "have no effect: graph_options.x, rpc_options.y")));
}

TEST_F(MasterTest, AFetchThatWasNotMadeIsNamedByItsKey) {
  auto session = *Create();
  SLUICE_ASSERT_OK(session->Extend([](Graph& graph) {
    Scope scope(graph);
    scope.Device("/job:a").Named("x").Scalar(1.0f);
    return scope.status();
  }));
  plan_ = *session->Plan({{}, {"x:0"}, {}});
  const auto step = Run(*session);
  (*workers_)["a"].AnswerSteps(DeadFetch(0));
  constexpr char kCpu[] = "/job:a/replica:0/task:0/device:CPU:0";
  EXPECT_THAT(
      *step,
      StatusIs(absl::StatusCode::kInternal,
               testing::MatchesRegex(StrCat(
                   "From /job:a/replica:0/task:0:\nFailed to fetch outputs for "
                   "step [0-9]+. \\(Original error message: Invalid argument: "
                   "The tensor returned for ",
                   kCpu, ";0000000000000001;", kCpu,
                   ";x:0;0:0 was not valid.\\)"))));
}

TEST_F(MasterTest, ADebuggerIsRefused) {
  auto session = SessionWithPlan();
  MasterSession::RunArgs args;
  args.options.debug = true;
  absl::Status status;
  session->Run(plan_, args, [&](absl::Status s) { status = std::move(s); });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnimplemented,
                               HasSubstr("debug_options")));
}

TEST(PrivateMaster, RefusesAPoolThatIsNotThere) {
  std::shared_ptr<MasterSession> session;
  auto master = MakePrivateMaster({});
  SessionOptions options;
  options.num_thread_pools = 2;
  master->CreateSession(options, nullptr, [&](SessionOr s) { session = *s; });
  SLUICE_ASSERT_OK(session->Extend([](Graph& graph) {
    Scope scope(graph);
    scope.Named("x").AddNode("NoOp", {});
    return scope.status();
  }));
  const auto plan = *session->Plan({{}, {}, {"x"}});
  const auto run = [&](int pool) {
    MasterSession::RunArgs args;
    args.options.thread_pool = pool;
    absl::Status status = absl::UnknownError("");
    session->Run(plan, args, [&](absl::Status s) { status = std::move(s); });
    return status;
  };
  for (int pool : {-1, 0, 1}) SLUICE_EXPECT_OK(run(pool));
  for (int pool : {-2, 2}) {
    EXPECT_EQ(run(pool), absl::InvalidArgumentError(
                             StrCat("Invalid inter_op_thread_pool: ", pool)));
  }
}

TEST(PrivateMaster, TellsItsDeviceMapping) {
  SessionOptions options;
  options.log_device_placement = true;
  testing::internal::CaptureStdout();
  MakePrivateMaster(options)->CreateSession(options, nullptr,
                                            [](const SessionOr&) {});
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "Device mapping: no known devices.\n");
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

// Its client hears of a restart when it is gone, but not before.
TEST_F(MasterTest, ASessionThatClosesTakesNoSteps) {
  const auto session = SessionWithPlan();
  const auto running = Run(*session);
  const auto closed = Close(*session);
  EXPECT_THAT(*Run(*session), StatusIs(absl::StatusCode::kFailedPrecondition,
                                       "Session is closed."));
  workers_->operator[]("a").AnswerSteps(absl::OkStatus());
  workers_->operator[]("b").AnswerSteps(absl::OkStatus());
  SLUICE_EXPECT_OK(*closed);
  EXPECT_THAT(*Run(*session),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("is not found.")));
}

TEST(MasterLimits, BoundTheCallablesAndPartialRunsOfASession) {
  MasterEnv env;
  env.workers = std::make_shared<FakeWorkers>(std::vector<std::string>{"a"});
  env.own_task = "/job:a/replica:0/task:0";
  env.max_callables = 2;
  Master master(env, SessionOptions());
  SessionOr session;
  master.CreateSession({}, nullptr,
                       [&](const SessionOr& opened) { session = opened; });
  SLUICE_ASSERT_OK((*session)->Extend([](Graph& graph) {
    Scope(graph).Named("n").AddNode("NoOp", {});
    return absl::OkStatus();
  }));
  const StepSignature step = {{}, {}, {"n"}};
  const auto first = (*session)->MakeCallable(step, {});
  SLUICE_ASSERT_OK(first.status());
  SLUICE_EXPECT_OK((*session)->SetUpPartialRun(step).status());
  EXPECT_THAT((*session)->MakeCallable(step, {}).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("limit callables=2")));
  EXPECT_TRUE(
      absl::IsResourceExhausted((*session)->SetUpPartialRun(step).status()));
  SLUICE_EXPECT_OK((*session)->ReleaseCallable(*first));
  SLUICE_EXPECT_OK((*session)->MakeCallable(step, {}).status());
}

}  // namespace
}  // namespace sluice
