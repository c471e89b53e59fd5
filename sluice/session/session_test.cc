#include "sluice/session/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <climits>
#include <future>
#include <thread>

#include "sluice/executor/executor.h"
#include "sluice/graph/scope.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using testing::HasSubstr;

Output Placeholder(const Scope& scope, DType dtype, const PartialShape& shape) {
  return scope.Add("Placeholder", {}, {{"dtype", dtype}, {"shape", shape}});
}

// A graph, a scope to build it with and a local session to run it.
class SessionTest : public testing::Test {
 protected:
  std::vector<Tensor> Run(const std::vector<Session::Feed>& feeds,
                          const std::vector<Output>& fetches,
                          const std::vector<Node*>& targets = {}) {
    EXPECT_TRUE(scope_.ok()) << scope_.status();
    if (session_ == nullptr) session_ = *Session::Create({}, graph_);
    std::vector<Tensor> out;
    status_ = session_->Run(feeds, fetches, targets, &out);
    return out;
  }
  float Scalar(const std::vector<Session::Feed>& feeds, Output fetch) {
    const std::vector<Tensor> out = Run(feeds, {fetch});
    EXPECT_TRUE(status_.ok()) << status_;
    return status_.ok() ? out[0].scalar<float>() : NAN;
  }

  Graph graph_;
  Scope scope_{graph_};
  std::unique_ptr<Session> session_;
  absl::Status status_;
};

TEST_F(SessionTest, ComputesWhatIsFetched) {
  const Output x = Placeholder(scope_, DType::kFloat, PartialShape::Scalar());
  const Output y = scope_.Add("Mul", {x, scope_.Scalar(3.0f)});
  EXPECT_EQ(Scalar({{x, Tensor::Scalar(2.0f)}}, y), 6.0f);
  EXPECT_EQ(Scalar({{x, Tensor::Scalar(5.0f)}}, y), 15.0f);
}

TEST_F(SessionTest, SeesNodesAddedBetweenRuns) {
  const Output a = scope_.Scalar(1.0f);
  EXPECT_EQ(Scalar({}, a), 1.0f);
  const Output b = scope_.Add("AddV2", {a, a});
  EXPECT_EQ(Scalar({}, b), 2.0f);
}

TEST_F(SessionTest, AChainOfAThousandKernelsRunsAThousandKernels) {
  const Output x = Placeholder(scope_, DType::kFloat, PartialShape::Scalar());
  const Output one = Placeholder(scope_, DType::kFloat, PartialShape::Scalar());
  Output y = x;
  for (int i = 0; i < 1000; ++i) y = scope_.Add("AddV2", {y, one});
  const std::vector<Session::Feed> feeds = {{x, Tensor::Scalar(0.0f)},
                                            {one, Tensor::Scalar(1.0f)}};
  EXPECT_EQ(Scalar(feeds, y), 1000.0f);
  const int64_t before = KernelsRun();
  EXPECT_EQ(Scalar(feeds, y), 1000.0f);
  EXPECT_GE(KernelsRun() - before, 1000);
}

TEST_F(SessionTest, VariablesKeepTheirValueBetweenSteps) {
  const Output v = scope_.Named("v").Add(
      "VariableV2", {},
      {{"shape", PartialShape::Scalar()}, {"dtype", DType::kFloat}});
  Node* init = scope_.AddNode("Assign", {v, scope_.Scalar(10.0f)});
  const Output read = scope_.Add("Identity", {v});
  Node* add = scope_.AddNode("AssignAdd", {v, scope_.Scalar(1.0f)});
  Run({}, {read});
  EXPECT_THAT(status_,
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("Attempting to use uninitialized value v")));
  Run({}, {}, {init});
  EXPECT_EQ(Scalar({}, read), 10.0f);
  for (int i = 0; i < 3; ++i) Run({}, {}, {add});
  EXPECT_EQ(Scalar({}, read), 13.0f);
}

