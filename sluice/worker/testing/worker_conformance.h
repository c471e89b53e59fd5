// What every WorkerInterface promises to a master: by direct calls or through a
// network.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "sluice/base/mutex.h"
#include "sluice/graph/scope.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/worker/worker_interface.h"

namespace sluice {

struct WorkerUnderTest {
  std::shared_ptr<WorkerInterface> worker;
  std::string device;          // The full name of its only one.
  std::shared_ptr<void> keep;  // What else must live.
  // Lets everything happen; empty where things happen by themselves.
  std::function<void()> run = {};
};
using MakeWorkerUnderTest = WorkerUnderTest (*)();

class WorkerConformance : public testing::TestWithParam<MakeWorkerUnderTest> {
 protected:
  using GraphOr = absl::StatusOr<std::shared_ptr<RegisteredGraph>>;

  // Calls `start` with a callback and waits for what it gets.
  template <typename Result, typename Start>
  Result Await(Result unanswered, Start start) {
    auto done = std::make_shared<Notification>();
    auto result = std::make_shared<Result>(std::move(unanswered));
    start([done, result](Result r) {
      EXPECT_FALSE(done->HasBeenNotified());
      *result = std::move(r);
      done->Notify();
    });
    EXPECT_TRUE(WaitFor(*done));
    return *result;
  }
  bool WaitFor(const Notification& done) const {
    if (w_.run) w_.run();
    return done.WaitFor(std::chrono::seconds(w_.run ? 0 : 60));
  }

  absl::Status CreateSession(const std::string& handle, bool isolated = false) {
    return Await<absl::Status>(Unknown(""), [&](auto done) {
      w_.worker->CreateSession({handle, isolated}, std::move(done));
    });
  }
  absl::Status DeleteSession(const std::string& handle) {
    return Await<absl::Status>(Unknown(""), [&](auto done) {
      w_.worker->DeleteSession(handle, std::move(done));
    });
  }
  // Registers what `scope` built; all of it is placed on the device.
  GraphOr Register(std::shared_ptr<Graph> graph,
                   const std::string& session = "s") {
    for (int id = 0; id < graph->num_nodes(); ++id) {
      graph->node(id)->set_assigned_device(w_.device);
    }
    RegisterGraphRequest request;
    request.session_handle = session;
    request.graph = std::move(graph);
    return Await<GraphOr>(Unknown(""), [&](auto done) {
      w_.worker->RegisterGraph(std::move(request), std::move(done));
    });
  }
  absl::Status Run(RegisteredGraph& graph, Cancellation* cancellation = nullptr,
                   int64_t step_id = 1) {
    return Await<absl::Status>(Unknown(""), [&](auto done) {
      RunGraphRequest request;
      request.graph = &graph;
      request.step_id = step_id;
      request.cancellation = cancellation;
      w_.worker->RunGraph(request, std::move(done));
    });
  }

  // Graphs that set a variable, and that read it.
  static std::shared_ptr<Graph> SetGraph() {
    auto graph = std::make_shared<Graph>();
    Scope scope(*graph);
    scope.Add("Assign", {VariableNode(scope), scope.Scalar(1.0f)});
    return graph;
  }
  static std::shared_ptr<Graph> ReadGraph() {
    auto graph = std::make_shared<Graph>();
    Scope scope(*graph);
    scope.Named("read").Add("Identity", {VariableNode(scope)});
    return graph;
  }
  static Output VariableNode(const Scope& scope) {
    return scope.Named("v").Add(
        "VariableV2", {},
        {{"shape", PartialShape::Scalar()}, {"dtype", DType::kFloat}});
  }

  WorkerUnderTest w_ = GetParam()();
};

TEST_P(WorkerConformance, TellsItsDevices) {
  const auto devices = Await<absl::StatusOr<std::vector<DeviceInfo>>>(
      Unknown(""), [&](auto done) {
        w_.worker->GetStatus(/*wait=*/true, nullptr, std::move(done));
      });
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 1u);
  EXPECT_EQ((*devices)[0].text, w_.device);
  EXPECT_NE((*devices)[0].incarnation, 0u);
}

