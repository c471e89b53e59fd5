#include "sluice/executor/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "sluice/base/sanitizers.h"
#include "sluice/graph/scope.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr char kDevice[] = "/job:a/replica:0/task:0/device:CPU:0";

// Builds a graph, compiles it and runs it.
class ExecutorTest : public testing::Test {
 protected:
  Output Feed(const std::string& name, DType dtype) {
    feeds_.push_back(name);
    return scope_.Named("feed").Add("_Recv", {},
                                    Transfer(name, {{"tensor_type", dtype}}));
  }
  void Fetch(const std::string& name, Output value) {
    fetches_.push_back(name);
    scope_.Named("fetch").AddNode("_Send", {value}, Transfer(name, {}));
  }

  void Compile() {
    SLUICE_ASSERT_OK(scope_.status());
    auto program = Program::Compile(
        graph_, device_, feeds_, fetches_,
        [&](const Node& node) -> absl::StatusOr<Kernel*> {
          SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                                  MakeKernel(node, device_));
          kernels_.push_back(std::move(kernel));
          return kernels_.back().get();
        });
    ASSERT_TRUE(program.ok()) << program.status();
    executor_ = std::make_unique<Executor>(*std::move(program));
  }

  // A step under way.
  struct Running {
    Step step;
    Cancellation cancellation;
    std::vector<Tensor> feeds, fetches;
    std::atomic<int> errors{0};
    Notification over;
    absl::Status status;
    absl::Status Wait() {
      EXPECT_TRUE(over.WaitFor(std::chrono::seconds(60)));
      return status;
    }
    float scalar(int i = 0) { return fetches[i].scalar<float>(); }
  };
  // `cancellation` is the step's own unless given.
  std::unique_ptr<Running> Start(std::vector<Tensor> feeds = {},
                                 Cancellation* cancellation = nullptr) {
    auto run = std::make_unique<Running>();
    run->step.id = 1;
    run->step.cancellation =
        cancellation != nullptr ? cancellation : &run->cancellation;
    run->step.clock = &RealClock();
    run->feeds = std::move(feeds);
    run->fetches.resize(fetches_.size());
    Executor::Args args;
    args.step = &run->step;
    args.feeds = run->feeds;
    args.fetches = run->fetches;
    args.on_error = [run = run.get()](const absl::Status& status) {
      ++run->errors;
      run->step.cancellation->Cancel(status);
    };
    executor_->Run(std::move(args), [run = run.get()](absl::Status status) {
      EXPECT_FALSE(run->over.HasBeenNotified());
      run->status = std::move(status);
      run->over.Notify();
    });
    return run;
  }

  static AttrMap Transfer(const std::string& name, AttrMap attrs) {
    attrs.Set("tensor_name", name);
    attrs.Set("send_device", std::string(kDevice));
    attrs.Set("recv_device", std::string(kDevice));
    attrs.Set("send_device_incarnation", int64_t{1});
    attrs.Set("client_terminated", true);
    return attrs;
  }

  Graph graph_;
  Scope scope_{graph_};
  Device device_{*DeviceName::Parse(kDevice), 1};
  std::vector<std::string> feeds_, fetches_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::unique_ptr<Executor> executor_;
  Cancellation cancellation_;
};

TEST_F(ExecutorTest, RunsWhatIsReadyOnTheCallersThread) {
  const Output x = Feed("x", DType::kFloat);
  Fetch("y", scope_.Add("Mul", {x, scope_.Add("Neg", {x})}));
  Compile();
  for (float value : {2.0f, 3.0f}) {
    auto run = Start({Tensor::Scalar(value)});
    ASSERT_TRUE(run->over.HasBeenNotified());
    SLUICE_ASSERT_OK(run->status);
    EXPECT_EQ(run->scalar(), -value * value);
  }
}

TEST_F(ExecutorTest, AFeedOfAnotherTypeIsAnError) {
  Fetch("y", scope_.Add("Neg", {Feed("x", DType::kFloat)}));
  Compile();
  EXPECT_THAT(Start({Tensor::Scalar<int32_t>(1)})->Wait(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("The value fed for x is of type int32")));
}

TEST_F(ExecutorTest, AnErrorNamesItsNodeAndIsReportedOnce) {
  const Output x = Feed("x", DType::kInt32);
  Fetch("y", scope_.Named("bad").Add("FloorDiv", {x, x}));
  Fetch("z", scope_.Add("Neg", {x}));
  Compile();
  auto run = Start({Tensor::Scalar<int32_t>(0)});
  EXPECT_THAT(run->Wait(), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("{{node bad}}")));
  EXPECT_EQ(run->errors, 1);
  SLUICE_EXPECT_OK(Start({Tensor::Scalar<int32_t>(1)})->Wait());
}

