#include "sluice/train/monitored_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <fstream>
#include <map>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"
#include "sluice/base/testing/temp_dir.h"
#include "sluice/client/collections.h"
#include "sluice/io/checkpoint_state.h"
#include "sluice/io/event_file.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/proto/summary.pb.h"
#include "sluice/server/testing/cluster_test.h"
#include "sluice/train/global_step.h"
#include "sluice/train/hooks.h"
#include "sluice/train/lost_session.h"
#include "sluice/train/optimizers.h"
#include "sluice/train/queue_runner.h"
#include "sluice/train/replica_device_setter.h"
#include "sluice/train/summary_writer.h"
#include "sluice/train/sync_replicas_optimizer.h"
#include "sluice/train/testing/counting_model.h"

namespace sluice {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

TEST(MonitoredTraining, AChiefSaysWhatItDoesAndLeavesACheckpoint) {
  const TempDir dir;
  CountingModel model;
  LogCapture log;
  auto session =
      MonitoredTrainingSession(model.graph, {.checkpoint_dir = dir.path(),
                                             .hooks = {StopAt(5)},
                                             .save_checkpoint_steps = 100});
  ASSERT_TRUE(session.ok()) << session.status();
  SLUICE_ASSERT_OK(TrainToTheEnd(**session, model.train));
  const std::string model_path = dir / "model.ckpt";
  EXPECT_THAT(
      log.lines(),
      ElementsAre("Create CheckpointSaverHook.", "Graph was finalized.",
                  "Running local_init_op.", "Done running local_init_op.",
                  "Saving checkpoints for 0 into " + model_path + ".",
                  "Saving checkpoints for 5 into " + model_path + "."));
  EXPECT_EQ(LatestCheckpoint(RealFileSystem(), dir.path()),
            dir / "model.ckpt-5");
  EXPECT_TRUE(RealFileSystem().Exists(dir / "graph.pbtxt"));
  EXPECT_THAT((*session)->Close(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "Session is already closed."));
  // The graph is open again.
  EXPECT_TRUE(Scope(model.graph).Scalar(1.0f));
}

TEST(MonitoredTraining, ARestartGoesOnFromTheCheckpoint) {
  const TempDir dir;
  for (const int64_t last : {5, 8}) {
    CountingModel model;
    LogCapture log;
    auto session =
        MonitoredTrainingSession(model.graph, {.checkpoint_dir = dir.path(),
                                               .hooks = {StopAt(last)},
                                               .save_checkpoint_steps = 100});
    ASSERT_TRUE(session.ok()) << session.status();
    int steps = 0;
    SLUICE_ASSERT_OK(TrainToTheEnd(**session, model.train, [&] { ++steps; }));
    EXPECT_EQ(steps, last == 5 ? 5 : 3);
    if (last == 8) {
      EXPECT_THAT(log.lines(), Contains("Restoring parameters from " +
                                        (dir / "model.ckpt-5")));
    }
  }
}

TEST(MonitoredTraining, ADamagedCheckpointGivesWayToTheOneBefore) {
  const TempDir dir;
  {
    CountingModel model;
    auto session =
        MonitoredTrainingSession(model.graph, {.checkpoint_dir = dir.path(),
                                               .hooks = {StopAt(5)},
                                               .save_checkpoint_steps = 100});
    SLUICE_ASSERT_OK(TrainToTheEnd(**session, model.train));
  }
  const std::string index = dir / "model.ckpt-5.index";
  SLUICE_ASSERT_OK(RealFileSystem().WriteFile(
      index, RealFileSystem().ReadFile(index)->substr(0, 20)));
  CountingModel model;
  auto session = MonitoredTrainingSession(
      model.graph,
      {.checkpoint_dir = dir.path(), .save_checkpoint_steps = 100});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(*GlobalStep(*(*session)->session(), model.step), 0);
}

TEST(MonitoredTraining, RecordsSummariesGraphAndCheckpoints) {
  const TempDir dir;
  CountingModel model;
  AddScalarSummary(model.scope, "weight", model.w);
  auto session =
      MonitoredTrainingSession(model.graph, {.checkpoint_dir = dir.path(),
                                             .hooks = {StopAt(4)},
                                             .save_checkpoint_steps = 100,
                                             .save_summaries_steps = 1,
                                             .log_step_count_steps = 2});
  ASSERT_TRUE(session.ok()) << session.status();
  SLUICE_ASSERT_OK(TrainToTheEnd(**session, model.train));
  session->reset();
  const auto files = RealFileSystem().Glob(dir / "events.out.tfevents.*");
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files->size(), 1u);
  auto reader = *EventReader::Open(RealFileSystem(), (*files)[0]);
  std::vector<std::string> seen;
  pb::Event event;
  while (*reader->Read(&event)) {
    if (event.has_summary()) {
      seen.push_back(event.summary().value(0).tag());
    } else if (event.has_session_log()) {
      seen.push_back(
          pb::SessionLog::SessionStatus_Name(event.session_log().status()));
    } else if (!event.graph_def().empty()) {
      seen.push_back("graph");
    } else if (!event.meta_graph_def().empty()) {
      seen.push_back("meta graph");
    }
  }
  EXPECT_EQ(seen[0], "graph");
  EXPECT_THAT(seen, IsSupersetOf({"graph", "meta graph", "CHECKPOINT", "START",
                                  "weight", "weight", "weight",
                                  "global_step/sec", "CHECKPOINT"}));
}

