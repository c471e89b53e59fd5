// Steps whose feeds and fetches come in several calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "sluice/graph/scope.h"
#include "sluice/server/testing/cluster_test.h"

namespace sluice {
namespace {

using testing::HasSubstr;

// sum = a + 1 on the ps, product = sum * b on the worker.
class PartialRunTest : public ClusterTest {
 protected:
  PartialRunTest() : scope_(graph_) {
    const AttrMap attrs = {{"dtype", DType::kFloat},
                           {"shape", PartialShape::Scalar()}};
    a_ = scope_.Named("a").Add("Placeholder", {}, attrs);
    b_ = scope_.Named("b").Add("Placeholder", {}, attrs);
    sum_ = scope_.Device("/job:ps/task:0")
               .Named("sum")
               .Add("Add", {a_, scope_.Scalar(1.0f)});
    product_ = scope_.Device("/job:worker/task:0")
                   .Named("product")
                   .Add("Mul", {sum_, b_});
  }
  // By direct calls and through the network.
  std::vector<std::string> Targets() {
    return {worker0_->target(), Remote(*worker0_)};
  }
  absl::StatusOr<std::string> SetUp(Session& session) {
    return session.SetUpPartialRun(
        {{"a:0", "b:0"}, {"sum:0", "product:0"}, {}});
  }
  using ClusterTest::SetUp;

  absl::StatusOr<std::vector<float>> Call(
      Session& session, const std::string& run,
      const std::vector<std::pair<std::string, float>>& feeds,
      const std::vector<std::string>& fetches) {
    PartialRunArgs args;
    std::vector<Tensor> values;
    for (const auto& [name, value] : feeds) {
      args.feed_names.push_back(name);
      values.push_back(Tensor::Scalar(value));
    }
    std::vector<Tensor> fetched(fetches.size());
    args.feeds = values;
    args.fetch_names = fetches;
    args.fetches = fetched;
    SLUICE_RETURN_IF_ERROR(session.RunPartially(run, std::move(args)));
    std::vector<float> result;
    for (const Tensor& t : fetched) result.push_back(t.scalar<float>());
    return result;
  }

  Graph graph_;
  Scope scope_;
  Output a_, b_, sum_, product_;
};

TEST_F(PartialRunTest, GoesOnWhereTheLastCallStopped) {
  for (const std::string& target : Targets()) {
    auto session = Open(target, graph_);
    for (float start : {1.0f, 5.0f}) {
      const std::string run = *SetUp(*session);
      EXPECT_EQ(*Call(*session, run, {{"a:0", start}}, {"sum:0"}),
                std::vector<float>{start + 1});
      EXPECT_EQ(*Call(*session, run, {{"b:0", 3.0f}}, {"product:0"}),
                std::vector<float>{3 * (start + 1)});
      EXPECT_THAT(Call(*session, run, {}, {}).status(),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("Must run PartialRunSetup")));
    }
    SLUICE_EXPECT_OK(session->Close());
  }
}

TEST_F(PartialRunTest, OneThatWasNotSetUpIsAnErrorAlsoBeforeTheFirstStep) {
  for (const std::string& target : Targets()) {
    auto session = Open(target, graph_);
    EXPECT_THAT(
        Call(*session, "17", {}, {"sum:0"}).status(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 "Must run PartialRunSetup before performing partial runs"));
  }
}

TEST_F(PartialRunTest, KeepsWhatIsFetchedLater) {
  for (const std::string& target : Targets()) {
    auto session = Open(target, graph_);
    const std::string run = *SetUp(*session);
    EXPECT_EQ(
        *Call(*session, run, {{"a:0", 1.0f}, {"b:0", 4.0f}}, {"product:0"}),
        std::vector<float>{8.0f});
    EXPECT_EQ(*Call(*session, run, {}, {"sum:0"}), std::vector<float>{2.0f});
    SLUICE_EXPECT_OK(session->Close());
  }
}

TEST_F(PartialRunTest, WrongCallsEndIt) {
  const struct {
    std::vector<std::pair<std::string, float>> feeds;
    std::vector<std::string> fetches;
    const char* message;
  } cases[] = {
      {{{"c:0", 1.0f}}, {}, "The feed c:0 was not specified"},
      {{{"a:0", 1.0f}}, {}, "The feed a:0 has already been fed"},
      {{}, {"b:0"}, "The fetch b:0 was not specified"},
      {{}, {"sum:0"}, "The fetch sum:0 has already been fetched"},
      {{}, {"product:0"}, "can't be computed from the feeds"},
  };
  for (const std::string& target : Targets()) {
    auto session = Open(target, graph_);
    for (const auto& c : cases) {
      const std::string run = *SetUp(*session);
      SLUICE_ASSERT_OK(
          Call(*session, run, {{"a:0", 1.0f}}, {"sum:0"}).status());
      EXPECT_THAT(
          Call(*session, run, c.feeds, c.fetches).status(),
          StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)));
      EXPECT_THAT(Call(*session, run, {{"b:0", 1.0f}}, {}).status(),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("Must run PartialRunSetup")));
    }
    SLUICE_EXPECT_OK(session->Close());
  }
}