TEST_F(ExecutorTest, OnlyTheTakenBranchRuns) {
  const Output x = Feed("x", DType::kInt32);
  const Output p = Feed("p", DType::kBool);
  Node* choice = scope_.AddNode("Switch", {x, p});
  // Dividing by zero would fail.
  const Output zero = scope_.Add("Sub", {choice->output(0), choice->output(0)});
  const Output no = scope_.Add("FloorDiv", {choice->output(0), zero});
  const Output yes = scope_.Add("Neg", {choice->output(1)});
  Node* merge = scope_.AddNode("Merge", {no, yes});
  Fetch("y", merge->output(0));
  Fetch("index", merge->output(1));
  Compile();
  auto run = Start({Tensor::Scalar<int32_t>(7), Tensor::Scalar(true)});
  SLUICE_ASSERT_OK(run->Wait());
  EXPECT_EQ(run->fetches[0].scalar<int32_t>(), -7);
  EXPECT_EQ(run->fetches[1].scalar<int32_t>(), 1);
  EXPECT_FALSE(
      Start({Tensor::Scalar<int32_t>(7), Tensor::Scalar(false)})->Wait().ok());
}

TEST_F(ExecutorTest, ADeadFetchIsAnError) {
  Node* choice = scope_.AddNode(
      "Switch", {Feed("x", DType::kFloat), Feed("p", DType::kBool)});
  Fetch("y", choice->output(1));
  Compile();
  EXPECT_FALSE(
      Start({Tensor::Scalar(1.0f), Tensor::Scalar(false)})->Wait().ok());
  SLUICE_EXPECT_OK(Start({Tensor::Scalar(1.0f), Tensor::Scalar(true)})->Wait());
}

// while (i < limit) i += 1.
class LoopTest : public ExecutorTest {
 protected:
  void BuildLoop() {
    const AttrMap frame = {{"frame_name", std::string("loop")}};
    AttrMap constant = frame;
    constant.Set("is_constant", true);
    const Output enter = scope_.Add("Enter", {scope_.Scalar(0.0f)}, frame);
    const Output limit =
        scope_.Add("Enter", {Feed("limit", DType::kFloat)}, constant);
    const Output one = scope_.Add("Enter", {scope_.Scalar(1.0f)}, constant);
    Node* merge = scope_.AddNode("Merge", {enter, enter});
    const Output less = scope_.Add("Less", {merge->output(0), limit});
    Node* exit_or_not = scope_.AddNode(
        "Switch", {merge->output(0), scope_.Add("LoopCond", {less})});
    const Output next = scope_.Add(
        "NextIteration", {scope_.Add("AddV2", {exit_or_not->output(1), one})});
    SLUICE_EXPECT_OK(graph_.SetInput(merge, 1, next));
    Fetch("i", scope_.Add("Exit", {exit_or_not->output(0)}));
    Compile();
  }
};

TEST_F(LoopTest, LoopsRunAsLongAsTheirConditionHolds) {
  BuildLoop();
  for (float limit : {0.0f, 1.0f, 1000.0f}) {
    auto run = Start({Tensor::Scalar(limit)});
    SLUICE_ASSERT_OK(run->Wait());
    EXPECT_EQ(run->scalar(), limit);
  }
}

TEST_F(LoopTest, AnEndlessLoopCanBeCancelled) {
  BuildLoop();
  const int64_t before = KernelsRun();
  std::thread canceller([&] {
    while (KernelsRun() == before) std::this_thread::yield();
    cancellation_.Cancel(Cancelled("enough"));
  });
  // 2^24 + 1 is 2^24 as a float, so the loop never gets there.
  auto run = Start({Tensor::Scalar(1e30f)}, &cancellation_);
  EXPECT_TRUE(absl::IsCancelled(run->Wait())) << run->status;
  canceller.join();
}

TEST_F(LoopTest, ALongLoopLeavesANetworkThread) {
  BuildLoop();
  // It is not the first time that takes long.
  SLUICE_ASSERT_OK(Start({Tensor::Scalar(1.0f)})->Wait());
  std::unique_ptr<Running> run;
  Notification returned;
  std::thread network([&] {
    MarkNetworkThread();
    run = Start({Tensor::Scalar(1e30f)}, &cancellation_);
    returned.Notify();
  });
  EXPECT_TRUE(returned.WaitFor(std::chrono::seconds(20)));
  cancellation_.Cancel(Cancelled("enough"));
  network.join();
  EXPECT_TRUE(absl::IsCancelled(run->Wait())) << run->status;
}

// Also when its last segment is the one after which others have their say: with
// more segments beside the loop it comes to that at another length.
class LoopOfAnyLength : public LoopTest,
                        public testing::WithParamInterface<int> {};