// Writes down what it is called for; fails, fetches and feeds as told.
class RecordingHook : public SessionRunHook {
 public:
  RecordingHook(std::string name, std::vector<std::string>* calls)
      : name_(std::move(name)), calls_(calls) {}

  absl::Status Begin(Graph&) override { return Call("begin"); }
  absl::Status AfterCreateSession(std::shared_ptr<Session>,
                                  Coordinator&) override {
    return Call("created");
  }
  absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext&) override {
    SLUICE_RETURN_IF_ERROR(Call("before"));
    return args;
  }
  absl::Status AfterRun(SessionRunContext& context,
                        const std::vector<Tensor>& results) override {
    EXPECT_EQ(results.size(), args.fetches.size());
    if (request_stop) context.RequestStop();
    SLUICE_RETURN_IF_ERROR(Call("after"));
    // Each error comes once.
    return std::exchange(after_error, absl::OkStatus());
  }
  absl::Status End(Session&) override { return Call("end"); }

  SessionRunArgs args;
  bool request_stop = false;
  absl::Status after_error;

 private:
  absl::Status Call(const std::string& what) {
    calls_->push_back(name_ + " " + what);
    return absl::OkStatus();
  }
  const std::string name_;
  std::vector<std::string>* const calls_;
};

// tests/scenarios/README.md says what a line holds.
struct Scenario {
  std::string name, second_step, loop_error, calls, result;
};

std::vector<Scenario> Scenarios() {
  std::vector<Scenario> scenarios;
  std::ifstream file("tests/scenarios/monitored_session.txt");
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> fields;
    for (const absl::string_view field : absl::StrSplit(line, '|')) {
      fields.emplace_back(absl::StripAsciiWhitespace(field));
    }
    EXPECT_EQ(fields.size(), 5u) << line;
    if (fields.size() != 5) continue;
    scenarios.push_back(
        {fields[0], fields[1], fields[2], fields[3], fields[4]});
  }
  return scenarios;
}

// "ABORTED text", or "-" for none.
absl::Status ErrorOf(const std::string& text) {
  if (text == "-") return absl::OkStatus();
  const size_t space = std::min(text.find(' '), text.size());
  for (int code = 1; code <= 16; ++code) {
    const auto status_code = static_cast<absl::StatusCode>(code);
    if (absl::StatusCodeToString(status_code) == text.substr(0, space)) {
      return absl::Status(status_code, text.substr(space));
    }
  }
  ADD_FAILURE() << text;
  return absl::UnknownError(text);
}

std::string CallsOf(const std::string& words) {
  const std::map<std::string, std::string> meanings = {
      {"step", "a before,b before,a after,b after"},
      {"half", "a before,b before,a after"},
      {"anew", "a created,b created"},
      {"end", "a end,b end"}};
  std::vector<std::string> calls;
  for (const absl::string_view word : absl::StrSplit(words, ' ')) {
    calls.push_back(meanings.at(std::string(word)));
  }
  return absl::StrJoin(calls, ",");
}