TEST_P(WorkerConformance, RunsARegisteredGraphAsOftenAsAsked) {
  SLUICE_ASSERT_OK(CreateSession("s"));
  const GraphOr set = Register(SetGraph());
  ASSERT_TRUE(set.ok()) << set.status();
  const GraphOr read = Register(ReadGraph());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(
      Run(**read),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               testing::HasSubstr("Attempting to use uninitialized value v")));
  for (int i = 2; i < 5; ++i) SLUICE_EXPECT_OK(Run(**set, nullptr, i));
  SLUICE_EXPECT_OK(Run(**read, nullptr, 5));
}

TEST_P(WorkerConformance, TellsWhatItRanIfAsked) {
  SLUICE_ASSERT_OK(CreateSession("s"));
  const GraphOr set = Register(SetGraph());
  ASSERT_TRUE(set.ok()) << set.status();
  std::vector<std::shared_ptr<const Graph>> graphs;
  SLUICE_ASSERT_OK(Await<absl::Status>(Unknown(""), [&](auto done) {
    RunGraphRequest request;
    request.graph = set->get();
    request.step_id = 1;
    request.device_graphs = &graphs;
    w_.worker->RunGraph(request, std::move(done));
  }));
  ASSERT_EQ(graphs.size(), 1u);
  EXPECT_NE(graphs[0]->FindNode("v"), nullptr);
}

TEST_P(WorkerConformance, TellsHowLongItsNodesTookIfAsked) {
  SLUICE_ASSERT_OK(CreateSession("s"));
  const GraphOr set = Register(SetGraph());
  ASSERT_TRUE(set.ok()) << set.status();
  StepStatsCollector stats;
  SLUICE_ASSERT_OK(Await<absl::Status>(Unknown(""), [&](auto done) {
    RunGraphRequest request;
    request.graph = set->get();
    request.step_id = 1;
    request.stats = &stats;
    w_.worker->RunGraph(request, std::move(done));
  }));
  const std::vector<StepStatsCollector::DeviceStats> devices = stats.Take();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].device, w_.device);
  EXPECT_THAT(devices[0].nodes,
              testing::Contains(testing::Field(&NodeStats::node, "Assign")));
}

TEST_P(WorkerConformance, TakesGroupsOnceItHasToldItsStatus) {
  const auto devices = Await<absl::StatusOr<std::vector<DeviceInfo>>>(
      Unknown(""), [&](auto done) {
        w_.worker->GetStatus(/*wait=*/true, nullptr, std::move(done));
      });
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_TRUE(w_.worker->TakesGroups());
}