TEST_P(LoopOfAnyLength, EndsOnTheComputePool) {
  for (int i = 0; i < GetParam(); ++i) {
    scope_.AddNode("Switch", {scope_.Scalar(1.0f), scope_.Scalar(true)});
  }
  BuildLoop();
  SLUICE_ASSERT_OK(Start({Tensor::Scalar(1.0f)})->Wait());
  std::thread network([&] {
    MarkNetworkThread();
    for (int limit = 1; limit < 700; ++limit) {
      auto run = Start({Tensor::Scalar(static_cast<float>(limit))});
      SLUICE_ASSERT_OK(run->Wait());
      EXPECT_EQ(run->scalar(), static_cast<float>(limit));
    }
  });
  network.join();
}

INSTANTIATE_TEST_SUITE_P(Beside, LoopOfAnyLength, testing::Range(0, 7));

// The sanitizer keeps much of what was freed.
constexpr int64_t kSomeMemory = (kAddressSanitizer ? 1000 : 30) << 20;

// Some of it is ready at each moment.
TEST_F(ExecutorTest, ALoopTakesNoMemoryWhileItGoesOn) {
  const AttrMap frame = {{"frame_name", std::string("loop")}};
  AttrMap constant = frame;
  constant.Set("is_constant", true);
  const Output enter = scope_.Add("Enter", {scope_.Scalar(0.0f)}, frame);
  const Output yes = scope_.Add("Enter", {scope_.Scalar(true)}, constant);
  Node* merge = scope_.AddNode("Merge", {enter, enter});
  const Output next = scope_.Add("NextIteration", {merge->output(0)});
  SLUICE_ASSERT_OK(graph_.SetInput(merge, 1, next));
  Output value = merge->output(0);
  for (int i = 0; i < 3; ++i) {
    value = scope_.AddNode("Switch", {value, yes})->output(1);
  }
  Compile();
  const auto pages = [] {
    int64_t all, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident;
  };
  const int64_t kernels = KernelsRun();
  std::thread canceller([&] {
    const auto await = [&](int64_t count) {
      while (KernelsRun() < kernels + count) std::this_thread::yield();
    };
    await(100'000);
    const int64_t before = pages();
    await(5'000'000);
    EXPECT_LT((pages() - before) * getpagesize(), kSomeMemory);
    cancellation_.Cancel(Cancelled("enough"));
  });
  EXPECT_TRUE(absl::IsCancelled(Start({}, &cancellation_)->Wait()));
  canceller.join();
}

TEST_F(ExecutorTest, AKernelThatWaitsDoesNotBlockAndGoesOnLater) {
  const AttrMap types = {
      {"component_types", std::vector<DType>{DType::kFloat}}};
  AttrMap shared = types;
  shared.Set("shared_name", std::string("q"));
  const Output q = scope_.Add("FIFOQueueV2", {}, shared);
  Fetch("y", scope_.Add("Neg", {scope_.Add("QueueDequeueV2", {q}, types)}));
  Compile();
  auto waiting = Start();
  EXPECT_FALSE(waiting->over.HasBeenNotified());

  auto cancelled = Start();
  cancelled->cancellation.Cancel(Cancelled("enough"));
  EXPECT_TRUE(absl::IsCancelled(cancelled->Wait()));
  EXPECT_FALSE(waiting->over.HasBeenNotified());
  waiting->cancellation.Cancel(Cancelled("too"));
  EXPECT_TRUE(absl::IsCancelled(waiting->Wait()));
}

TEST_F(ExecutorTest, ManyStepsMayRunAtOnce) {
  const Output x = Feed("x", DType::kFloat);
  Output y = x;
  for (int i = 0; i < 20; ++i) y = scope_.Add("AddV2", {y, x});
  Fetch("y", y);
  Compile();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        auto run = Start({Tensor::Scalar(static_cast<float>(t))});
        SLUICE_ASSERT_OK(run->Wait());
        EXPECT_EQ(run->scalar(), 21.0f * t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// One value with very many consumers; each waits for all the others, too.
TEST_F(ExecutorTest, ManyEdgesBetweenSegmentsAreCompiled) {
  const Output x = Feed("x", DType::kFloat);
  std::vector<Output> readers;
  for (int i = 0; i < 3000; ++i) readers.push_back(scope_.Add("Neg", {x}));
  Fetch("y", scope_.Add("AddN", readers));
  Compile();
  auto run = Start({Tensor::Scalar(1.0f)});
  SLUICE_ASSERT_OK(run->Wait());
  EXPECT_EQ(run->scalar(), -3000.0f);
}

}  // namespace
}  // namespace sluice
