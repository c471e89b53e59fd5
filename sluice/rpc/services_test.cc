// What both services answer to requests that nobody meant.
#include "sluice/rpc/services.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/rpc/answer.h"
#include "sluice/rpc/client_call.h"
#include "sluice/rpc/testing/services_fixture.h"
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
    EXPECT_THAT(
        second,
        StatusIs(StatusCode::kAborted,
                 HasSubstr(StrCat("received twice. Request ", id, " of s"))));
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

TEST(RunBlockingFor, AnswersWhatTakesTooMuchMemory) {
  const auto call = std::make_shared<LocalCall>("path", "");
  RunBlockingFor(call, [] { throw std::bad_alloc(); });
  ASSERT_TRUE(TaskUnderTest::WaitLong(*call));
  EXPECT_EQ(call->status().code(), StatusCode::kResourceExhausted);
}

// What the fuzz targets send goes there, too.
TEST(TaskUnderTest, RunsStepsWithItsPeer) {
  TaskUnderTest task({}, /*with_peer=*/true);
  constexpr char kAcross[] = R"(graph_def {
      node { name: "c" op: "Const"
             attr { key: "dtype" value { type: DT_FLOAT } }
             attr { key: "value" value { tensor {
               dtype: DT_FLOAT float_val: 3 tensor_shape {} } } } }
      node { name: "there" op: "Neg" input: "c" device: "$0"
             attr { key: "T" value { type: DT_FLOAT } } }
      node { name: "here" op: "Neg" input: "there" device: "$1"
             attr { key: "T" value { type: DT_FLOAT } } } } )";
  constexpr char kCluster[] =
      R"(target: "grpc://localhost:1" config { cluster_def { job { name: "x"
      tasks { key: 0 value: "localhost:1" }
      tasks { key: 2 value: "localhost:2" } } } })";
  for (const bool own_cluster : {false, true}) {
    std::string text = kAcross;
    text.replace(text.find("$0"), 2, own_cluster ? "/job:x/task:2" : "/job:b");
    text.replace(text.find("$1"), 2, own_cluster ? "/job:x/task:0" : "/job:a");
    if (own_cluster) text += kCluster;
    pb::CreateSessionResponse session;
    SLUICE_ASSERT_OK(task.Call(paths::kCreateSession,
                               Parsed<pb::CreateSessionRequest>(text),
                               &session));
    pb::RunStepRequest request;
    request.set_session_handle(session.session_handle());
    request.add_fetch("here:0");
    pb::RunStepResponse response;
    SLUICE_ASSERT_OK(task.Call(paths::kRunStep, request, &response));
    ASSERT_EQ(response.tensor_size(), 1);
    EXPECT_EQ(TensorFromProto(response.tensor(0).tensor())->scalar<float>(),
              3.0f);
  }
}

}  // namespace
}  // namespace sluice