// In process they come through; a task elsewhere says that it takes none.
TEST_P(WorkerConformance, TensorsOfTheClientAreNotLostInSilence) {
  SLUICE_ASSERT_OK(CreateSession("s"));
  auto graph = std::make_shared<Graph>();
  Scope scope(*graph);
  const Output fed =
      scope.Named("fed").Add("_Recv", {},
                             {{"tensor_type", DType::kFloat},
                              {"tensor_name", std::string("x:0")},
                              {"send_device", w_.device},
                              {"send_device_incarnation", int64_t{1}},
                              {"recv_device", w_.device},
                              {"client_terminated", true}});
  scope.Named("fetched").AddNode("_Send", {scope.Add("Neg", {fed})},
                                 {{"tensor_name", std::string("y:0")},
                                  {"send_device", w_.device},
                                  {"send_device_incarnation", int64_t{1}},
                                  {"recv_device", w_.device},
                                  {"client_terminated", true}});
  SLUICE_ASSERT_OK(scope.status());
  for (int id = 0; id < graph->num_nodes(); ++id) {
    graph->node(id)->set_assigned_device(w_.device);
  }
  RegisterGraphRequest registration;
  registration.session_handle = "s";
  registration.graph = graph;
  registration.feeds = {"x:0"};
  registration.fetches = {"y:0"};
  const GraphOr negates = Await<GraphOr>(Unknown(""), [&](auto done) {
    w_.worker->RegisterGraph(std::move(registration), std::move(done));
  });
  ASSERT_TRUE(negates.ok()) << negates.status();
  const std::vector<Tensor> feeds = {Tensor::Scalar(3.0f)};
  std::vector<Tensor> fetches(1);
  const absl::Status status = Await<absl::Status>(Unknown(""), [&](auto done) {
    RunGraphRequest request;
    request.graph = negates->get();
    request.step_id = 1;
    request.feeds = feeds;
    request.fetches = fetches;
    w_.worker->RunGraph(request, std::move(done));
  });
  if (status.ok()) {
    EXPECT_EQ(fetches[0].scalar<float>(), -3.0f);
  } else {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnimplemented,
                                 testing::HasSubstr("takes none")));
  }
}

TEST_P(WorkerConformance, ASessionMayHaveAClusterOfItsOwn) {
  const std::string task = "/job:other/replica:0/task:3";
  SLUICE_ASSERT_OK(Await<absl::Status>(Unknown(""), [&](auto done) {
    CreateSessionRequest request;
    request.handle = "s";
    request.task = task;
    request.cluster = {{task, "localhost:1"}};
    w_.worker->CreateSession(std::move(request), std::move(done));
  }));
  const std::string own_device = w_.device;
  EXPECT_FALSE(Register(SetGraph()).ok()) << "under its usual name";
  w_.device = task + "/device:CPU:0";
  const GraphOr set = Register(SetGraph());
  ASSERT_TRUE(set.ok()) << set.status();
  SLUICE_EXPECT_OK(Run(**set));
  // It is the same task, with the same variables.
  w_.device = own_device;
  SLUICE_ASSERT_OK(CreateSession("t"));
  const GraphOr read = Register(ReadGraph(), "t");
  ASSERT_TRUE(read.ok()) << read.status();
  SLUICE_EXPECT_OK(Run(**read, nullptr, 2));
}

TEST_P(WorkerConformance, AnErrorNamesItsNode) {
  SLUICE_ASSERT_OK(CreateSession("s"));
  const GraphOr read = Register(ReadGraph());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(std::string(Run(**read).message()),
              testing::HasSubstr("{{node read}}"));
}

TEST_P(WorkerConformance, ASessionThatWasNeverOpenedIsAborted) {
  EXPECT_THAT(
      Register(SetGraph(), "nobody").status(),
      StatusIs(absl::StatusCode::kAborted,
               testing::HasSubstr("Session handle is not found: nobody. "
                                  "Possibly this worker")));
}

TEST_P(WorkerConformance, ASessionCanBeOpenedTwiceInTheSameWayOnly) {
  SLUICE_ASSERT_OK(CreateSession("s"));
  SLUICE_EXPECT_OK(CreateSession("s"));
  EXPECT_TRUE(absl::IsAlreadyExists(CreateSession("s", /*isolated=*/true)));
  SLUICE_ASSERT_OK(DeleteSession("s"));
  SLUICE_ASSERT_OK(CreateSession("s"));
}

TEST_P(WorkerConformance,
       ASessionThatWasClosedBeforeItsOpeningCameStaysClosed) {
  SLUICE_ASSERT_OK(DeleteSession("s"));
  EXPECT_TRUE(absl::IsAborted(CreateSession("s")));
}

TEST_P(WorkerConformance, AGraphForAnotherTaskIsRefused) {
  SLUICE_ASSERT_OK(CreateSession("s"));
  std::shared_ptr<Graph> graph = SetGraph();
  w_.device = "/job:elsewhere/replica:0/task:0/device:CPU:0";
  const absl::Status status = Register(graph).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("elsewhere"));
}

