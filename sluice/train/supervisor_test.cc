#include "sluice/train/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "sluice/base/testing/temp_dir.h"
#include "sluice/io/checkpoint_state.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/server/testing/cluster_test.h"
#include "sluice/train/global_step.h"
#include "sluice/train/optimizers.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// A variable, and a step counter that is an int32 without a name of its own, as
// old programs have it.
struct SupervisedModel {
  explicit SupervisedModel(const std::string& device = "") {
    const Scope there = Scope(graph).Device(device);
    w = Variable(there.Named("w"), Tensor::Scalar(0.0f));
    step = Variable(there, Tensor::Scalar<int32_t>(0));
    train = GradientDescentOptimizer(1.0).Minimize(
        there, there.Add("Identity", {w}), {.global_step = step});
    EXPECT_TRUE(there.ok()) << there.status();
  }
  Graph graph;
  Variable w, step;
  Node* train = nullptr;
};

TEST(Supervisor, SavesAndRestoresInItsDirectory) {
  const TempDir dir;
  for (int run = 0; run < 2; ++run) {
    SupervisedModel model;
    Supervisor supervisor(model.graph,
                          {.logdir = dir.path(), .global_step = model.step});
    SLUICE_ASSERT_OK(
        supervisor.ManagedSession({}, [&](Session& session) -> absl::Status {
          SLUICE_ASSIGN_OR_RETURN(const int64_t at,
                                  GlobalStep(session, model.step));
          EXPECT_EQ(at, run * 3);
          for (int i = 0; i < 3; ++i) {
            SLUICE_RETURN_IF_ERROR(session.Run(model.train));
          }
          // The services save in their own time; this is for the next run.
          return supervisor.saver()
              ->Save(session, supervisor.save_path(),
                     {.global_step = (run + 1) * 3})
              .status();
        }));
  }
  EXPECT_TRUE(RealFileSystem().Exists(dir / "graph.pbtxt"));
  EXPECT_EQ(RealFileSystem().Glob(dir / "events.out.tfevents.*")->size(), 2u);
}

TEST(Supervisor, ReportsTheErrorOfTheBodyAndThatOfAThread) {
  {
    SupervisedModel model;
    Supervisor supervisor(model.graph);
    EXPECT_THAT(supervisor.ManagedSession(
                    {}, [](Session&) { return absl::InternalError("body"); }),
                StatusIs(absl::StatusCode::kInternal, "body"));
  }
  {
    SupervisedModel model;
    Supervisor supervisor(model.graph);
    EXPECT_THAT(
        supervisor.ManagedSession({},
                                  [&](Session&) -> absl::Status {
                                    supervisor.Loop(0, [] {
                                      return absl::DataLossError("thread");
                                    });
                                    while (!supervisor.ShouldStop()) {
                                      std::this_thread::yield();
                                    }
                                    return absl::OkStatus();
                                  }),
        StatusIs(absl::StatusCode::kDataLoss, "thread"));
  }
}

TEST(Supervisor, TheEndOfTheInputIsNoError) {
  SupervisedModel model;
  Supervisor supervisor(model.graph);
  SLUICE_EXPECT_OK(supervisor.ManagedSession(
      {}, [](Session&) { return absl::OutOfRangeError("no more"); }));
}

TEST(Supervisor, AWorkerNeedsVariablesWithADevice) {
  SupervisedModel model;
  Supervisor supervisor(model.graph, {.is_chief = false});
  EXPECT_THAT(supervisor.PrepareOrWaitForSession({}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("When using replicas, all Variables must have "
                                 "their device set: w")));
}

using SupervisedCluster = ClusterTest;

TEST_F(SupervisedCluster, WorkersTrainOneModel) {
  const TempDir dir;
  SupervisedModel chief_model("/job:ps/task:0");
  SupervisedModel worker_model("/job:ps/task:0");
  Supervisor chief(chief_model.graph,
                   {.logdir = dir.path(), .global_step = chief_model.step});
  Supervisor worker(worker_model.graph,
                    {.is_chief = false, .global_step = worker_model.step});
  const auto train = [](SupervisedModel& model) {
    return [&model](Session& session) -> absl::Status {
      for (int i = 0; i < 50; ++i) {
        SLUICE_RETURN_IF_ERROR(session.Run(model.train));
      }
      return absl::OkStatus();
    };
  };
  absl::Status worker_status;
  std::thread other([&] {
    worker_status =
        worker.ManagedSession({worker1_->target()}, train(worker_model));
  });
  SLUICE_EXPECT_OK(
      chief.ManagedSession({worker0_->target()}, train(chief_model)));
  other.join();
  SLUICE_EXPECT_OK(worker_status);
  auto session = Open(worker0_->target(), chief_model.graph);
  EXPECT_EQ(*GlobalStep(*session, chief_model.step), 100);
  EXPECT_TRUE(LatestCheckpoint(RealFileSystem(), dir.path()).has_value());
}

}  // namespace
}  // namespace sluice
