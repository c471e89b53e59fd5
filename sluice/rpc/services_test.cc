// What the services answer to requests that nobody meant.
#include "sluice/rpc/services.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <thread>

#include "sluice/kernel/testing/op_test.h"
#include "sluice/proto/master.pb.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/answer.h"
#include "sluice/rpc/client_call.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/testing/task_under_test.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

constexpr const char* kServed[] = {
    paths::kCreateSession,
    paths::kExtendSession,
    paths::kRunStep,
    paths::kCloseSession,
    paths::kListDevices,
    paths::kReset,
    paths::kGetStatus,
    paths::kCreateWorkerSession,
    paths::kDeleteWorkerSession,
    paths::kRegisterGraph,
    paths::kDeregisterGraph,
    paths::kRunGraph,
    paths::kCleanupGraph,
    paths::kCleanupAll,
    paths::kRecvTensor,
    paths::kLogging,
    paths::kTracing,
    paths::kMarkRecvFinished,
};

template <typename Message>
Message Parsed(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message))
      << text;
  return message;
}

class ServicesTest : public testing::Test {
 protected:
  template <typename Response>
  absl::Status Call(const char* path,
                    const google::protobuf::MessageLite& request,
                    Response* response = nullptr) {
    Response unused;
    return task_.Call(path, request, response ? response : &unused);
  }
  // Opens a session with this graph.
  absl::Status Open(const std::string& graph) {
    pb::CreateSessionResponse response;
    const absl::Status status =
        Call(paths::kCreateSession,
             Parsed<pb::CreateSessionRequest>("graph_def {" + graph + "}"),
             &response);
    handle_ = response.session_handle();
    return status;
  }
  absl::Status Run(const std::string& request) {
    auto proto = Parsed<pb::RunStepRequest>(request);
    proto.set_session_handle(handle_);
    return Call<pb::RunStepResponse>(paths::kRunStep, proto);
  }

  TaskUnderTest task_;
  std::string handle_;
};

// Once more through a port: bytes from the wire reach the services no other
// way, and the server must still be there afterwards.
TEST_F(ServicesTest, BytesThatAreNoRequestAreAnErrorAndTheServerLives) {
  GenericServer::Options options;
  options.address = "localhost:0";
  options.handler = task_.handler();
  auto server = *GenericServer::Start(std::move(options));
  auto channel = *RpcChannel::Create(StrCat("localhost:", server->port()));
  const auto call = [&](const char* path, const std::string& bytes) {
    Notification done;
    absl::Status result;
    grpc::Slice slice(bytes);
    RpcChannel::Options wait;
    wait.wait_for_ready = true;
    channel->Call(path, grpc::ByteBuffer(&slice, 1), wait,
                  [&](absl::Status status, grpc::ByteBuffer) {
                    result = std::move(status);
                    done.Notify();
                  });
    EXPECT_TRUE(done.WaitFor(std::chrono::seconds(60)));
    return result;
  };
  for (const char* path : kServed) {
    // A field that is longer than the message, a tag that is none, an endless
    // number, and a nest of groups.
    for (const std::string& bytes :
         {std::string("\x0a\x7f"), std::string("\x07\x07\x07"),
          std::string(20, '\xff'), std::string(100000, '\x0b')}) {
      EXPECT_THAT(call(path, bytes),
                  StatusIs(StatusCode::kInvalidArgument, HasSubstr(path)));
    }
  }
  SLUICE_EXPECT_OK(call("/tensorflow.grpc.WorkerService/GetStatus", ""));
  EXPECT_THAT(call("/tensorflow.WorkerService/Unheard", ""),
              StatusIs(StatusCode::kUnimplemented, HasSubstr("Unheard")));
  SLUICE_EXPECT_OK(call(paths::kGetStatus, ""));
}

struct BadGraph {
  const char* name;
  const char* graph;
  StatusCode code;
  const char* text;
};

