// What the worker service answers, mostly to requests that nobody meant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/str_replace.h"
#include "sluice/rpc/testing/services_fixture.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

TEST_F(ServicesTest, GraphsThatBelongNowhereAreRefused) {
  const auto registered = [&](const std::string& text) {
    return Call<pb::RegisterGraphResponse>(
        paths::kRegisterGraph, Parsed<pb::RegisterGraphRequest>(text));
  };
  EXPECT_THAT(registered(R"(session_handle: "gone"
                            create_worker_session_called: true)"),
              StatusIs(StatusCode::kAborted,
                       HasSubstr("Session handle is not found: gone")));
  for (const char* device : {"", "/job:a", "nonsense",
                             "/job:x/replica:0/task:0"
                             "/device:CPU:0"}) {
    EXPECT_FALSE(registered(StrCat(R"(graph_def { node { name: "a" op: "NoOp"
                                      device: ")",
                                   device, "\" } }"))
                     .ok())
        << device;
  }
}

TEST_F(ServicesTest, GraphsThatAreNotThereAreAborted) {
  EXPECT_THAT(Call<pb::DeregisterGraphResponse>(
                  paths::kDeregisterGraph,
                  Parsed<pb::DeregisterGraphRequest>(R"(graph_handle: "9")")),
              StatusIs(StatusCode::kAborted,
                       "Graph handle is not found: 9. Possibly, this worker "
                       "just restarted."));
  EXPECT_THAT(Call<pb::RunGraphResponse>(
                  paths::kRunGraph, Parsed<pb::RunGraphRequest>(
                                        R"(graph_handle: "9" session_handle: "s"
                                   create_worker_session_called: true)")),
              StatusIs(StatusCode::kAborted,
                       HasSubstr("Session handle is not found: s")));
  EXPECT_THAT(Call<pb::RunGraphResponse>(
                  paths::kRunGraph,
                  Parsed<pb::RunGraphRequest>(R"(graph_handle: "9")")),
              StatusIs(StatusCode::kAborted,
                       HasSubstr("Graph handle is not found: 9")));
}

// A graph whose client feeds x and fetches its negative.
TEST_F(ServicesTest, RunGraphChecksItsFeedsAndKeys) {
  const std::string device = TaskUnderTest::kDevice;
  const auto transfer = [&](const char* op, const char* type_attr,
                            const char* tensor) {
    return StrCat("op: \"", op, "\" device: \"", device, "\" attr { key: \"",
                  type_attr, R"(" value { type: DT_FLOAT } }
        attr { key: "client_terminated" value { b: true } }
        attr { key: "send_device_incarnation" value { i: 1 } }
        attr { key: "send_device" value { s: ")",
                  device, R"(" } }
        attr { key: "recv_device" value { s: ")",
                  device, R"(" } }
        attr { key: "tensor_name" value { s: ")",
                  tensor, "\" } }");
  };
  pb::RegisterGraphResponse registered;
  SLUICE_ASSERT_OK(Call(
      paths::kRegisterGraph,
      Parsed<pb::RegisterGraphRequest>(StrCat(
          "graph_def { node { name: \"in\" ",
          transfer("_Recv", "tensor_type", "x:0"),
          "} node { name: \"y\" op: \"Neg\" input: \"in\" device: \"", device,
          R"(" attr { key: "T" value { type: DT_FLOAT } } }
          node { name: "out" input: "y" )",
          transfer("_Send", "T", "y:0"), "} }")),
      &registered));
  const auto key = [&](const char* tensor) {
    return StrCat(RendezvousKeyPrefix(device, 1, device, tensor), "0:0");
  };
  const auto run = [&](const std::string& rest,
                       pb::RunGraphResponse* response) {
    auto request = Parsed<pb::RunGraphRequest>(rest);
    request.set_graph_handle(registered.graph_handle());
    request.set_step_id(1);
    return Call(paths::kRunGraph, request, response);
  };
  const std::string feed =
      StrCat("send { name: \"", key("x:0"),
             "\" tensor { dtype: DT_FLOAT float_val: 3 } }");
  const std::string fetch = StrCat("recv_key: \"", key("y:0"), "\"");
  pb::RunGraphResponse response;
  SLUICE_ASSERT_OK(run(feed + fetch, &response));
  ASSERT_EQ(response.recv_size(), 1);
  EXPECT_EQ(response.recv(0).name(), key("y:0"));

  EXPECT_THAT(run(fetch, &response),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("x:0")));
  EXPECT_THAT(run(feed + StrCat("recv_key: \"", key("z:0"), "\""), &response),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("z:0")));
  EXPECT_THAT(run(feed + "recv_key: \"no key\"", &response),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no key")));
  EXPECT_FALSE(run(StrCat("send { name: \"", key("x:0"),
                          "\" tensor { dtype: DT_STRING } }") +
                       fetch,
                   &response)
                   .ok());
  EXPECT_FALSE(run(feed + "is_partial: true", &response).ok());
  EXPECT_THAT(
      run(feed + feed + fetch, &response),
      StatusIs(StatusCode::kInvalidArgument, HasSubstr("was sent twice")));
  EXPECT_THAT(run(absl::StrReplaceAll(
                      feed, {{"float_val: 3",
                              "tensor_shape { dim { size: 536870912 } }"}}) +
                      fetch,
                  &response),
              StatusIs(StatusCode::kResourceExhausted,
                       HasSubstr("limit message_bytes=2147483647")));
  // The step's error may also stand in the answer.
  SLUICE_ASSERT_OK(
      run(fetch + " store_errors_in_response_body: true", &response));
  EXPECT_EQ(response.status_code(), pb::error::INVALID_ARGUMENT);
}

