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

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kNoValue[] = "Attempting to use uninitialized value w";

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

// Runs a ManagedSession whose body fails once, after a save at step 3; perhaps
// with the value of a variable gone.
struct LostOnce {
  absl::Status Run(const absl::Status& loss, bool recover,
                   bool value_gone = false) {
    SupervisedModel model;
    const Scope scope(model.graph);
    const Variable extra(scope.Named("extra"), 0.0f, {.resource = true});
    Node* drop = scope.AddNode("DestroyResourceOp", {extra.ref()});
    Supervisor supervisor(model.graph, {.logdir = dir.path(),
                                        .global_step = model.step,
                                        .save_summaries_secs = 0,
                                        .save_model_secs = 0,
                                        .recover = recover});
    return supervisor.ManagedSession({}, [&](Session& session) -> absl::Status {
      SLUICE_ASSIGN_OR_RETURN(const int64_t at,
                              GlobalStep(session, model.step));
      began_at.push_back(at);
      for (int i = 0; i < 3; ++i) {
        SLUICE_RETURN_IF_ERROR(session.Run(model.train));
      }
      if (began_at.size() > 1) return absl::OkStatus();
      SLUICE_RETURN_IF_ERROR(
          supervisor.saver()
              ->Save(session, supervisor.save_path(), {.global_step = 3})
              .status());
      SLUICE_RETURN_IF_ERROR(session.Run(model.train));
      if (value_gone) SLUICE_RETURN_IF_ERROR(session.Run(drop));
      return loss;
    });
  }
  TempDir dir;
  std::vector<int64_t> began_at;
};

TEST(Supervisor, RecoversInANewSession) {
  for (const absl::Status& loss :
       {absl::AbortedError("lost"), absl::UnavailableError("gone"),
        absl::FailedPreconditionError(kNoValue)}) {
    LostOnce run;
    const bool value_gone = absl::IsFailedPrecondition(loss);
    SLUICE_EXPECT_OK(run.Run(loss, true, value_gone));
    EXPECT_THAT(run.began_at, ElementsAre(0, 3));
    // One run, one file of events.
    EXPECT_EQ(RealFileSystem().Glob(run.dir / "events.out.tfevents.*")->size(),
              1u);
  }
}

TEST(Supervisor, DoesNotRecoverUnlessToldToNorFromOtherErrors) {
  LostOnce untold, other;
  EXPECT_THAT(untold.Run(absl::AbortedError("lost"), false),
              StatusIs(absl::StatusCode::kAborted, "lost"));
  EXPECT_THAT(untold.began_at, ElementsAre(0));
  EXPECT_THAT(other.Run(absl::InternalError("mine"), true),
              StatusIs(absl::StatusCode::kInternal, "mine"));
  EXPECT_THAT(other.began_at, ElementsAre(0));
}

TEST(Supervisor, DoesNotRecoverFromAValueThatNobodyGave) {
  LostOnce run;
  EXPECT_THAT(run.Run(absl::FailedPreconditionError(kNoValue), true),
              StatusIs(absl::StatusCode::kFailedPrecondition, kNoValue));
  EXPECT_THAT(run.began_at, ElementsAre(0));
}

TEST(Supervisor, RecoversFromWhatAThreadMet) {
  const TempDir dir;
  SupervisedModel model;
  Supervisor supervisor(model.graph, {.recover = true});
  int sessions = 0;
  SLUICE_EXPECT_OK(supervisor.ManagedSession({}, [&](Session&) {
    if (++sessions == 1) {
      supervisor.Loop(0, [] { return absl::UnavailableError("thread"); });
      supervisor.WaitForStop();
    }
    return absl::OkStatus();
  }));
  EXPECT_EQ(sessions, 2);
}

TEST(Supervisor, ATrainLoopBeginsAnewAfterALoss) {
  const TempDir dir;
  SupervisedModel model;
  Supervisor supervisor(model.graph,
                        {.logdir = dir.path(), .global_step = model.step});
  int calls = 0;
  SLUICE_EXPECT_OK(
      BasicTrainLoop(supervisor, {}, [&](Session& session) -> absl::Status {
        if (++calls == 3) return absl::AbortedError("lost");
        SLUICE_RETURN_IF_ERROR(session.Run(model.train));
        if (calls == 6) supervisor.RequestStop();
        return absl::OkStatus();
      }));
  EXPECT_EQ(calls, 6);
}

TEST(Supervisor, StopsWithoutClosingItsEventsIfTold) {
  const TempDir dir;
  SupervisedModel model;
  Supervisor supervisor(model.graph,
                        {.logdir = dir.path(), .global_step = model.step});
  auto session = supervisor.PrepareOrWaitForSession(
      {}, {.start_services = false, .max_wait_secs = 5});
  ASSERT_TRUE(session.ok()) << session.status();
  SLUICE_EXPECT_OK(supervisor.StartQueueRunners(*session));
  const Tensor summary = Tensor::Scalar(pb::Summary().SerializeAsString());
  SLUICE_EXPECT_OK(supervisor.Stop({.close_summary_writer = false}));
  SLUICE_EXPECT_OK(supervisor.SummaryComputed(**session, summary, 7));
  SLUICE_EXPECT_OK(supervisor.SummaryComputed(**session, summary));
  SLUICE_EXPECT_OK(supervisor.Stop());
  EXPECT_TRUE(supervisor.ShouldStop());
}

}  // namespace
}  // namespace sluice