const BadGraph kBadGraphs[] = {
    {"Cycle", R"(node { name: "a" op: "NoOp" input: "^b" }
                 node { name: "b" op: "NoOp" input: "^a" })",
     StatusCode::kInvalidArgument, "a"},
    {"SelfCycle", R"(node { name: "a" op: "Identity" input: "a"
                     attr { key: "T" value { type: DT_FLOAT } } })",
     StatusCode::kInvalidArgument, "a"},
    {"DanglingInput", R"(node { name: "a" op: "NoOp" input: "^gone" })",
     StatusCode::kInvalidArgument, "gone"},
    {"OutputThatIsNotThere", R"(node { name: "a" op: "NoOp" }
                 node { name: "b" op: "Identity" input: "a:3"
                        attr { key: "T" value { type: DT_FLOAT } } })",
     StatusCode::kInvalidArgument, "b"},
    {"DuplicateName", R"(node { name: "a" op: "NoOp" }
                         node { name: "a" op: "NoOp" })",
     StatusCode::kInvalidArgument, "a"},
    {"WrongArity", R"(node { name: "a" op: "Neg"
                      attr { key: "T" value { type: DT_FLOAT } } })",
     StatusCode::kInvalidArgument, "a"},
    {"WrongDtype", R"(node { name: "a" op: "Placeholder"
                      attr { key: "dtype" value { type: DT_FLOAT } } }
                      node { name: "b" op: "Neg" input: "a"
                      attr { key: "T" value { type: DT_INT32 } } })",
     StatusCode::kInvalidArgument, "b"},
    {"DtypeThatTheOpHasNot", R"(node { name: "a" op: "Placeholder"
                      attr { key: "dtype" value { type: DT_STRING } } }
                      node { name: "b" op: "Neg" input: "a"
                      attr { key: "T" value { type: DT_STRING } } })",
     StatusCode::kInvalidArgument, "b"},
    {"MissingAttr", R"(node { name: "a" op: "Placeholder" })",
     StatusCode::kInvalidArgument, "dtype"},
    {"AttrOfAnotherKind", R"(node { name: "a" op: "Placeholder"
                      attr { key: "dtype" value { s: "float" } } })",
     StatusCode::kInvalidArgument, "dtype"},
    {"UnknownOp", R"(node { name: "a" op: "NobodyWroteThis" })",
     StatusCode::kNotFound, "NobodyWroteThis"},
    {"NoName", R"(node { op: "NoOp" })", StatusCode::kInvalidArgument, ""},
    {"BadName", R"(node { name: "a b" op: "NoOp" })",
     StatusCode::kInvalidArgument, "a b"},
    {"HugeShape", R"(node { name: "a" op: "Const"
        attr { key: "dtype" value { type: DT_FLOAT } }
        attr { key: "value" value { tensor { dtype: DT_FLOAT float_val: 1
          tensor_shape { dim { size: 4000000000 } dim { size: 4000000000 }
                         dim { size: 4000000000 } } } } } })",
     StatusCode::kInvalidArgument, "a"},
    {"NegativeShape", R"(node { name: "a" op: "Const"
        attr { key: "dtype" value { type: DT_FLOAT } }
        attr { key: "value" value { tensor { dtype: DT_FLOAT float_val: 1
          tensor_shape { dim { size: -5 } } } } } })",
     StatusCode::kInvalidArgument, "a"},
    {"ContentOfAnotherSize", R"(node { name: "a" op: "Const"
        attr { key: "dtype" value { type: DT_FLOAT } }
        attr { key: "value" value { tensor { dtype: DT_FLOAT
          tensor_content: "123" tensor_shape { dim { size: 2 } } } } } })",
     StatusCode::kInvalidArgument, "a"},
    {"ManyOutputs", R"(node { name: "a" op: "Const"
        attr { key: "dtype" value { type: DT_INT32 } }
        attr { key: "value" value { tensor { dtype: DT_INT32 int_val: 0
                                             tensor_shape {} } } } }
        node { name: "b" op: "Split" input: "a" input: "a"
        attr { key: "num_split" value { i: 9000000000000000000 } }
        attr { key: "T" value { type: DT_INT32 } } })",
     StatusCode::kInvalidArgument, "b"},
};