// A restarted task must not take another's graph for the one that is meant.
TEST_F(ServicesTest, AGraphOfAFormerLifeIsNotThere) {
  const auto session =
      Parsed<pb::CreateWorkerSessionRequest>("session_handle: 's'");
  auto graph = Parsed<pb::RegisterGraphRequest>(
      "session_handle: 's' create_worker_session_called: true "
      "graph_def { node { name: 'n' op: 'NoOp' } }");
  graph.mutable_graph_def()->mutable_node(0)->set_device(
      TaskUnderTest::kDevice);
  const auto add_graph = [&](TaskUnderTest& task) {
    pb::CreateWorkerSessionResponse opened;
    SLUICE_EXPECT_OK(task.Call(paths::kCreateWorkerSession, session, &opened));
    pb::RegisterGraphResponse registered;
    SLUICE_EXPECT_OK(task.Call(paths::kRegisterGraph, graph, &registered));
    return registered.graph_handle();
  };
  pb::RunGraphRequest run;
  run.set_graph_handle(add_graph(task_));
  run.set_session_handle("s");
  run.set_create_worker_session_called(true);
  TaskUnderTest restarted;
  add_graph(restarted);
  pb::RunGraphResponse response;
  SLUICE_EXPECT_OK(task_.Call(paths::kRunGraph, run, &response));
  EXPECT_THAT(restarted.Call(paths::kRunGraph, run, &response),
              StatusIs(StatusCode::kAborted, HasSubstr("just restarted")));
}

TEST_F(ServicesTest, ANewLifeOfAMasterEndsTheSessionsOfTheFormer) {
  const auto open = [&](const std::string& request) {
    SLUICE_EXPECT_OK(Call<pb::CreateWorkerSessionResponse>(
        paths::kCreateWorkerSession,
        Parsed<pb::CreateWorkerSessionRequest>(request)));
  };
  open("session_handle: 'a' master_task: 'm' master_incarnation: 1");
  open("session_handle: 'b' master_task: 'm' master_incarnation: 1");
  open("session_handle: 'c' master_task: 'n' master_incarnation: 2");
  open("session_handle: 'd'");
  EXPECT_EQ(task_.worker().num_sessions(), 4);
  open("session_handle: 'e' master_task: 'm' master_incarnation: 3");
  EXPECT_EQ(task_.worker().num_sessions(), 3);
  EXPECT_FALSE(task_.worker().HasSession("a"));
  EXPECT_TRUE(task_.worker().HasSession("e"));
}