TEST(MonitoredTraining, CallsHooksInTheirOrderHoweverItEnds) {
  const std::vector<Scenario> scenarios = Scenarios();
  ASSERT_FALSE(scenarios.empty());
  for (const Scenario& scenario : scenarios) {
    SCOPED_TRACE(scenario.name);
    CountingModel model;
    const Variable extra(model.scope.Named("extra"), 0.0f, {.resource = true});
    Node* drop = model.scope.AddNode("DestroyResourceOp", {extra.ref()});
    std::vector<std::string> calls;
    auto a = std::make_shared<RecordingHook>("a", &calls);
    auto b = std::make_shared<RecordingHook>("b", &calls);
    a->args.fetches = {model.w};
    auto session = MonitoredTrainingSession(model.graph, {.hooks = {a, b}});
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_THAT(calls,
                ElementsAre("a begin", "b begin", "a created", "b created"));
    calls.clear();
    absl::Status status;
    for (int i = 0; i < 2 && status.ok() && !(*session)->ShouldStop(); ++i) {
      if (i == 1) {
        a->request_stop = scenario.second_step == "stop";
        if (scenario.second_step.starts_with("error ")) {
          a->after_error = ErrorOf(scenario.second_step.substr(6));
        }
        if (LacksValue(a->after_error)) {
          SLUICE_ASSERT_OK((*session)->session()->Run(drop));
        }
      }
      status = (*session)->Run({}, {}, {model.train}, nullptr);
    }
    if (a->request_stop) {
      EXPECT_TRUE((*session)->ShouldStop());
      EXPECT_THAT((*session)->Run({}, {}, {model.train}, nullptr),
                  StatusIs(absl::StatusCode::kFailedPrecondition,
                           "Run called even after should_stop requested."));
    }
    if (status.ok()) status = ErrorOf(scenario.loop_error);
    EXPECT_EQ(absl::StatusCodeToString((*session)->Close(status).code()),
              scenario.result);
    EXPECT_EQ(absl::StrJoin(calls, ","), CallsOf(scenario.calls));
    EXPECT_TRUE((*session)->ShouldStop());
  }
}

// Keeps the coordinator of each session; copies share their state.
struct CoordinatorKeeper : SessionRunHook {
  absl::Status AfterCreateSession(std::shared_ptr<Session>,
                                  Coordinator& coordinator) override {
    coordinators.push_back(coordinator);
    return absl::OkStatus();
  }
  std::vector<Coordinator> coordinators;
};

TEST(MonitoredTraining, AThreadMayBeTheFirstToSeeAnEmptyPs) {
  const std::string empty = "Attempting to use uninitialized value w";
  struct Case {
    std::string text;
    bool value_gone, lost;
  };
  for (const Case& c : {Case{empty, true, true}, Case{empty, false, false},
                        Case{"not this", true, false}}) {
    CountingModel model;
    const Variable extra(model.scope.Named("extra"), 0.0f, {.resource = true});
    Node* drop = model.scope.AddNode("DestroyResourceOp", {extra.ref()});
    auto keeper = std::make_shared<CoordinatorKeeper>();
    auto session = MonitoredTrainingSession(model.graph, {.hooks = {keeper}});
    ASSERT_TRUE(session.ok()) << session.status();
    SLUICE_ASSERT_OK((*session)->Run({}, {}, {model.train}, nullptr));
    if (c.value_gone) SLUICE_ASSERT_OK((*session)->session()->Run(drop));
    keeper->coordinators[0].RequestStop(FailedPrecondition(c.text));
    EXPECT_EQ((*session)->ShouldStop(), !c.lost);
    EXPECT_EQ(keeper->coordinators.size(), c.lost ? 2u : 1u);
    EXPECT_EQ((*session)->Close().ok(), c.lost);
  }
}

TEST(MonitoredTraining, FetchesAndFeedsOfHooksJoinTheStep) {
  CountingModel model;
  const Output x = model.scope.Named("x").Add(
      "Placeholder", {},
      {{"dtype", DType::kFloat}, {"shape", PartialShape::Scalar()}});
  const Output y = model.scope.Named("y").Add("Neg", {x});
  std::vector<std::string> calls;
  auto feeder = std::make_shared<RecordingHook>("feeder", &calls);
  feeder->args = {.fetches = {y}, .feeds = {{x, Tensor::Scalar(4.0f)}}};
  auto session = MonitoredTrainingSession(model.graph, {.hooks = {feeder}});
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<Tensor> values;
  SLUICE_ASSERT_OK((*session)->Run({}, {y}, {}, &values));
  EXPECT_EQ(values[0].scalar<float>(), -4.0f);
  EXPECT_THAT((*session)->Run({{x, Tensor::Scalar(1.0f)}}, {y}, {}, &values),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("fed by a SessionRunHook and user. "
                                 "Conflict(s): x:0")));
}

TEST(MonitoredTraining, AStepFunctionMayRunWithAndWithoutHooks) {
  CountingModel model;
  std::vector<std::string> calls;
  auto hook = std::make_shared<RecordingHook>("h", &calls);
  auto session = MonitoredTrainingSession(model.graph, {.hooks = {hook}});
  ASSERT_TRUE(session.ok()) << session.status();
  calls.clear();
  SLUICE_ASSERT_OK(
      (*session)->RunStepFn([&](MonitoredSession::StepContext& context) {
        std::vector<Tensor> value;
        SLUICE_RETURN_IF_ERROR(
            context.session().Run({}, {model.w}, {}, &value));
        EXPECT_TRUE(calls.empty());
        context.RequestStop();
        return absl::OkStatus();
      }));
  EXPECT_TRUE((*session)->ShouldStop());
}