TEST_F(SessionTest, AReadThroughIdentitySeesAnUpdateThatItIsOrderedAfter) {
  const Output v = scope_.Named("v").Add(
      "VariableV2", {},
      {{"shape", PartialShape::Scalar()}, {"dtype", DType::kFloat}});
  Node* init = scope_.AddNode("Assign", {v, scope_.Scalar(1.0f)});
  // The identity runs before the update; its consumer after. With TensorFlow
  // the consumer sees the new value, and synchronous training needs that.
  const Output alias = scope_.Add("Identity", {v});
  Node* add =
      scope_.Control({alias}).AddNode("AssignAdd", {v, scope_.Scalar(1.0f)});
  const Output later = scope_.Control({add}).Add("Mul", {alias, alias});
  Run({}, {}, {init});
  EXPECT_EQ(Scalar({}, later), 4.0f);
}

TEST_F(SessionTest, OnlyTheTakenBranchOfASwitchRuns) {
  const Output pred = Placeholder(scope_, DType::kBool, PartialShape::Scalar());
  const Output x = Placeholder(scope_, DType::kFloat, PartialShape::Scalar());
  const std::vector<Output> sides = scope_.AddMulti("Switch", {x, pred});
  const Output when_false = scope_.Add("Neg", {sides[0]});
  const Output when_true = scope_.Add("Square", {sides[1]});
  const Output merged = scope_.AddMulti("Merge", {when_false, when_true})[0];
  const auto feeds = [&](bool p) {
    return std::vector<Session::Feed>{{pred, Tensor::Scalar(p)},
                                      {x, Tensor::Scalar(3.0f)}};
  };
  EXPECT_EQ(Scalar(feeds(true), merged), 9.0f);
  EXPECT_EQ(Scalar(feeds(false), merged), -3.0f);
  Run(feeds(false), {when_true});
  EXPECT_THAT(status_, StatusIs(absl::StatusCode::kInvalidArgument,
                                "Retval[0] does not have value"));
}

// i = 0; while (i < limit) i += step
Output CountingLoop(const Scope& scope, Output start, Output limit, Output step,
                    int parallel) {
  const AttrMap frame = {{"frame_name", "loop"},
                         {"parallel_iterations", parallel}};
  AttrMap constant = frame;
  constant.Set("is_constant", true);
  const Output enter = scope.Add("Enter", {start}, frame);
  const Output limit_in = scope.Add("Enter", {limit}, constant);
  const Output step_in = scope.Add("Enter", {step}, constant);
  // The back edge is wired when NextIteration exists.
  Graph& graph = scope.graph();
  Node* merge = *graph.AddNode({"merge", "Merge", {enter, enter}, {}, {}, ""});
  const Output less = scope.Add("Less", {merge->output(0), limit_in});
  const Output cond = scope.Add("LoopCond", {less});
  const std::vector<Output> sides =
      scope.AddMulti("Switch", {merge->output(0), cond});
  const Output next =
      scope.Add("NextIteration", {scope.Add("AddV2", {sides[1], step_in})});
  EXPECT_TRUE(graph.SetInput(merge, 1, next).ok());
  return scope.Add("Exit", {sides[0]});
}

TEST_F(SessionTest, ALoopRunsUntilItsConditionIsFalse) {
  for (int parallel : {1, 10}) {
    Graph graph;
    Scope scope(graph);
    const Output limit =
        Placeholder(scope, DType::kFloat, PartialShape::Scalar());
    const Output exit = CountingLoop(scope, scope.Scalar(0.0f), limit,
                                     scope.Scalar(1.0f), parallel);
    ASSERT_TRUE(scope.ok()) << scope.status();
    auto session = *Session::Create({}, graph);
    std::vector<Tensor> out;
    SLUICE_ASSERT_OK(
        session->Run({{limit, Tensor::Scalar(10000.0f)}}, {exit}, {}, &out));
    EXPECT_EQ(out[0].scalar<float>(), 10000.0f);
    SLUICE_ASSERT_OK(
        session->Run({{limit, Tensor::Scalar(-1.0f)}}, {exit}, {}, &out));
    EXPECT_EQ(out[0].scalar<float>(), 0.0f);
  }
}

TEST_F(SessionTest, ATensorCanBeFetchedTwice) {
  const Output x = scope_.Scalar(1.0f);
  const Output y = scope_.Scalar(2.0f);
  const std::vector<Tensor> out = Run({}, {x, y, x});
  SLUICE_ASSERT_OK(status_);
  EXPECT_EQ(out[0].scalar<float>(), 1.0f);
  EXPECT_EQ(out[1].scalar<float>(), 2.0f);
  EXPECT_EQ(out[2].scalar<float>(), 1.0f);
}