// Nobody may be left who would clean up after it.
TEST_F(ServicesTest, AReceiverThatGoesAwayIsForgotten) {
  pb::RecvTensorRequest request;
  request.set_step_id(5);
  request.set_rendezvous_key(
      StrCat(RendezvousKeyPrefix(TaskUnderTest::kDevice,
                                 task_.worker().devices()[0].incarnation,
                                 "/job:b/replica:0/task:0/device:CPU:0", "e"),
             "0:0"));
  const auto call =
      task_.Start(paths::kRecvTensor, request.SerializeAsString());
  EXPECT_EQ(call->answers(), 0);
  EXPECT_EQ(task_.worker().num_steps(), 1);
  call->Cancel();
  EXPECT_EQ(call->answers(), 1);
  EXPECT_EQ(task_.worker().num_steps(), 0);
}

// The last call of a partial run waits for its end, which may never come.
TEST_F(ServicesTest, APartialRunEndsWithTheCallThatWaitsForIt) {
  const std::string device = TaskUnderTest::kDevice;
  pb::RegisterGraphResponse registered;
  SLUICE_ASSERT_OK(Call(paths::kRegisterGraph,
                        Parsed<pb::RegisterGraphRequest>(StrCat(
                            R"(graph_def { node { name: "in" op: "_Recv"
          attr { key: "tensor_type" value { type: DT_FLOAT } }
          attr { key: "tensor_name" value { s: "e" } }
          attr { key: "send_device_incarnation" value { i: 1 } }
          attr { key: "send_device" value { s: ")",
                            device, R"(" } }
          attr { key: "recv_device" value { s: ")",
                            device, "\" } } device: \"", device, "\" } }")),
                        &registered));
  auto request = Parsed<pb::RunGraphRequest>(
      "step_id: 5 is_partial: true is_last_partial_run: true");
  request.set_graph_handle(registered.graph_handle());
  const auto call = task_.Start(paths::kRunGraph, request.SerializeAsString());
  EXPECT_EQ(call->answers(), 0);
  call->Cancel();
  ASSERT_TRUE(call->WaitFor(std::chrono::seconds(60)));
  EXPECT_EQ(call->answers(), 1);
}

TEST_F(ServicesTest, APartialRunThatIsCleanedUpEnds) {
  auto graph = Parsed<pb::RegisterGraphRequest>(R"(graph_def {
      node { name: "q" op: "FIFOQueueV2"
             attr { key: "component_types" value { list { type: DT_FLOAT } } } }
      node { name: "get" op: "QueueDequeueV2" input: "q"
             attr { key: "component_types"
                    value { list { type: DT_FLOAT } } } } })");
  for (pb::NodeDef& node : *graph.mutable_graph_def()->mutable_node()) {
    node.set_device(TaskUnderTest::kDevice);
  }
  pb::RegisterGraphResponse registered;
  SLUICE_ASSERT_OK(Call(paths::kRegisterGraph, graph, &registered));
  auto run = Parsed<pb::RunGraphRequest>("step_id: 5 is_partial: true");
  run.set_graph_handle(registered.graph_handle());
  SLUICE_ASSERT_OK(Call<pb::RunGraphResponse>(paths::kRunGraph, run));
  SLUICE_ASSERT_OK(Call<pb::CleanupGraphResponse>(
      paths::kCleanupGraph, Parsed<pb::CleanupGraphRequest>("step_id: 5")));
  pb::DeregisterGraphRequest deregister;
  deregister.set_graph_handle(registered.graph_handle());
  SLUICE_ASSERT_OK(
      Call<pb::DeregisterGraphResponse>(paths::kDeregisterGraph, deregister));
  // The step would still hold it.
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (task_.worker().num_graphs() > 0 &&
         std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
  EXPECT_EQ(task_.worker().num_graphs(), 0);
}

// A graph with one transfer between these devices.
std::string TransferGraph(const std::string& type, const std::string& from,
                          const std::string& to) {
  return StrCat(R"(graph_def { node { name: "v" op: "Placeholder" device: ")",
                TaskUnderTest::kDevice, R"("
      attr { key: "dtype" value { type: DT_FLOAT } } }
      node { name: "t" op: ")",
                type, type == "_Send" ? R"(" input: "v" )" : "\" ",
                "device: \"", TaskUnderTest::kDevice, R"("
      attr { key: ")",
                type == "_Send" ? "T" : "tensor_type",
                R"(" value { type: DT_FLOAT } }
      attr { key: "tensor_name" value { s: "e" } }
      attr { key: "send_device_incarnation" value { i: 1 } }
      attr { key: "send_device" value { s: ")",
                from, R"(" } } attr { key: "recv_device" value { s: ")", to,
                "\" } } } }");
}

TEST_F(ServicesTest, TransfersThatBeginOrEndElsewhereAreRefused) {
  const std::string here = TaskUnderTest::kDevice;
  const std::string there = "/job:b/replica:0/task:0/device:CPU:0";
  const std::string nowhere = "/job:c/replica:0/task:7/device:CPU:0";
  task_.worker().set_cluster_tasks(
      {TaskUnderTest::kTask, "/job:b/replica:0/task:0"});
  const auto registered = [&](const char* type, const std::string& from,
                              const std::string& to) {
    return Call<pb::RegisterGraphResponse>(
        paths::kRegisterGraph,
        Parsed<pb::RegisterGraphRequest>(TransferGraph(type, from, to)));
  };
  SLUICE_EXPECT_OK(registered("_Send", here, there));
  SLUICE_EXPECT_OK(registered("_Recv", there, here));
  EXPECT_THAT(registered("_Send", there, here),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("The send_device of node t is " + there)));
  EXPECT_THAT(registered("_Recv", here, there),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("The recv_device of node t is " + there)));
  EXPECT_THAT(
      registered("_Recv", nowhere, here),
      StatusIs(StatusCode::kInvalidArgument,
               HasSubstr("What node t receives comes from /job:c/replica:0/"
                         "task:7, which is not in the cluster of /job:a")));
}