class BadGraphs : public ServicesTest,
                  public testing::WithParamInterface<BadGraph> {};

TEST_P(BadGraphs, AreErrorsOfCreateAndExtend) {
  const BadGraph& bad = GetParam();
  EXPECT_THAT(Open(bad.graph), StatusIs(bad.code, HasSubstr(bad.text)));
  EXPECT_EQ(task_.master().num_sessions(), 0);
  SLUICE_ASSERT_OK(Open(R"(node { name: "fine" op: "NoOp" })"));
  auto extend =
      Parsed<pb::ExtendSessionRequest>(StrCat("graph_def {", bad.graph, "}"));
  extend.set_session_handle(handle_);
  EXPECT_THAT(Call<pb::ExtendSessionResponse>(paths::kExtendSession, extend),
              StatusIs(bad.code, HasSubstr(bad.text)));
  // The session is as it was.
  SLUICE_EXPECT_OK(Run(R"(target: "fine")"));
}

TEST_P(BadGraphs, AreErrorsOfRegisterGraph) {
  const BadGraph& bad = GetParam();
  auto request =
      Parsed<pb::RegisterGraphRequest>(StrCat("graph_def {", bad.graph, "}"));
  for (pb::NodeDef& node : *request.mutable_graph_def()->mutable_node()) {
    node.set_device(TaskUnderTest::kDevice);
  }
  EXPECT_THAT(Call<pb::RegisterGraphResponse>(paths::kRegisterGraph, request),
              StatusIs(bad.code, HasSubstr(bad.text)));
}

INSTANTIATE_TEST_SUITE_P(Services, BadGraphs, testing::ValuesIn(kBadGraphs),
                         [](const auto& info) { return info.param.name; });

constexpr char kGraph[] = R"(
  node { name: "x" op: "Placeholder"
         attr { key: "dtype" value { type: DT_FLOAT } } }
  node { name: "y" op: "Neg" input: "x"
         attr { key: "T" value { type: DT_FLOAT } } })";

TEST_F(ServicesTest, StepsThatAskForNonsenseAreErrors) {
  SLUICE_ASSERT_OK(Open(kGraph));
  const std::string one = "tensor { dtype: DT_FLOAT float_val: 1 }";
  const struct {
    std::string request;
    StatusCode code;
    const char* text;
  } cases[] = {
      {"", StatusCode::kInvalidArgument,
       "Must specify at least one target to fetch or execute."},
      {R"(fetch: "y:0")", StatusCode::kInvalidArgument,
       "You must feed a value for placeholder tensor 'x'"},
      {R"(fetch: "nobody:0")", StatusCode::kNotFound, "nobody"},
      {R"(fetch: "y:7")", StatusCode::kInvalidArgument, "y:7"},
      {R"(fetch: "y:-1")", StatusCode::kInvalidArgument, "y:-1"},
      {R"(fetch: ":::")", StatusCode::kInvalidArgument, ":::"},
      {R"(target: "nobody")", StatusCode::kNotFound, "nobody"},
      {R"(fetch: "y:0" feed { name: "nobody:0" )" + one + "}",
       StatusCode::kNotFound, "nobody"},
      {R"(fetch: "y:0" feed { name: "x:0" )" + one +
           R"(} feed { name: "x:0" )" + one + "}",
       StatusCode::kInvalidArgument, "fed more than once"},
      {R"(fetch: "x:0" feed { name: "x:0" )" + one + "}",
       StatusCode::kInvalidArgument, "both fed and fetched"},
      {R"(fetch: "y:0" feed { name: "x:0" tensor { dtype: DT_INT32 } })",
       StatusCode::kInvalidArgument,
       "The value fed for x:0 is of type int32, but float is expected"},
      {R"(fetch: "y:0" feed { name: "x:0" tensor {} })",
       StatusCode::kInvalidArgument, ""},
      {R"(fetch: "y:0" feed { name: "x:0" tensor { dtype: DT_FLOAT
          tensor_shape { dim { size: 1000000000000 } } tensor_content: "1" } })",
       StatusCode::kInvalidArgument, ""},
      {R"(partial_run_handle: "p" fetch: "y:0")", StatusCode::kInvalidArgument,
       "PartialRunSetup"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(Run(c.request), StatusIs(c.code, HasSubstr(c.text)))
        << c.request;
  }
  SLUICE_EXPECT_OK(Run(R"(fetch: "y:0" feed { name: "x:0" )" + one + "}"));
}

