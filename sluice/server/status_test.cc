// What a task tells of itself, and that nothing of a step stays behind.
#include "sluice/server/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "sluice/base/mutex.h"
#include "sluice/base/sanitizers.h"
#include "sluice/base/testing/eventually.h"
#include "sluice/base/thread_pool.h"
#include "sluice/graph/scope.h"
#include "sluice/proto/server.pb.h"
#include "sluice/server/testing/cluster_test.h"
#include "sluice/tensor/buffer.h"

namespace sluice {
namespace {

using testing::HasSubstr;

class StatusTest : public ClusterTest {
 protected:
  // A step in which a worker waits for what the ps waits for.
  StatusTest() : scope_(graph_) {
    const Scope ps = scope_.Device("/job:ps/task:0");
    const AttrMap types = {
        {"component_types", std::vector<DType>{DType::kFloat}}};
    const Output queue = ps.Named("q").Add("FIFOQueueV2", {}, types);
    const Output element =
        ps.Named("element").Add("QueueDequeueV2", {queue}, types);
    result_ = scope_.Device("/job:worker/task:1").Add("Neg", {element});
  }

  std::vector<pb::TaskStatus> All() const {
    return {ps_->status(), worker0_->status(), worker1_->status()};
  }
  static int RunningSteps(const pb::TaskStatus& status) {
    int steps = 0;
    for (const auto& session : status.sessions()) steps += session.steps_size();
    for (const auto& session : status.served_sessions()) {
      steps += session.steps_size();
    }
    return steps;
  }
  // No task runs, waits for or keeps anything of a step.
  bool Quiet() const {
    for (const pb::TaskStatus& status : All()) {
      if (RunningSteps(status) > 0 || status.transfers_size() > 0) return false;
      for (const auto& wait : status.waits()) {
        if (wait.step_id() != 0) return false;
      }
    }
    return true;
  }
  // The step runs, and waits, on all its tasks.
  bool Waits() const {
    return RunningSteps(ps_->status()) == 1 &&
           RunningSteps(worker0_->status()) == 1 &&
           RunningSteps(worker1_->status()) == 1 &&
           ps_->status().waits_size() >= 2;
  }

