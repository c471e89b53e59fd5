// What the master service answers, mostly to requests that nobody meant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "sluice/base/sanitizers.h"
#include "sluice/base/simulation.h"
#include "sluice/rpc/testing/services_fixture.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

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

class RepliesTest : public ServicesTest {
 protected:
  std::string OpenAnother() {
    SLUICE_EXPECT_OK(Open(R"(
        node { name: "c" op: "Const"
               attr { key: "dtype" value { type: DT_FLOAT } }
               attr { key: "value" value { tensor { dtype: DT_FLOAT
                      tensor_shape {} } } } }
        node { name: "v" op: "VariableV2"
               attr { key: "dtype" value { type: DT_FLOAT } }
               attr { key: "shape" value { shape {} } }
               attr { key: "container" value { s: "" } } }
        node { name: "set" op: "Assign" input: "v" input: "x"
               attr { key: "T" value { type: DT_FLOAT } } }
        node { name: "x" op: "Placeholder"
               attr { key: "dtype" value { type: DT_FLOAT } } })"));
    return handle_;
  }
  // What "set" answers when it is fed `value` under this id.
  absl::StatusOr<float> Set(const std::string& session, int64_t id,
                            float value) {
    auto request = Parsed<pb::RunStepRequest>("fetch: 'set:0'");
    request.set_session_handle(session);
    request.set_request_id(id);
    request.add_feed()->set_name("x:0");
    TensorToProto(Tensor::Scalar(value),
                  request.mutable_feed(0)->mutable_tensor());
    pb::RunStepResponse response;
    SLUICE_RETURN_IF_ERROR(Call(paths::kRunStep, request, &response));
    SLUICE_ASSIGN_OR_RETURN(const Tensor fetched,
                            TensorFromProto(response.tensor(0).tensor()));
    return fetched.scalar<float>();
  }
  absl::Status Close(const std::string& session) {
    pb::CloseSessionRequest request;
    request.set_session_handle(session);
    return Call<pb::CloseSessionResponse>(paths::kCloseSession, request);
  }
};

TEST_F(RepliesTest, AnAnswerIsRepeatedOnlyToItsOwnSession) {
  const std::string one = OpenAnother();
  const std::string other = OpenAnother();
  EXPECT_EQ(*Set(one, 7, 1), 1);
  EXPECT_EQ(*Set(one, 7, 2), 1);  // The same again, which is not run.
  EXPECT_EQ(*Set(other, 7, 3), 3);
  EXPECT_THAT(Set("nobody", 7, 1).status(),
              StatusIs(StatusCode::kAborted, "Session nobody is not found."));
  SLUICE_ASSERT_OK(Close(one));
  EXPECT_THAT(Set(one, 7, 1).status(),
              StatusIs(StatusCode::kAborted, HasSubstr("is not found.")));
  SLUICE_ASSERT_OK(Call<pb::ResetResponse>(paths::kReset, pb::ResetRequest()));
  EXPECT_THAT(Set(other, 7, 1).status(),
              StatusIs(StatusCode::kAborted, HasSubstr("is not found.")));
  EXPECT_TRUE(task_.activity().clients.List().empty());
}

TEST_F(RepliesTest, AnotherRequestUnderTheSameIdIsAborted) {
  const std::string session = OpenAnother();
  SLUICE_ASSERT_OK(Set(session, 7, 1).status());
  auto request = Parsed<pb::RunStepRequest>("fetch: 'c:0' request_id: 7");
  request.set_session_handle(session);
  EXPECT_THAT(
      Call<pb::RunStepResponse>(paths::kRunStep, request),
      StatusIs(StatusCode::kAborted,
               HasSubstr("The same RunStep (Master) request was received "
                         "twice. Request 7 of session ")));
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

TEST_F(ServicesTest, AnExtensionOfAnotherProducerIsRefused) {
  SLUICE_ASSERT_OK(
      Open(R"(versions { producer: 134 } node { name: "a" op: "NoOp" })"));
  auto extend = Parsed<pb::ExtendSessionRequest>(
      R"(graph_def { versions { producer: 27 }
                     node { name: "b" op: "NoOp" } })");
  extend.set_session_handle(handle_);
  EXPECT_THAT(Call<pb::ExtendSessionResponse>(paths::kExtendSession, extend),
              StatusIs(StatusCode::kInvalidArgument,
                       "Can't extend GraphDef at version 134 with graph at "
                       "version 27."));
  extend.mutable_graph_def()->mutable_versions()->set_producer(134);
  SLUICE_EXPECT_OK(
      Call<pb::ExtendSessionResponse>(paths::kExtendSession, extend));
}

TEST(GraphBytesLimit, CountsWhatEarlierCallsSent) {
  Limits limits;
  limits.graph_bytes = 1000;
  TaskUnderTest task(limits);
  pb::CreateSessionResponse session;
  SLUICE_ASSERT_OK(
      task.Call(paths::kCreateSession, pb::CreateSessionRequest(), &session));
  const auto extend = [&](int version) {
    auto request = Parsed<pb::ExtendSessionRequest>(
        StrCat("graph_def { node { op: 'NoOp' name: 'n", version,
               std::string(400, 'x'), "' } }"));
    request.set_session_handle(session.session_handle());
    request.set_current_graph_version(version);
    pb::ExtendSessionResponse response;
    return task.Call(paths::kExtendSession, request, &response);
  };
  SLUICE_EXPECT_OK(extend(0));
  SLUICE_EXPECT_OK(extend(1));
  EXPECT_THAT(extend(2), StatusIs(StatusCode::kResourceExhausted,
                                  HasSubstr("limit graph_bytes=1000")));
}

// Runs nothing by itself.
class Machine : public Simulation {
 public:
  Machine() { SetSimulation(this); }
  ~Machine() override { SetSimulation(nullptr); }
  SteadyTime Now() override { return SteadyTime(); }
  int64_t WallMicros() override { return 0; }
  void CallLater(std::chrono::nanoseconds,
                 absl::AnyInvocable<void()>) override {}
  void RunBlocking(absl::AnyInvocable<void()> task) override {
    blocking.push_back(std::move(task));
  }
  uint64_t RandomId() override { return ++last_id_; }