TEST_F(PartialRunTest, ReportsTheErrorOfATask) {
  scope_.Device("/job:ps/task:0")
      .Named("quotient")
      .Add("FloorDiv", {scope_.Scalar<int32_t>(1),
                        scope_.Add("Cast", {sum_}, {{"DstT", DType::kInt32}})});
  for (const std::string& target : Targets()) {
    auto session = Open(target, graph_);
    const std::string run =
        *session->SetUpPartialRun({{"a:0"}, {"quotient:0"}, {}});
    EXPECT_THAT(Call(*session, run, {{"a:0", -1.0f}}, {"quotient:0"}).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("From /job:ps/replica:0/task:0:")));
    SLUICE_EXPECT_OK(session->Close());
  }
}

TEST_F(PartialRunTest, CloseEndsOneThatWaitsForItsNextCall) {
  for (const std::string& target : Targets()) {
    auto session = Open(target, graph_);
    const std::string run = *SetUp(*session);
    SLUICE_ASSERT_OK(Call(*session, run, {{"a:0", 1.0f}}, {}).status());
    SLUICE_EXPECT_OK(session->Close());
    EXPECT_FALSE(Call(*session, run, {{"b:0", 1.0f}}, {}).ok());
  }
}

// All feeds and fetches have come, but a target goes on.
class BlockedPartialRun : public PartialRunTest {
 protected:
  BlockedPartialRun() {
    const AttrMap types = {
        {"component_types", std::vector<DType>{DType::kFloat}}};
    const Output queue = scope_.Add("FIFOQueueV2", {}, types);
    scope_.Named("get").Add("QueueDequeueV2", {queue}, types);
  }
  std::unique_ptr<Session> OpenWith(const std::string& target,
                                    int64_t timeout_ms) {
    SessionConfig config;
    config.target = target;
    config.options.operation_timeout_ms = timeout_ms;
    return *Session::Create(config, graph_);
  }
  // Starts the run and makes its last call.
  absl::Status RunToTheEnd(Session& session) {
    SLUICE_ASSIGN_OR_RETURN(
        const std::string run,
        session.SetUpPartialRun({{"a:0"}, {"sum:0"}, {"get"}}));
    return Call(session, run, {{"a:0", 1.0f}}, {"sum:0"}).status();
  }
  static void ExpectNothingWaits() {
    while (!WaitTable::Global().List().empty()) std::this_thread::yield();
  }
  // Sessions wait too, while they are opened.
  static void AwaitTheDequeue() {
    const auto dequeues = [](const WaitInfo& wait) {
      return wait.what.starts_with("dequeue");
    };
    while (std::ranges::none_of(WaitTable::Global().List(), dequeues)) {
      std::this_thread::yield();
    }
  }
};

TEST_F(BlockedPartialRun, EndsWhenItsTimeIsUp) {
  for (const std::string& target : Targets()) {
    auto session = OpenWith(target, 1000);
    EXPECT_THAT(RunToTheEnd(*session),
                StatusIs(absl::StatusCode::kDeadlineExceeded, testing::_));
    ExpectNothingWaits();
    SLUICE_EXPECT_OK(session->Close());
  }
}

TEST_F(BlockedPartialRun, EndsWhenItIsInterrupted) {
  for (const std::string& target : Targets()) {
    auto session = OpenWith(target, 0);
    absl::Status status;
    std::thread caller([&] { status = RunToTheEnd(*session); });
    AwaitTheDequeue();
    session->Interrupt();
    caller.join();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled, testing::_));
    SLUICE_EXPECT_OK(session->Close());
    ExpectNothingWaits();
  }
}

TEST_F(PartialRunTest, CloseEndsASetUpThatWaitsForATask) {
  const std::vector<int> ports = FreePorts(2);
  const ClusterSpec spec = {{"ps", {Local(ports[0])}},
                            {"worker", {Local(ports[1])}}};
  const auto worker = *Server::Create(spec, "worker", 0);
  for (const std::string& target : {worker->target(), Remote(*worker)}) {
    auto session = Open(target, graph_);
    absl::Status set_up;
    std::thread caller([&] { set_up = SetUp(*session).status(); });
    while (WaitTable::Global().List().empty()) std::this_thread::yield();
    SLUICE_EXPECT_OK(session->Close());
    caller.join();
    EXPECT_THAT(set_up, StatusIs(absl::StatusCode::kCancelled, testing::_));
    while (!WaitTable::Global().List().empty()) std::this_thread::yield();
  }
}

}  // namespace
}  // namespace sluice