TEST_P(WorkerConformance, SessionsShareVariablesUnlessIsolated) {
  SLUICE_ASSERT_OK(CreateSession("s"));
  SLUICE_ASSERT_OK(CreateSession("t"));
  SLUICE_ASSERT_OK(CreateSession("alone", /*isolated=*/true));
  SLUICE_ASSERT_OK(Run(**Register(SetGraph(), "s")));
  SLUICE_EXPECT_OK(Run(**Register(ReadGraph(), "t"), nullptr, 2));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      Run(**Register(ReadGraph(), "alone"), nullptr, 3)));
  // They outlive the session, but not their container.
  SLUICE_ASSERT_OK(DeleteSession("s"));
  SLUICE_EXPECT_OK(Run(**Register(ReadGraph(), "t"), nullptr, 4));
  SLUICE_ASSERT_OK(Await<absl::Status>(Unknown(""), [&](auto done) {
    w_.worker->CleanupAll({}, std::move(done));
  }));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      Run(**Register(ReadGraph(), "t"), nullptr, 5)));
}

TEST_P(WorkerConformance, ACancelledStepEndsWithTheReason) {
  SLUICE_ASSERT_OK(CreateSession("s"));
  auto graph = std::make_shared<Graph>();
  Scope scope(*graph);
  const AttrMap types = {
      {"component_types", std::vector<DType>{DType::kFloat}}};
  scope.Add("QueueDequeueV2", {scope.Add("FIFOQueueV2", {}, types)}, types);
  const GraphOr waits = Register(graph);
  ASSERT_TRUE(waits.ok()) << waits.status();
  Cancellation cancellation;
  Notification over;
  absl::Status status;
  RunGraphRequest request;
  request.graph = waits->get();
  request.step_id = 7;
  request.cancellation = &cancellation;
  w_.worker->RunGraph(request, [&](absl::Status s) {
    status = std::move(s);
    over.Notify();
  });
  EXPECT_FALSE(over.HasBeenNotified());
  cancellation.Cancel(Cancelled("enough"));
  ASSERT_TRUE(WaitFor(over));
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

// Its end may overtake it on the way.
TEST_P(WorkerConformance, AStepThatIsOverDoesNotRunAnyMore) {
  SLUICE_ASSERT_OK(CreateSession("s"));
  auto graph = std::make_shared<Graph>();
  Scope scope(*graph);
  const Output sent = scope.Scalar(1.0f);
  scope.Named("send").AddNode("_Send", {sent},
                              {{"tensor_name", std::string("e")},
                               {"send_device", w_.device},
                               {"send_device_incarnation", int64_t{1}},
                               {"recv_device", w_.device}});
  SLUICE_ASSERT_OK(scope.status());
  const GraphOr sends = Register(graph);
  ASSERT_TRUE(sends.ok()) << sends.status();
  for (const int64_t step : {7, 9}) {
    SLUICE_EXPECT_OK(Run(**sends, nullptr, step));
  }
  SLUICE_ASSERT_OK(Await<absl::Status>(Unknown(""), [&](auto done) {
    w_.worker->CleanupGraph(8, std::move(done));
  }));
  // A peer hears of the end with the next step, at the latest.
  SLUICE_EXPECT_OK(Run(**sends, nullptr, 10));
  EXPECT_THAT(Run(**sends, nullptr, 8),
              StatusIs(absl::StatusCode::kAborted,
                       testing::HasSubstr("Step 8 is over")));
}

TEST_P(WorkerConformance, CleaningUpAStepThatNeverRanIsFine) {
  SLUICE_EXPECT_OK(Await<absl::Status>(Unknown(""), [&](auto done) {
    w_.worker->CleanupGraph(99, std::move(done));
  }));
}

}  // namespace sluice