// Handles are the master's own; another session's graph is none of its.
TEST_F(WorkerSessionsTest, AGraphIsFoundInItsOwnSessionOnly) {
  SLUICE_ASSERT_OK(OpenWorkerSession("session_handle: 's'"));
  SLUICE_ASSERT_OK(OpenWorkerSession("session_handle: 't'"));
  pb::RunGraphRequest run = Register("s", "node { name: 'n' op: 'NoOp' }");
  run.set_session_handle("t");
  EXPECT_THAT(RunGraph(run), StatusIs(StatusCode::kAborted,
                                      HasSubstr("Graph handle is not found")));
  pb::DeregisterGraphRequest deregister;
  deregister.set_graph_handle(run.graph_handle());
  deregister.set_session_handle("t");
  deregister.set_create_worker_session_called(true);
  EXPECT_TRUE(absl::IsAborted(
      Call<pb::DeregisterGraphResponse>(paths::kDeregisterGraph, deregister)));
  run.set_session_handle("s");
  SLUICE_EXPECT_OK(RunGraph(run));
}

constexpr char kQueue[] = R"(
    node { name: "q" op: "FIFOQueueV2"
           attr { key: "shared_name" value { s: "shared" } }
           attr { key: "component_types" value { list { type: DT_FLOAT } } } })";
constexpr char kDequeue[] = R"(
    node { name: "get" op: "QueueDequeueV2" input: "q"
           attr { key: "component_types" value { list { type: DT_FLOAT } } } })";

TEST_F(WorkerSessionsTest, ThePartialCallsOfAStepAreOfOneGraph) {
  SLUICE_ASSERT_OK(OpenWorkerSession("session_handle: 's'"));
  pb::RunGraphRequest run = Register("s", StrCat(kQueue, kDequeue));
  pb::RunGraphRequest other = Register("s", "node { name: 'n' op: 'NoOp' }");
  run.set_is_partial(true);
  other.set_is_partial(true);
  other.set_step_id(run.step_id());
  SLUICE_ASSERT_OK(RunGraph(run));
  EXPECT_THAT(RunGraph(other), StatusIs(StatusCode::kInvalidArgument,
                                        HasSubstr("runs another graph")));
  SLUICE_EXPECT_OK(DeleteWorkerSession("s"));  // Ends the wait.
}