// What is fed in place of a variable cannot be assigned to.
TEST_F(ServicesTest, AStepThatFeedsTheVariableItAssignsIsAnError) {
  SLUICE_ASSERT_OK(Open(R"(
      node { name: "c" op: "Const"
             attr { key: "dtype" value { type: DT_FLOAT } }
             attr { key: "value" value { tensor { dtype: DT_FLOAT } } } }
      node { name: "v" op: "VariableV2"
             attr { key: "dtype" value { type: DT_FLOAT } }
             attr { key: "shape" value { shape {} } } }
      node { name: "read" op: "Identity" input: "v"
             attr { key: "T" value { type: DT_FLOAT } } }
      node { name: "set" op: "Assign" input: "v" input: "c"
             attr { key: "T" value { type: DT_FLOAT } } })"));
  const std::string feed =
      R"(feed { name: "v:0" tensor { dtype: DT_FLOAT float_val: 3 } } )";
  SLUICE_EXPECT_OK(Run(feed + R"(fetch: "read:0")"));
  EXPECT_THAT(Run(feed + R"(target: "set")"),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("0-th input expects a ref type")));
  SLUICE_EXPECT_OK(Run(R"(target: "set")"));
  pb::MakeCallableResponse made;
  auto callable = Parsed<pb::MakeCallableRequest>(
      R"(options { target: "set" tensor_connection {
             from_tensor: "c:0" to_tensor: "v:0" } })");
  callable.set_session_handle(handle_);
  EXPECT_THAT(Call(paths::kMakeCallable, callable, &made),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("0-th input expects a ref type")));
}

TEST_F(ServicesTest, SessionsThatAreNotThereAreAborted) {
  handle_ = "nobody";
  EXPECT_THAT(Run(R"(target: "a")"),
              StatusIs(StatusCode::kAborted, "Session nobody is not found."));
  EXPECT_THAT(Call<pb::CloseSessionResponse>(
                  paths::kCloseSession, Parsed<pb::CloseSessionRequest>(
                                            R"(session_handle: "nobody")")),
              StatusIs(StatusCode::kAborted,
                       "Session nobody is not found. Possibly, this master has "
                       "restarted."));
  EXPECT_TRUE(absl::IsAborted(Call<pb::ExtendSessionResponse>(
      paths::kExtendSession,
      Parsed<pb::ExtendSessionRequest>(R"(session_handle: "nobody")"))));
  EXPECT_THAT(Call<pb::ListDevicesResponse>(paths::kListDevices,
                                            Parsed<pb::ListDevicesRequest>(
                                                R"(session_handle: "nobody")")),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("nobody")));
}

TEST_F(ServicesTest, AResetClosesSessionsForGood) {
  SLUICE_ASSERT_OK(Open(R"(node { name: "a" op: "NoOp" })"));
  SLUICE_ASSERT_OK(Call<pb::ResetResponse>(paths::kReset, pb::ResetRequest()));
  EXPECT_TRUE(absl::IsAborted(Run(R"(target: "a")")));
  EXPECT_EQ(task_.master().num_sessions(), 0);
}