TEST(MonitoredTraining, QueueRunnersFillQueuesAndTheirEndEndsTheTraining) {
  CountingModel model;
  const Scope& scope = model.scope;
  const AttrMap types = {
      {"component_types", std::vector<DType>{DType::kInt64}}};
  const Output queue = scope.Named("q").Add("FIFOQueueV2", {}, types);
  const Variable epoch(
      scope.Named("epoch"), Tensor::Scalar<int64_t>(0),
      {.trainable = false, .collections = {keys::kLocalVariables}});
  const Output next = scope.Add("CountUpTo", {epoch.ref()}, {{"limit", 3}});
  Node* enqueue = scope.AddNode("QueueEnqueueV2", {queue, next});
  const Output item = scope.Add("QueueDequeueV2", {queue}, types);
  AddQueueRunner(model.graph, MakeQueueRunner(scope, queue, {enqueue}));
  ASSERT_TRUE(scope.ok()) << scope.status();
  auto session = MonitoredTrainingSession(model.graph);
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<int64_t> items;
  absl::Status status;
  while (status.ok() && !(*session)->ShouldStop()) {
    std::vector<Tensor> values;
    status = (*session)->Run({}, {item}, {}, &values);
    if (status.ok()) items.push_back(values[0].scalar<int64_t>());
  }
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  SLUICE_EXPECT_OK((*session)->Close(status));
  EXPECT_THAT(items, ElementsAre(0, 1, 2));
}

using MonitoredCluster = ClusterTest;

TEST_F(MonitoredCluster, AWorkerWaitsForTheChief) {
  CountingModel worker_model("/job:ps/task:0");
  CountingModel chief_model("/job:ps/task:0");
  absl::StatusOr<std::unique_ptr<MonitoredSession>> worker;
  LogCapture log;
  std::thread waiting([&] {
    worker = MonitoredTrainingSession(
        worker_model.graph, {.master = worker1_->target(), .is_chief = false});
  });
  const auto waits = [&] {
    for (const std::string& line : log.lines()) {
      if (line.find("Waiting for model to be ready.  Ready_for_local_init_op:"
                    "  Variables not initialized: w, global_step") == 0) {
        return true;
      }
    }
    return false;
  };
  while (!waits()) std::this_thread::yield();
  auto chief = MonitoredTrainingSession(chief_model.graph,
                                        {.master = worker0_->target()});
  ASSERT_TRUE(chief.ok()) << chief.status();
  waiting.join();
  ASSERT_TRUE(worker.ok()) << worker.status();
  SLUICE_ASSERT_OK((*chief)->Run({}, {}, {chief_model.train}, nullptr));
  SLUICE_ASSERT_OK((*worker)->Run({}, {}, {worker_model.train}, nullptr));
  EXPECT_EQ(*GlobalStep(*(*worker)->session(), worker_model.step), 2);
  SLUICE_EXPECT_OK((*worker)->Close());
  SLUICE_EXPECT_OK((*chief)->Close());
}

TEST_F(MonitoredCluster, AVariableThatNobodyInitializesIsAnErrorAtOnce) {
  CountingModel model("/job:ps/task:0");
  const Variable best(model.scope.Device("/job:ps/task:0").Named("best"), 0.0f,
                      {.trainable = false, .collections = {"kept"}});
  auto keeper = std::make_shared<CoordinatorKeeper>();
  auto session = MonitoredTrainingSession(
      model.graph, {.master = worker0_->target(), .hooks = {keeper}});
  ASSERT_TRUE(session.ok()) << session.status();
  SLUICE_ASSERT_OK((*session)->Run({}, {}, {model.train}, nullptr));
  EXPECT_THAT(
      (*session)->Run({}, {best.value()}, {}, nullptr),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("Attempting to use uninitialized value best")));
  // Nobody was made to begin anew.
  EXPECT_EQ(keeper->coordinators.size(), 1u);
  EXPECT_EQ(*GlobalStep(*(*session)->session(), model.step), 1);
  SLUICE_EXPECT_OK((*session)->Close());
}