// Also when its last call is there already.
TEST_F(WorkerSessionsTest, APartialRunEndsWithItsSession) {
  SLUICE_ASSERT_OK(OpenWorkerSession("session_handle: 's'"));
  pb::RunGraphRequest run = Register("s", StrCat(kQueue, kDequeue));
  run.set_is_partial(true);
  run.set_is_last_partial_run(true);
  const auto call = Start(run);
  EXPECT_EQ(call->answers(), 0);
  EXPECT_THAT(RunGraph(run), StatusIs(StatusCode::kInvalidArgument,
                                      HasSubstr("has had its last call")));
  SLUICE_ASSERT_OK(DeleteWorkerSession("s"));
  ASSERT_TRUE(TaskUnderTest::WaitLong(*call));
  EXPECT_FALSE(call->status().ok());
  EXPECT_FALSE(RunGraph(run).ok());
}

TEST_F(ServicesTest, RecvTensorChecksItsKey) {
  const auto recv = [&](const std::string& key) {
    pb::RecvTensorRequest request;
    request.set_step_id(3);
    request.set_rendezvous_key(key);
    return Call<pb::RecvTensorResponse>(paths::kRecvTensor, request);
  };
  EXPECT_TRUE(absl::IsInvalidArgument(recv("")));
  EXPECT_TRUE(absl::IsInvalidArgument(recv("a;b;c;d;e")));
  EXPECT_THAT(recv(StrCat(RendezvousKeyPrefix(TaskUnderTest::kDevice, 1,
                                              TaskUnderTest::kDevice, "e"),
                          "0:0")),
              StatusIs(StatusCode::kAborted,
                       HasSubstr("different device incarnation")));
}

TEST_F(ServicesTest, ALargeTensorComesInChunksToWhoCanTakeThem) {
  Tensor tensor(DType::kFloat, {1000});
  float next = 0;
  for (float& x : tensor.mutable_data<float>()) x = next++;
  const std::string key =
      StrCat(RendezvousKeyPrefix(TaskUnderTest::kDevice,
                                 task_.worker().devices()[0].incarnation,
                                 "/job:b/replica:0/task:0/device:CPU:0", "e"),
             "0:0");
  const auto send = [&] {
    SLUICE_EXPECT_OK(task_.worker().StepRendezvous(5, "")->Send(key, {tensor}));
  };
  const auto recv = [&](const std::string& fields,
                        pb::RecvTensorResponse* response) {
    auto request = Parsed<pb::RecvTensorRequest>("step_id: 5 " + fields);
    request.set_rendezvous_key(key);
    return Call(paths::kRecvTensor, request, response);
  };
  pb::RecvTensorResponse response;
  send();
  SLUICE_ASSERT_OK(recv("request_id: 1", &response));
  EXPECT_EQ(response.tensor().tensor_content().size(), tensor.bytes());
  EXPECT_EQ(response.sluice_total(), 0);

  send();
  SLUICE_ASSERT_OK(recv("request_id: 2 sluice_chunk_bytes: 1500", &response));
  EXPECT_EQ(response.sluice_total(), 4000);
  EXPECT_EQ(response.tensor().tensor_content(), "");
  std::string bytes = response.sluice_chunk();
  EXPECT_EQ(bytes.size(), 1500);
  const auto more = [&](int transfer, int offset) {
    return recv(StrCat("sluice_chunk_bytes: 1500 sluice_transfer: ", transfer,
                       " sluice_offset: ", offset),
                &response);
  };
  for (const int wrong : {4000, 1 << 30}) {
    EXPECT_THAT(more(2, wrong),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("4000")));
  }
  EXPECT_THAT(more(3, 1500),
              StatusIs(StatusCode::kAborted, HasSubstr("Transfer 3")));
  SLUICE_ASSERT_OK(more(2, 1500));
  bytes += response.sluice_chunk();
  SLUICE_ASSERT_OK(more(2, 3000));
  bytes += response.sluice_chunk();
  EXPECT_EQ(bytes, std::string(static_cast<const char*>(tensor.raw()),
                               tensor.bytes()));
  // It is kept no longer than it is needed, or its step.
  EXPECT_EQ(more(2, 1500).code(), StatusCode::kAborted);
  send();
  SLUICE_ASSERT_OK(recv("request_id: 4 sluice_chunk_bytes: 1500", &response));
  SLUICE_ASSERT_OK(Call<pb::CleanupGraphResponse>(
      paths::kCleanupGraph, Parsed<pb::CleanupGraphRequest>("step_id: 5")));
  EXPECT_EQ(more(4, 1500).code(), StatusCode::kAborted);
}