TEST_F(ServicesTest, AWrongFilterIsNamed) {
  EXPECT_THAT(
      Call<pb::CreateSessionResponse>(
          paths::kCreateSession, Parsed<pb::CreateSessionRequest>(
                                     R"(config { device_filters: "bogus" })")),
      StatusIs(StatusCode::kInvalidArgument, "Invalid device filter: bogus"));
}

TEST_F(ServicesTest, AnExtensionOfAnotherVersionIsAborted) {
  SLUICE_ASSERT_OK(Open(R"(node { name: "a" op: "NoOp" })"));
  auto extend = Parsed<pb::ExtendSessionRequest>(
      R"(graph_def { node { name: "b" op: "NoOp" } }
         current_graph_version: 7)");
  extend.set_session_handle(handle_);
  EXPECT_THAT(Call<pb::ExtendSessionResponse>(paths::kExtendSession, extend),
              StatusIs(StatusCode::kAborted,
                       "Current version is 0 but caller expected 7."));
  extend.set_current_graph_version(0);
  extend.mutable_graph_def()->mutable_node(0)->set_name("a");
  EXPECT_THAT(Call<pb::ExtendSessionResponse>(paths::kExtendSession, extend),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("includes node 'a', which was created")));
}

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

TEST_F(ServicesTest, CallablesConnectTensors) {
  SLUICE_ASSERT_OK(Open(R"(
      node { name: 'a' op: 'Placeholder'
             attr { key: 'dtype' value { type: DT_FLOAT } } }
      node { name: 'b' op: 'Neg' input: 'a'
             attr { key: 'T' value { type: DT_FLOAT } } }
      node { name: 'c' op: 'Placeholder'
             attr { key: 'dtype' value { type: DT_FLOAT } } }
      node { name: 'd' op: 'Square' input: 'c' input: '^c'
             attr { key: 'T' value { type: DT_FLOAT } } })"));
  const auto make = [&](const std::string& options,
                        pb::MakeCallableResponse* response) {
    auto request = Parsed<pb::MakeCallableRequest>("options {" + options + "}");
    request.set_session_handle(handle_);
    return Call(paths::kMakeCallable, request, response);
  };
  pb::MakeCallableResponse callable;
  SLUICE_ASSERT_OK(
      make("feed: 'a:0' fetch: 'd:0' "
           "tensor_connection { from_tensor: 'b:0' to_tensor: 'c:0' }",
           &callable));
  pb::RunCallableRequest request;
  request.set_session_handle(handle_);
  request.set_handle(callable.handle());
  TensorToProto(Tensor::Scalar(3.0f), request.add_feed());
  pb::RunCallableResponse response;
  SLUICE_ASSERT_OK(Call(paths::kRunCallable, request, &response));
  EXPECT_EQ(TensorFromProto(response.fetch(0))->scalar<float>(), 9.0f);
  // Neither alone makes a cycle, both do.
  EXPECT_THAT(make("fetch: 'd:0' "
                   "tensor_connection { from_tensor: 'b:0' to_tensor: 'c:0' } "
                   "tensor_connection { from_tensor: 'd:0' to_tensor: 'a:0' }",
                   &callable),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("would create a cycle")));
}