  std::vector<absl::AnyInvocable<void()>> blocking;

 private:
  uint64_t last_id_ = 0;
};

// Tasks of a cluster answer on threads that poll the network.
TEST(CreateSession, ReadsTheGraphWhereItMayTakeTime) {
  Machine machine;
  TaskUnderTest task;
  const auto call = std::make_shared<LocalCall>(
      paths::kCreateSession,
      Parsed<pb::CreateSessionRequest>(
          "graph_def { node { name: 'a' op: 'NoOp' } }"));
  task.handler()(call);
  ASSERT_EQ(machine.blocking.size(), 1);
  machine.blocking[0]();  // Asks all tasks, and has their answers.
  EXPECT_EQ(call->answers(), 0);
  ASSERT_EQ(machine.blocking.size(), 2);
  machine.blocking[1]();
  SLUICE_EXPECT_OK(call->status());
  EXPECT_EQ(call->answers(), 1);
}

// How much memory this process has, of whatever kind.
size_t VirtualBytes() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

TEST_F(ServicesTest, AnAnswerForWhichThereIsNoMemoryEndsTheStepOnly) {
  if (kAddressSanitizer || kThreadSanitizer) {
    GTEST_SKIP() << "It ends the process itself";
  }
  constexpr int64_t kBytes = int64_t{256} << 20;
  SLUICE_ASSERT_OK(Open(StrCat(R"(
      node { name: "n" op: "Const"
             attr { key: "dtype" value { type: DT_INT32 } }
             attr { key: "value" value { tensor { dtype: DT_INT32
                    tensor_shape { dim { size: 1 } } int_val: )",
                               kBytes, R"( } } } }
      node { name: "one" op: "Const"
             attr { key: "dtype" value { type: DT_UINT8 } }
             attr { key: "value" value { tensor { dtype: DT_UINT8
                    tensor_shape {} int_val: 1 } } } }
      node { name: "large" op: "Fill" input: "n" input: "one"
             attr { key: "T" value { type: DT_UINT8 } }
             attr { key: "index_type" value { type: DT_INT32 } } })")));
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit tight = before;
  // For the tensor, but not for its copy in the answer.
  tight.rlim_cur = VirtualBytes() + kBytes + kBytes / 2;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  const absl::Status status = Run("fetch: 'large:0'");
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_THAT(status, StatusIs(StatusCode::kResourceExhausted,
                               HasSubstr("Out of memory")));
  SLUICE_EXPECT_OK(Run("fetch: 'one:0'"));
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

}  // namespace
}  // namespace sluice