constexpr char kEnqueue[] = R"(
    node { name: "c" op: "Const"
           attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "value" value { tensor { dtype: DT_FLOAT
                                                tensor_shape {} } } } }
    node { name: "put" op: "QueueEnqueueV2" input: "q" input: "c"
           attr { key: "Tcomponents" value { list { type: DT_FLOAT } } } })";

// A step that is left behind would take the next element from another's.
TEST_F(WorkerSessionsTest, AStepEndsWithItsSession) {
  for (const bool restart : {false, true}) {
    SLUICE_ASSERT_OK(OpenWorkerSession(
        "session_handle: 'a' master_task: 'm' master_incarnation: 1"));
    const auto left = Start(Register("a", StrCat(kQueue, kDequeue)));
    EXPECT_EQ(left->answers(), 0);
    if (restart) {
      SLUICE_ASSERT_OK(OpenWorkerSession(
          "session_handle: 'b' master_task: 'm' master_incarnation: 2"));
    } else {
      SLUICE_ASSERT_OK(DeleteWorkerSession("a"));
      SLUICE_ASSERT_OK(OpenWorkerSession(
          "session_handle: 'b' master_task: 'm' master_incarnation: 1"));
    }
    ASSERT_TRUE(TaskUnderTest::WaitLong(*left));
    EXPECT_EQ(left->status().code(), StatusCode::kCancelled) << left->status();
    SLUICE_EXPECT_OK(RunGraph(Register("b", StrCat(kQueue, kEnqueue))));
    SLUICE_EXPECT_OK(RunGraph(Register("b", StrCat(kQueue, kDequeue))));
    SLUICE_ASSERT_OK(DeleteWorkerSession("b"));
  }
}