class WorkerSessionsTest : public ServicesTest {
 protected:
  absl::Status OpenWorkerSession(const std::string& request) {
    return Call<pb::CreateWorkerSessionResponse>(
        paths::kCreateWorkerSession,
        Parsed<pb::CreateWorkerSessionRequest>(request));
  }
  absl::Status DeleteWorkerSession(const std::string& handle) {
    pb::DeleteWorkerSessionRequest request;
    request.set_session_handle(handle);
    return Call<pb::DeleteWorkerSessionResponse>(paths::kDeleteWorkerSession,
                                                 request);
  }
  // A request to run these nodes, registered in the session.
  pb::RunGraphRequest Register(const std::string& session,
                               const std::string& nodes) {
    auto graph =
        Parsed<pb::RegisterGraphRequest>(StrCat("graph_def {", nodes, "}"));
    graph.set_session_handle(session);
    graph.set_create_worker_session_called(true);
    for (pb::NodeDef& node : *graph.mutable_graph_def()->mutable_node()) {
      node.set_device(TaskUnderTest::kDevice);
    }
    pb::RegisterGraphResponse registered;
    SLUICE_EXPECT_OK(Call(paths::kRegisterGraph, graph, &registered));
    pb::RunGraphRequest run;
    run.set_session_handle(session);
    run.set_create_worker_session_called(true);
    run.set_graph_handle(registered.graph_handle());
    run.set_step_id(next_step_++);
    return run;
  }
  std::shared_ptr<LocalCall> Start(const pb::RunGraphRequest& request) {
    return task_.Start(paths::kRunGraph, request.SerializeAsString());
  }
  absl::Status RunGraph(const pb::RunGraphRequest& request) {
    return Call<pb::RunGraphResponse>(paths::kRunGraph, request);
  }

  int64_t next_step_ = 100;
};

constexpr char kQueue[] = R"(
    node { name: "q" op: "FIFOQueueV2"
           attr { key: "shared_name" value { s: "shared" } }
           attr { key: "component_types" value { list { type: DT_FLOAT } } } })";
constexpr char kDequeue[] = R"(
    node { name: "get" op: "QueueDequeueV2" input: "q"
           attr { key: "component_types" value { list { type: DT_FLOAT } } } })";
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