TEST_F(SessionTest, AResetOfNoTargetClosesLocalSessions) {
  const Output x = scope_.Scalar(1.0f);
  EXPECT_EQ(Scalar({}, x), 1.0f);
  SLUICE_EXPECT_OK(Session::Reset({}, {}));
  Run({}, {x});
  EXPECT_THAT(status_, StatusIs(absl::StatusCode::kCancelled,
                                "Session has been closed."));
  SLUICE_EXPECT_OK(session_->Close());
  session_ = nullptr;
  EXPECT_EQ(Scalar({}, x), 1.0f);
  EXPECT_THAT(Session::Reset({.target = "elsewhere://x"}, {}),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("No session factory registered")));
}

TEST_F(SessionTest, AClosedSessionListsNoDevices) {
  session_ = *Session::Create({}, graph_);
  SLUICE_EXPECT_OK(session_->ListDevices().status());
  SLUICE_EXPECT_OK(session_->Close());
  EXPECT_THAT(
      session_->ListDevices().status(),
      StatusIs(absl::StatusCode::kCancelled, "Session has been closed."));
}

TEST_F(SessionTest, AFailingNodeIsNamed) {
  const Output x =
      Placeholder(scope_.Named("x"), DType::kInt32, PartialShape::Scalar());
  const Output zero =
      Placeholder(scope_, DType::kInt32, PartialShape::Scalar());
  const Output bad = scope_.Named("bad").Add("FloorDiv", {x, zero});
  Run({{x, Tensor::Scalar<int32_t>(1)}, {zero, Tensor::Scalar<int32_t>(0)}},
      {bad});
  EXPECT_THAT(status_, StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("[[{{node bad}}]]")));
  Run({{zero, Tensor::Scalar<int32_t>(1)}}, {bad});
  EXPECT_THAT(
      status_,
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("You must feed a value for placeholder tensor 'x'")));
  // Also one that cannot be made.
  const Output queue = scope_.Named("queue").Add(
      "RandomShuffleQueueV2", {},
      {{"component_types", std::vector<DType>{DType::kFloat}},
       {"capacity", 1},
       {"min_after_dequeue", 5}});
  Run({}, {}, {queue.node});
  EXPECT_THAT(status_, StatusIs(absl::StatusCode::kInvalidArgument,
                                "min_after_dequeue 5 must be < capacity 1"
                                "\n\t [[{{node queue}}]]"));
}

TEST_F(SessionTest, WrongNamesAndEmptyRequestsAreErrors) {
  const Output x = scope_.Scalar(1.0f);
  Run({}, {});
  EXPECT_THAT(status_, StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("at least one target")));
  Run({{x, Tensor::Scalar(1.0f)}, {x, Tensor::Scalar(1.0f)}},
      {scope_.Add("Neg", {x})});
  EXPECT_THAT(status_, StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("fed more than once")));
  EXPECT_THAT(session_->Prepare({{}, {"nothing:0"}, {}}).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("nothing:0")));
}