TEST(MonitoredTraining, ACreatorThatCannotTellIsAskedOnceForAnotherSession) {
  struct PlainCreator : SessionCreator {
    explicit PlainCreator(CountingModel& m) : model(m) {}
    absl::StatusOr<std::shared_ptr<Session>> CreateSession() override {
      SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<Session> session,
                              Session::Create({}, model.graph));
      SLUICE_RETURN_IF_ERROR(session->Run(model.w.initializer()));
      SLUICE_RETURN_IF_ERROR(session->Run(model.step.initializer()));
      return session;
    }
    CountingModel& model;
  };
  CountingModel model;
  const Variable best(model.scope.Named("best"), 0.0f);
  auto keeper = std::make_shared<CoordinatorKeeper>();
  auto session = MonitoredSession::Create(
      model.graph, std::make_unique<PlainCreator>(model), {keeper});
  ASSERT_TRUE(session.ok()) << session.status();
  SLUICE_ASSERT_OK((*session)->Run({}, {}, {model.train}, nullptr));
  EXPECT_THAT((*session)->Run({}, {best.value()}, {}, nullptr),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("uninitialized value best")));
  EXPECT_EQ(keeper->coordinators.size(), 2u);
}

TEST_F(MonitoredCluster, TrainingGoesOnAfterAParameterServerWasRestarted) {
  const TempDir dir;
  CountingModel model("/job:ps/task:0");
  LogCapture log;
  auto session =
      MonitoredTrainingSession(model.graph, {.master = worker0_->target(),
                                             .checkpoint_dir = dir.path(),
                                             .hooks = {StopAt(50)},
                                             .save_checkpoint_steps = 10});
  ASSERT_TRUE(session.ok()) << session.status();
  int steps = 0;
  SLUICE_ASSERT_OK(TrainToTheEnd(**session, model.train, [&] {
    if (++steps != 35) return;
    SLUICE_EXPECT_OK(ps_->Stop());
    ps_ = nullptr;
    ps_ = Start("ps", 0);
  }));
  // From 30 again: 35 steps before, 20 after.
  EXPECT_EQ(steps, 55);
  EXPECT_THAT(log.lines(),
              Contains("Restoring parameters from " + (dir / "model.ckpt-30")));
  EXPECT_THAT(log.lines(), Contains(HasSubstr("An error was raised")));
  EXPECT_EQ(LatestCheckpoint(RealFileSystem(), dir.path()),
            dir / "model.ckpt-50");
}

// Worker i has gradient i + 1; each update takes the mean of two.
struct SyncModel {
  explicit SyncModel(int task) {
    const Scope there = Scope(graph).Device(ReplicaDeviceSetter(
        {.ps_tasks = 1, .worker_device = StrCat("/job:worker/task:", task)}));
    w = Variable(there.Named("w"), Tensor::Scalar(0.0f));
    step = GetOrCreateGlobalStep(there);
    const Output loss =
        there.Add("Mul", {w, there.Scalar(static_cast<float>(task + 1))});
    train = optimizer.Minimize(there, loss, {.global_step = step});
    EXPECT_TRUE(there.ok()) << there.status();
  }
  Graph graph;
  SyncReplicasOptimizer optimizer{
      std::make_shared<GradientDescentOptimizer>(1.0), 2};
  Variable w, step;
  Node* train = nullptr;
};

TEST_F(MonitoredCluster, SynchronousWorkersApplyTheMeanOfTheirGradients) {
  SyncModel models[2] = {SyncModel(0), SyncModel(1)};
  const std::string targets[2] = {worker0_->target(), worker1_->target()};
  float results[2] = {0, 0};
  absl::Status statuses[2];
  // A worker that runs ahead would take the other's token.
  std::barrier<> pace(2);
  const auto work = [&](int task) -> absl::Status {
    SyncModel& model = models[task];
    SLUICE_ASSIGN_OR_RETURN(
        auto session,
        MonitoredTrainingSession(
            model.graph,
            {.master = targets[task],
             .is_chief = task == 0,
             .hooks = {model.optimizer.MakeSessionRunHook(task == 0, 0)}}));
    for (int i = 0; i < 10; ++i) {
      absl::Status status = session->Run({}, {}, {model.train}, nullptr);
      if (!status.ok()) {
        pace.arrive_and_drop();
        return status;
      }
      pace.arrive_and_wait();
    }
    SLUICE_ASSIGN_OR_RETURN(const Tensor w, session->session()->Eval(model.w));
    results[task] = w.scalar<float>();
    return session->Close();
  };
  std::thread other([&] { statuses[1] = work(1); });
  statuses[0] = work(0);
  other.join();
  SLUICE_EXPECT_OK(statuses[0]);
  SLUICE_EXPECT_OK(statuses[1]);
  EXPECT_EQ(results[0], -15.0f);
  EXPECT_EQ(results[1], -15.0f);
}

}  // namespace
}  // namespace sluice