TEST(GraphNodesLimit, CountsTheFunctionsOfEarlierCalls) {
  Limits limits;
  limits.graph_nodes = 10;
  TaskUnderTest task(limits);
  // A function of six nodes.
  const auto function = [](const char* name) {
    std::string text =
        StrCat("library { function { signature { name: '", name, "' }");
    for (int i = 0; i < 6; ++i) {
      StrAppend(&text, "node_def { name: 'n", i, "' op: 'NoOp' }");
    }
    return text + "} }";
  };
  pb::CreateSessionResponse session;
  SLUICE_ASSERT_OK(task.Call(paths::kCreateSession,
                             Parsed<pb::CreateSessionRequest>(
                                 StrCat("graph_def {", function("F"), "}")),
                             &session));
  const auto extend = [&](const std::string& graph) {
    auto request =
        Parsed<pb::ExtendSessionRequest>(StrCat("graph_def {", graph, "}"));
    request.set_session_handle(session.session_handle());
    pb::ExtendSessionResponse response;
    return task.Call(paths::kExtendSession, request, &response);
  };
  EXPECT_THAT(extend(function("G")),
              StatusIs(StatusCode::kResourceExhausted,
                       HasSubstr("A graph of 12 nodes is over the limit")));
  SLUICE_EXPECT_OK(extend(function("F") + "node { name: 'n' op: 'NoOp' }"));
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

// The text of such an error must not be as long as the request.
TEST_F(WorkerSessionsTest, RequestsThatComeTwiceAreAborted) {
  SLUICE_ASSERT_OK(Open(kGraph));
  SLUICE_ASSERT_OK(OpenWorkerSession("session_handle: 's'"));
  pb::RunGraphRequest run_graph =
      Register("s", "node { name: 'n' op: 'NoOp' }");
  pb::RecvTensorRequest recv;
  recv.set_rendezvous_key("no key");
  pb::PartialRunSetupRequest partial;
  pb::MakeCallableRequest make;
  make.mutable_options()->add_fetch("y:0");
  make.mutable_options()->add_feed("x:0");
  pb::RunCallableRequest run_callable;
  const std::string large(10000, 'x');
  Tensor fed = Tensor::Scalar<std::string>(large);
  TensorToProto(fed, run_graph.add_send()->mutable_tensor());
  TensorToProto(fed, run_callable.add_feed());
  partial.add_fetch(large);
  make.mutable_options()->add_target(large);
  const auto expect_aborted = [&](int64_t id, const char* path, auto request,
                                  auto response) {
    request.set_request_id(id);
    (void)Call(path, request, &response);
    const absl::Status second = Call(path, request, &response);
    EXPECT_THAT(second, StatusIs(StatusCode::kAborted,
                                 HasSubstr(StrCat("received twice: ", id))));
    EXPECT_LT(second.message().size(), 200);
  };
  expect_aborted(1, paths::kRunGraph, run_graph, pb::RunGraphResponse());
  expect_aborted(2, paths::kRecvTensor, recv, pb::RecvTensorResponse());
  partial.set_session_handle(handle_);
  make.set_session_handle(handle_);
  run_callable.set_session_handle(handle_);
  expect_aborted(3, paths::kPartialRunSetup, partial,
                 pb::PartialRunSetupResponse());
  expect_aborted(4, paths::kMakeCallable, make, pb::MakeCallableResponse());
  expect_aborted(5, paths::kRunCallable, run_callable,
                 pb::RunCallableResponse());
}

// Names of files and strings in errors are any bytes.
TEST_F(ServicesTest, AnErrorInTheBodyIsUtf8) {
  SLUICE_ASSERT_OK(Open(R"(
      node { name: "s" op: "Const"
             attr { key: "dtype" value { type: DT_STRING } }
             attr { key: "value" value { tensor { dtype: DT_STRING
                    tensor_shape {} string_val: "caf\351" } } } }
      node { name: "n" op: "StringToNumber" input: "s" })"));
  auto request = Parsed<pb::RunStepRequest>(
      "fetch: 'n:0' store_errors_in_response_body: true");
  request.set_session_handle(handle_);
  pb::RunStepResponse response;
  SLUICE_ASSERT_OK(Call(paths::kRunStep, request, &response));
  EXPECT_EQ(response.status_code(), pb::error::INVALID_ARGUMENT);
  EXPECT_THAT(response.status_error_message(), HasSubstr("caf\\xe9"));
}

TEST_F(ServicesTest, OfTwoExtensionsAtOnceOneIsAborted) {
  SLUICE_ASSERT_OK(Open(""));
  for (int version = 0; version < 50; ++version) {
    std::vector<std::shared_ptr<LocalCall>> calls;
    for (const char* name : {"a", "b"}) {
      auto extend = Parsed<pb::ExtendSessionRequest>(
          StrCat("graph_def { node { name: '", name, version,
                 "' op: 'NoOp' } }", "current_graph_version: ", version));
      extend.set_session_handle(handle_);
      calls.push_back(
          task_.Start(paths::kExtendSession, extend.SerializeAsString()));
    }
    int fine = 0;
    for (const auto& call : calls) {
      ASSERT_TRUE(TaskUnderTest::WaitLong(*call));
      fine += call->status().ok();
    }
    ASSERT_EQ(fine, 1);
  }
}

// Its client goes away when the session is there already.
class LateCancelledCall : public LocalCall {
 public:
  using LocalCall::LocalCall;
  void OnCancel(absl::AnyInvocable<void()> callback) override {
    if (++callbacks_ == 2) callback();
  }

 private:
  int callbacks_ = 0;
};

TEST_F(ServicesTest, ASessionWhoseClientHasGoneIsClosed) {
  const auto call = std::make_shared<LateCancelledCall>(
      paths::kCreateSession, pb::CreateSessionRequest());
  task_.handler()(call);
  ASSERT_TRUE(TaskUnderTest::WaitLong(*call));
  EXPECT_EQ(task_.master().num_sessions(), 0);
  EXPECT_TRUE(task_.activity().clients.List().empty());
}

TEST(RunBlockingFor, AnswersWhatTakesTooMuchMemory) {
  const auto call = std::make_shared<LocalCall>("path", "");
  RunBlockingFor(call, [] { throw std::bad_alloc(); });
  ASSERT_TRUE(TaskUnderTest::WaitLong(*call));
  EXPECT_EQ(call->status().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace sluice