  Graph graph_;
  Scope scope_;
  Output result_;
};

TEST_F(StatusTest, ShowsWhatRunsAndWhatItWaitsFor) {
  auto session = Open(Remote(*worker0_), graph_);
  std::thread runner([&] {
    std::vector<Tensor> out;
    session->Run({}, {result_}, {}, &out).IgnoreError();
  });
  EXPECT_TRUE(Eventually([&] { return Waits(); }));
  const pb::TaskStatus master = worker0_->status();
  EXPECT_EQ(master.task(), "/job:worker/replica:0/task:0");
  ASSERT_EQ(master.sessions_size(), 1);
  EXPECT_THAT(master.sessions(0).client(),
              testing::AnyOf(HasSubstr("127.0.0.1"), HasSubstr("::1"),
                             HasSubstr("%3A%3A1")));
  EXPECT_TRUE(
      Eventually([&] { return worker0_->status().sessions(0).held(); }));
  EXPECT_EQ(master.sessions(0).steps(0).running_on_size(), 3);
  EXPECT_EQ(master.peers_size(), 2);
  EXPECT_GE(master.steps_started(), 1);

  const auto ps = FetchTaskStatus(Remote(*ps_), std::chrono::seconds(60));
  ASSERT_TRUE(ps.ok()) << ps.status();
  EXPECT_EQ(ps->target(), ps_->target());
  EXPECT_EQ(ps->served_sessions_size(), 1);
  EXPECT_EQ(ps->served_sessions(0).steps_size(), 1);
  const std::string text = TaskStatusText(*ps);
  EXPECT_THAT(text, HasSubstr("/job:ps/replica:0/task:0 at " + ps_->target()));
  EXPECT_THAT(text, HasSubstr("element on /job:ps/"));
  EXPECT_THAT(text, HasSubstr("RunGraph 1,"));
  ASSERT_EQ(ps->queues_size(), 1);
  EXPECT_EQ(ps->queues(0).kind(), "FIFOQueue");
  EXPECT_EQ(ps->queues(0).elements(), 0);
  EXPECT_EQ(ps->queues(0).taking(), 1);
  EXPECT_THAT(text, HasSubstr("has 0 elements, 0 wait to add, 1 to take"));
  EXPECT_THAT(text, HasSubstr("lanes: 0 B wait to be sent"));
  EXPECT_THAT(TaskStatusJson(*ps), HasSubstr("\"served_sessions\""));

  SLUICE_EXPECT_OK(session->Close());
  runner.join();
  EXPECT_TRUE(Eventually([&] { return Quiet(); }));
  EXPECT_TRUE(Eventually([&] {
    return worker0_->status().sessions_size() == 0 &&
           ps_->status().served_sessions_size() == 0;
  }));
}

TEST_F(StatusTest, CountsBuffersThatAreReusedAndFreshOnes) {
  // Both have happened: a block is fresh once, and reused when it is back.
  for (int i = 0; i < 2; ++i) Tensor(DType::kFloat, {54321});
  const BufferPoolStats before = GetBufferPoolStats();
  const pb::TaskStatus status = ps_->status();
  const BufferPoolStats after = GetBufferPoolStats();
  // Where the address sanitizer watches, nothing is pooled.
  EXPECT_EQ(before.reuses > 0, !kAddressSanitizer);
  EXPECT_GE(status.buffer_hits(), before.reuses);
  EXPECT_LE(status.buffer_hits(), after.reuses);
  EXPECT_GT(before.system_allocations, 0);
  EXPECT_GE(status.buffer_misses(), before.system_allocations);
  EXPECT_LE(status.buffer_misses(), after.system_allocations);
}

TEST_F(StatusTest, CountsTheWorkThatNoThreadHasTaken) {
  const int threads = ComputePool().size();
  std::latch done(threads + 3);
  Notification go;
  for (int i = 0; i < threads + 3; ++i) {
    ComputePool().Schedule([&] {
      go.Wait();
      done.count_down();
    });
  }
  EXPECT_TRUE(Eventually([&] {
    const pb::TaskStatus status = ps_->status();
    return status.pools(0).name() == "compute" &&
           status.pools(0).threads() == threads &&
           status.pools(0).queued() == 3;
  }));
  EXPECT_THAT(TaskStatusText(ps_->status()), HasSubstr("threads, 3 queued"));
  go.Notify();
  done.wait();
}

TEST_F(StatusTest, ATimedOutStepLeavesNothingOnAnyTask) {
  for (const std::string& target : {worker0_->target(), Remote(*worker0_)}) {
    auto session = Open(target, graph_);
    std::vector<Tensor> out;
    RunOptions options;
    options.timeout_ms = 100;
    EXPECT_EQ(session->Run({}, {result_}, {}, options, &out, nullptr).code(),
              absl::StatusCode::kDeadlineExceeded);
    EXPECT_TRUE(Eventually([&] { return Quiet(); }))
        << TaskStatusText(ps_->status());
    EXPECT_GE(worker0_->status().steps_failed(), 1);
  }
}

TEST_F(StatusTest, AStepBetweenTheDevicesOfOneTaskLeavesNothing) {
  pb::ServerDef def;
  ClusterSpec{{"one", {"localhost:0"}}}.ToProto(def.mutable_cluster());
  def.set_job_name("one");
  (*def.mutable_default_session_config()->mutable_device_count())["CPU"] = 2;
  const auto server = *Server::Create(def);
  Graph graph;
  const Scope scope(graph);
  const Output a = scope.Device("/cpu:0").Scalar(3.0f);
  const Output b = scope.Device("/cpu:1").Add("Neg", {a});
  SessionConfig config;
  config.target = server->target();
  config.options.fold_constants = false;
  auto session = *Session::Create(config, graph);
  std::vector<Tensor> out;
  SLUICE_ASSERT_OK(session->Run({}, {b}, {}, &out));
  EXPECT_EQ(out[0].scalar<float>(), -3.0f);
  EXPECT_EQ(server->status().transfers_size(), 0);
  SLUICE_EXPECT_OK(session->Close());
  SLUICE_EXPECT_OK(server->Stop());
}

TEST_F(StatusTest, AStepOfAMasterThatIsGoneLeavesNothing) {
  auto session = Open(worker0_->target(), graph_);
  std::thread runner([&] {
    std::vector<Tensor> out;
    session->Run({}, {result_}, {}, &out).IgnoreError();
  });
  EXPECT_TRUE(Eventually([&] { return Waits(); }));
  SLUICE_EXPECT_OK(worker0_->Stop());
  runner.join();
  EXPECT_TRUE(Eventually([&] {
    return RunningSteps(ps_->status()) == 0 &&
           RunningSteps(worker1_->status()) == 0 &&
           ps_->status().transfers_size() == 0 &&
           worker1_->status().transfers_size() == 0;
  })) << TaskStatusText(ps_->status())
      << TaskStatusText(worker1_->status());
}

// A dequeue that is left waiting by a step that failed elsewhere.
TEST_F(ClusterTest, AFailedStepTakesNothingFromTheNextOnes) {
  Graph graph;
  const Scope scope(graph);
  const Scope ps = scope.Device("/job:ps/task:0");
  const AttrMap types = {
      {"component_types", std::vector<DType>{DType::kFloat}}};
  const Output queue = ps.Add("FIFOQueueV2", {}, types);
  const Output element = ps.Add("QueueDequeueV2", {queue}, types);
  Node* put = ps.AddNode("QueueEnqueueV2", {queue, ps.Scalar(1.0f)});
  const Output size = ps.Add("QueueSizeV2", {queue});
  const Output zero =
      scope.Add("Placeholder", {},
                {{"dtype", DType::kInt32}, {"shape", PartialShape::Scalar()}});
  const Output bad =
      scope.Device("/job:worker/task:1").Add("FloorDiv", {zero, zero});
  auto session = Open(worker0_->target(), graph);
  std::vector<Tensor> out;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(session
                  ->Run({{zero, Tensor::Scalar<int32_t>(0)}}, {element, bad},
                        {}, &out)
                  .code(),
              absl::StatusCode::kInvalidArgument);
    SLUICE_ASSERT_OK(session->Run({}, {}, {put}, nullptr));
    SLUICE_ASSERT_OK(session->Run({}, {size}, {}, &out));
    ASSERT_EQ(out[0].scalar<int32_t>(), 1) << "after " << i << " times";
    SLUICE_ASSERT_OK(session->Run({}, {element}, {}, &out));
  }
}

TEST(TaskStatus, OfNobodySaysWhoDoesNotAnswer) {
  const std::string address = Local(FreePorts(1)[0]);
  const absl::Status status =
      FetchTaskStatus(address, std::chrono::seconds(60)).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("refused"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(address));
}

TEST(AgeText, IsShort) {
  EXPECT_EQ(AgeText(0.0124), "12 ms");
  EXPECT_EQ(AgeText(3.21), "3.2 s");
  EXPECT_EQ(AgeText(61), "61 s");
  EXPECT_EQ(AgeText(900), "15 min");
  EXPECT_EQ(AgeText(72000), "20 h");
}

}  // namespace
}  // namespace sluice