class UnfinishedTransfers : public WorkerSessionsTest {
 protected:
  // Starts a step of session "s" that sends a large tensor and does not end,
  // and takes the first chunk.
  void Begin() {
    SLUICE_ASSERT_OK(OpenWorkerSession("session_handle: 's'"));
    const uint64_t incarnation = task_.worker().devices()[0].incarnation;
    request_ = Register("s", StrCat(kQueue, kDequeue, R"(
        node { name: "large" op: "Const"
               attr { key: "dtype" value { type: DT_FLOAT } }
               attr { key: "value" value { tensor { dtype: DT_FLOAT float_val: 1
                 tensor_shape { dim { size: 1000 } } } } } }
        node { name: "out" op: "_Send" input: "large"
               attr { key: "T" value { type: DT_FLOAT } }
               attr { key: "tensor_name" value { s: "e" } }
               attr { key: "send_device_incarnation" value { i: )",
                                    static_cast<int64_t>(incarnation), R"( } }
               attr { key: "send_device" value { s: ")",
                                    TaskUnderTest::kDevice, R"(" } }
               attr { key: "recv_device" value { s: ")",
                                    kReceiver, "\" } } }"));
    step_ = Start(request_);
    recv_.set_step_id(request_.step_id());
    recv_.set_rendezvous_key(
        StrCat(RendezvousKeyPrefix(TaskUnderTest::kDevice, incarnation,
                                   kReceiver, "e"),
               "0:0"));
    recv_.set_request_id(7);
    recv_.set_sluice_chunk_bytes(1500);
    pb::RecvTensorResponse response;
    SLUICE_ASSERT_OK(Call(paths::kRecvTensor, recv_, &response));
    ASSERT_EQ(response.sluice_total(), 4000);
    const std::map<int64_t, size_t> left = {{request_.step_id(), 2500}};
    EXPECT_EQ(task_.activity().transfers->BytesLeft(), left);
  }
  void TearDown() override {
    step_->Cancel();
    EXPECT_TRUE(TaskUnderTest::WaitLong(*step_));
  }
  void ExpectGone() {
    EXPECT_TRUE(task_.activity().transfers->BytesLeft().empty());
    recv_.clear_request_id();
    recv_.set_sluice_transfer(7);
    recv_.set_sluice_offset(1500);
    EXPECT_THAT(Call<pb::RecvTensorResponse>(paths::kRecvTensor, recv_),
                StatusIs(StatusCode::kAborted, HasSubstr("Transfer 7")));
  }

  static constexpr char kReceiver[] = "/job:b/replica:0/task:0/device:CPU:0";
  pb::RunGraphRequest request_;
  pb::RecvTensorRequest recv_;
  std::shared_ptr<LocalCall> step_;
};

TEST_F(UnfinishedTransfers, GoWithTheirSession) {
  Begin();
  SLUICE_ASSERT_OK(DeleteWorkerSession("s"));
  ExpectGone();
}

TEST_F(UnfinishedTransfers, GoWithAStepThatItsMasterGaveUp) {
  Begin();
  step_->Cancel();
  ASSERT_TRUE(TaskUnderTest::WaitLong(*step_));
  ExpectGone();
}

// The master of this very task calls its worker without a service.
TEST_F(UnfinishedTransfers, GoWithAStepOfTheTasksOwnMaster) {
  Begin();
  task_.worker().CleanupGraph(request_.step_id(), [](absl::Status) {});
  ExpectGone();
}

TEST_F(WorkerSessionsTest, AMasterMayTryToOpenItAgain) {
  const std::string life = "master_task: 'm' master_incarnation: 1 ";
  SLUICE_ASSERT_OK(OpenWorkerSession(life + "session_handle: 's'"));
  const auto use = task_.activity().masters.Find("s");
  SLUICE_EXPECT_OK(OpenWorkerSession(life + "session_handle: 's'"));
  EXPECT_EQ(task_.activity().masters.Find("s"), use);
  EXPECT_EQ(task_.worker().num_sessions(), 1);
  EXPECT_TRUE(absl::IsAlreadyExists(OpenWorkerSession(
      life + "session_handle: 's' isolate_session_state: true")));
}

TEST_F(WorkerSessionsTest, TheOneThatAllShareIsNobodys) {
  auto graph = Parsed<pb::RegisterGraphRequest>(
      "graph_def { node { name: 'n' op: 'NoOp' } }");
  graph.mutable_graph_def()->mutable_node(0)->set_device(
      TaskUnderTest::kDevice);
  SLUICE_ASSERT_OK(
      Call<pb::RegisterGraphResponse>(paths::kRegisterGraph, graph));
  EXPECT_TRUE(absl::IsInvalidArgument(DeleteWorkerSession("")));
  EXPECT_TRUE(absl::IsInvalidArgument(OpenWorkerSession("")));
  EXPECT_TRUE(task_.worker().HasSession(""));
}

TEST(WorkerSessionLimit, CountsNoSessionsOfAFormerLife) {
  Limits limits;
  limits.sessions = 2;
  TaskUnderTest task(limits);
  const auto open = [&](const std::string& request) {
    pb::CreateWorkerSessionResponse response;
    return task.Call(paths::kCreateWorkerSession,
                     Parsed<pb::CreateWorkerSessionRequest>(request),
                     &response);
  };
  const std::string first = "master_task: 'm' master_incarnation: 1 ";
  SLUICE_ASSERT_OK(open(first + "session_handle: 'a'"));
  SLUICE_ASSERT_OK(open(first + "session_handle: 'b'"));
  EXPECT_THAT(
      open(first + "session_handle: 'c'"),
      StatusIs(StatusCode::kResourceExhausted, HasSubstr("limit sessions=2")));
  SLUICE_EXPECT_OK(open(first + "session_handle: 'b'"));
  SLUICE_EXPECT_OK(
      open("master_task: 'm' master_incarnation: 2 session_handle: 'd'"));
}

}  // namespace
}  // namespace sluice