TEST_F(SessionTest, ManyThreadsRunStepsAtOnce) {
  const Output x = Placeholder(scope_, DType::kFloat, PartialShape::Scalar());
  const Output y = scope_.Add("Square", {scope_.Add("Neg", {x})});
  EXPECT_EQ(Scalar({{x, Tensor::Scalar(2.0f)}}, y), 4.0f);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const float value = static_cast<float>(t * 1000 + i);
        std::vector<Tensor> out;
        const absl::Status s =
            session_->Run({{x, Tensor::Scalar(value)}}, {y}, {}, &out);
        if (!s.ok() || out[0].scalar<float>() != value * value) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(SessionTest, ADequeueThatWaitsEndsWithItsTimeoutAndTheSessionGoesOn) {
  const Output q =
      scope_.Add("FIFOQueueV2", {},
                 {{"component_types", std::vector<DType>{DType::kFloat}},
                  {"capacity", 10}});
  const Output got =
      scope_.Add("QueueDequeueV2", {q},
                 {{"component_types", std::vector<DType>{DType::kFloat}}});
  Node* put = scope_.AddNode("QueueEnqueueV2", {q, scope_.Scalar(7.0f)});
  session_ = *Session::Create({}, graph_);
  RunOptions options;
  options.timeout_ms = 50;
  std::vector<Tensor> out;
  EXPECT_EQ(session_->Run({}, {got}, {}, options, &out, nullptr).code(),
            absl::StatusCode::kDeadlineExceeded);
  SLUICE_ASSERT_OK(session_->Run({}, {}, {put}, nullptr));
  SLUICE_ASSERT_OK(session_->Run({}, {got}, {}, &out));
  EXPECT_EQ(out[0].scalar<float>(), 7.0f);
}

TEST_F(SessionTest, AnEndlessLoopEndsWithItsTimeoutAndTheSessionGoesOn) {
  const AttrMap frame = {{"frame_name", std::string("loop")}};
  const Output enter = scope_.Add("Enter", {scope_.Scalar(true)}, frame);
  Node* merge = scope_.AddNode("Merge", {enter, enter});
  Node* exit_or_not = scope_.AddNode(
      "Switch", {merge->output(0), scope_.Add("LoopCond", {merge->output(0)})});
  SLUICE_ASSERT_OK(graph_.SetInput(
      merge, 1, scope_.Add("NextIteration", {exit_or_not->output(1)})));
  const Output never = scope_.Add("Exit", {exit_or_not->output(0)});
  const Output one = scope_.Scalar(1.0f);
  session_ = *Session::Create({}, graph_);
  RunOptions options;
  options.timeout_ms = 50;
  std::vector<Tensor> out;
  EXPECT_EQ(session_->Run({}, {never}, {}, options, &out, nullptr).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Scalar({}, one), 1.0f);
}

TEST_F(SessionTest, CloseCancelsAStepThatWaits) {
  const Output q =
      scope_.Add("FIFOQueueV2", {},
                 {{"component_types", std::vector<DType>{DType::kFloat}}});
  const Output got =
      scope_.Add("QueueDequeueV2", {q},
                 {{"component_types", std::vector<DType>{DType::kFloat}}});
  const Output one = scope_.Scalar(1.0f);
  EXPECT_EQ(Scalar({}, one), 1.0f);
  absl::Status waited;
  std::thread waiter([&] {
    std::vector<Tensor> out;
    waited = session_->Run({}, {got}, {}, &out);
  });
  while (WaitTable::Global().List().empty()) std::this_thread::yield();
  SLUICE_EXPECT_OK(session_->Close());
  waiter.join();
  EXPECT_THAT(waited, StatusIs(absl::StatusCode::kCancelled, testing::_));
  Run({}, {one});
  EXPECT_FALSE(status_.ok());
}

// Ends when the test says so, and for nobody else.
struct StuckKernel : AsyncKernel {
  static inline std::promise<Done> started;
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction&) {
    return std::make_unique<StuckKernel>();
  }
  void Start(KernelContext&, Done done) override {
    started.set_value(std::move(done));
  }
};
SLUICE_OP(StuckForTest).Stateful().NotDifferentiable();
SLUICE_KERNEL(StuckForTest, kCpu).Class<StuckKernel>();

TEST_F(SessionTest, CloseGivesUpOnAStepThatDoesNotEnd) {
  SessionConfig config;
  config.options.operation_timeout_ms = 100;
  session_ = *Session::Create(config, graph_);
  Node* stuck = scope_.AddNode("StuckForTest", {});
  absl::Status ended;
  std::thread runner([&] { ended = session_->Run({}, {}, {stuck}, nullptr); });
  Done done = StuckKernel::started.get_future().get();
  SLUICE_EXPECT_OK(session_->Close());
  std::move(done)(absl::OkStatus());
  runner.join();
  EXPECT_FALSE(ended.ok());
}

TEST_F(SessionTest, CloseOfAStepThatDoesNotEndCanBeInterrupted) {
  StuckKernel::started = {};
  SessionConfig config;
  std::atomic<bool> interrupted = false;
  config.interrupted = [&] { return interrupted.load(); };
  session_ = *Session::Create(config, graph_);
  Node* stuck = scope_.AddNode("StuckForTest", {});
  std::thread runner([&] {
    session_->Run({}, {}, {stuck}, nullptr)
        .IgnoreError(); /* Either is right. */
  });
  Done done = StuckKernel::started.get_future().get();
  interrupted = true;
  EXPECT_THAT(session_->Close(),
              StatusIs(absl::StatusCode::kCancelled, testing::_));
  std::move(done)(absl::OkStatus());
  runner.join();
}

TEST_F(SessionTest, APartialRunThatWasNotSetUpIsAnError) {
  const Output x = scope_.Scalar(1.0f);
  session_ = *Session::Create({}, graph_);
  const auto not_set_up =
      StatusIs(absl::StatusCode::kInvalidArgument,
               "Must run 'setup' before performing partial runs!");
  std::vector<Tensor> fetched(1);
  const PartialRunArgs args = {{}, {}, {TensorName(x)}, fetched};
  EXPECT_THAT(session_->RunPartially("17", args), not_set_up);
  EXPECT_EQ(Scalar({}, x), 1.0f);
  EXPECT_THAT(session_->RunPartially("17", args), not_set_up);
}

TEST_F(SessionTest, APartialRunThatWaitsEndsWithItsTimeout) {
  const Output q =
      scope_.Add("FIFOQueueV2", {},
                 {{"component_types", std::vector<DType>{DType::kFloat}}});
  const Output got =
      scope_.Add("QueueDequeueV2", {q},
                 {{"component_types", std::vector<DType>{DType::kFloat}}});
  SessionConfig config;
  config.options.operation_timeout_ms = 1000;
  session_ = *Session::Create(config, graph_);
  const absl::StatusOr<std::string> run =
      session_->SetUpPartialRun({{}, {TensorName(got)}, {}});
  SLUICE_ASSERT_OK(run.status());
  std::vector<Tensor> fetched(1);
  EXPECT_THAT(
      session_->RunPartially(*run, {{}, {}, {TensorName(got)}, fetched}),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               "Timed out waiting for notification"));
}

TEST_F(SessionTest, MetadataListsTheNodesOfATracedStep) {
  const Output x = Placeholder(scope_, DType::kFloat, PartialShape::Scalar());
  const Output y = scope_.Named("y").Add("Neg", {x});
  session_ = *Session::Create({}, graph_);
  RunOptions options;
  options.trace = true;
  RunMetadata metadata;
  std::vector<Tensor> out;
  SLUICE_ASSERT_OK(session_->Run({{x, Tensor::Scalar(1.0f)}}, {y}, {}, options,
                                 &out, &metadata));
  ASSERT_EQ(metadata.step_stats.size(), 1u);
  bool found = false;
  for (const NodeStats& node : metadata.step_stats[0].nodes)
    found |= node.node == "y";
  EXPECT_TRUE(found);
}

TEST_F(SessionTest, MetadataHasThePartitionGraphsThatWereAskedFor) {
  const Output x = scope_.Scalar(1.0f);
  session_ = *Session::Create({}, graph_);
  for (const bool wanted : {false, true}) {
    RunOptions options;
    options.trace = true;
    options.partition_graphs = wanted;
    RunMetadata metadata;
    SLUICE_ASSERT_OK(session_->Run({}, {x}, {}, options, nullptr, &metadata));
    EXPECT_EQ(metadata.partition_graphs.size(), wanted ? 1u : 0u);
  }
}

TEST_F(SessionTest, ALocalSessionHasAtLeastOneDeviceAndNotTooMany) {
  SessionConfig config;
  for (const int cpus : {0, -1}) {
    config.options.num_cpus = cpus;
    EXPECT_THAT(Session::Create(config, graph_).status(),
                StatusIs(absl::StatusCode::kNotFound,
                         "No CPU devices are available in this process"));
  }
  config.options.num_cpus = INT_MAX;
  EXPECT_THAT(Session::Create(config, graph_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("2147483647 CPU devices")));
}

TEST_F(SessionTest, ADeviceThatIsNotThereIsNamedOnlyByStepsThatNeedIt) {
  const Output fine = scope_.Scalar(1.0f);
  const Output gpu =
      scope_.Named("far").Device("/device:GPU:0").Add("Neg", {fine});
  EXPECT_EQ(Scalar({}, fine), 1.0f);
  Run({}, {gpu});
  EXPECT_THAT(status_,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("available devices are [ /job:localhost")));
  SessionConfig soft;
  soft.options.allow_soft_placement = true;
  auto session = *Session::Create(soft, graph_);
  std::vector<Tensor> out;
  SLUICE_ASSERT_OK(session->Run({}, {gpu}, {}, &out));
  EXPECT_EQ(out[0].scalar<float>(), -1.0f);
}

}  // namespace
}  // namespace sluice
