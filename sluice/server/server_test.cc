#include "sluice/server/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "sluice/base/logging.h"
#include "sluice/graph/scope.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/master/master.h"
#include "sluice/proto/server.pb.h"
#include "sluice/rpc/client_call.h"
#include "sluice/server/status.h"
#include "sluice/server/testing/cluster_test.h"
#include "sluice/session/session.h"

namespace sluice {
namespace {

using testing::HasSubstr;

// The generated ends of cut edges have the same names in both steps.
TEST_F(ClusterTest, StepsThatCutDifferentEdgesDoNotMixThem) {
  Graph graph;
  Scope scope(graph);
  const Output a = scope.Device("/job:ps/task:0").Scalar(3.0f);
  const Output b = scope.Device("/job:worker/task:0").Add("Neg", {a});
  const Output c = scope.Device("/job:worker/task:1").Add("Square", {a});
  SessionConfig config;
  config.target = worker0_->target();
  config.options.fold_constants = false;
  auto session = *Session::Create(config, graph);
  for (int i = 0; i < 2; ++i) {
    SLUICE_ASSERT_OK(session->Run({}, {}, {b.node}, nullptr));
    SLUICE_ASSERT_OK(session->Run({}, {}, {c.node}, nullptr));
  }
}

TEST_F(ClusterTest, AStepSpansTasks) {
  Graph graph;
  Scope scope(graph);
  const Output a = scope.Device("/job:ps/task:0").Scalar(3.0f);
  const Output b = scope.Device("/job:worker/task:1").Add("Neg", {a});
  const Output c = scope.Device("/job:worker/task:0").Add("Mul", {a, b});
  // Folding would compute it all in the master.
  SessionConfig config;
  config.options.fold_constants = false;
  for (const std::string& target : {worker0_->target(), Remote(*worker0_)}) {
    config.target = target;
    auto session = *Session::Create(config, graph);
    std::vector<Tensor> out;
    for (int i = 0; i < 3; ++i) {
      SLUICE_ASSERT_OK(session->Run({}, {c}, {}, &out));
      EXPECT_EQ(out[0].scalar<float>(), -9.0f);
    }
    SLUICE_EXPECT_OK(session->Close());
  }
}

// A variable on the ps with its initializer, update and read.
struct Counter {
  explicit Counter(Graph& graph, const std::string& name = "counter")
      : scope(graph) {
    const Scope ps = scope.Device("/job:ps/task:0");
    variable = ps.Named(name).Add(
        "VariableV2", {},
        {{"shape", PartialShape::Scalar()}, {"dtype", DType::kFloat}});
    init = ps.AddNode("Assign", {variable, ps.Scalar(0.0f)});
    add = scope.Device("/job:ps/task:0")
              .AddNode("AssignAdd", {variable, ps.Scalar(1.0f)});
    read = ps.Add("Identity", {variable});
  }
  Scope scope;
  Output variable, read;
  Node* init;
  Node* add;
};

TEST_F(ClusterTest, SessionsShareVariablesByName) {
  Graph graph_a, graph_b;
  Counter a(graph_a), b(graph_b);
  auto session_a = Open(worker0_->target(), graph_a);
  auto session_b = Open(Remote(*worker1_), graph_b);
  std::vector<Tensor> out;
  EXPECT_THAT(
      session_b->Run({}, {b.read}, {}, &out),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("Attempting to use uninitialized value counter")));
  SLUICE_ASSERT_OK(session_a->Run({}, {}, {a.init}, nullptr));
  SLUICE_ASSERT_OK(session_a->Run({}, {}, {a.add}, nullptr));
  SLUICE_ASSERT_OK(session_b->Run({}, {}, {b.add}, nullptr));
  SLUICE_ASSERT_OK(session_a->Close());
  SLUICE_ASSERT_OK(session_b->Run({}, {b.read}, {}, &out));
  EXPECT_EQ(out[0].scalar<float>(), 2.0f);
}

// Also while the client keeps the session object and the steps it has cached.
TEST_F(ClusterTest, WhatIsASessionsOwnGoesWhenItIsClosed) {
  for (const std::string& target : {worker0_->target(), Remote(*worker0_)}) {
    Graph graph;
    Scope scope(graph);
    const Output kept =
        scope.Add("GetSessionHandle", {scope.Scalar<float>(1.0f)});
    const Output handle = scope.Add(
        "Placeholder", {},
        {{"dtype", DType::kString}, {"shape", PartialShape::Scalar()}});
    const Output found =
        scope.Add("GetSessionTensor", {handle}, {{"dtype", DType::kFloat}});
    auto first = Open(target, graph);
    std::vector<Tensor> out;
    SLUICE_ASSERT_OK(first->Run({}, {kept}, {}, &out));
    const Tensor text = out[0];
    SLUICE_ASSERT_OK(first->Run({{handle, text}}, {found}, {}, &out));
    SLUICE_ASSERT_OK(first->Close());
    auto second = Open(target, graph);
    EXPECT_THAT(second->Run({{handle, text}}, {found}, {}, &out),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is not in the session store")));
  }
}

TEST_F(ClusterTest, AnErrorNamesItsTask) {
  Graph graph;
  Scope scope(graph);
  const Output x = scope.Add("Placeholder", {}, {{"dtype", DType::kInt32}});
  const Output bad =
      scope.Named("bad").Device("/job:ps/task:0").Add("FloorDiv", {x, x});
  auto session = Open(Remote(*worker0_), graph);
  std::vector<Tensor> out;
  EXPECT_THAT(
      session->Run({{x, Tensor::Scalar<int32_t>(0)}}, {bad}, {}, &out),
      StatusIs(absl::StatusCode::kInvalidArgument,
               testing::AllOf(HasSubstr("From /job:ps/replica:0/task:0:"),
                              HasSubstr("{{node bad}}"))));
  const Output queue =
      scope.Named("queue")
          .Device("/job:ps/task:0")
          .Add("RandomShuffleQueueV2", {},
               {{"component_types", std::vector<DType>{DType::kFloat}},
                {"capacity", 1},
                {"min_after_dequeue", 5}});
  EXPECT_THAT(
      session->Run({}, {}, {queue.node}, nullptr),
      StatusIs(absl::StatusCode::kInvalidArgument,
               testing::AllOf(HasSubstr("From /job:ps/replica:0/task:0:"),
                              HasSubstr("{{node queue}}"))));
}

// The consumer's part hears of the failure before the failing part answers.
TEST_F(ClusterTest, AnErrorEndsPartsThatWaitForSomethingElse) {
  Graph graph;
  Scope scope(graph);
  const Scope ps = scope.Device("/job:ps/task:0");
  const Output zero = scope.Named("zero").Add(
      "Placeholder", {},
      {{"dtype", DType::kInt32}, {"shape", PartialShape::Scalar()}});
  const Output quotient = ps.Add("FloorDiv", {ps.Scalar<int32_t>(1), zero});
  const Output used = scope.Device("/job:worker/task:0").Add("Neg", {quotient});
  const Scope other = scope.Device("/job:worker/task:1");
  const Output queue = other.Add(
      "FIFOQueueV2", {},
      {{"component_types", std::vector<DType>{DType::kFloat}},
       {"shapes", std::vector<PartialShape>{PartialShape::Scalar()}}});
  const Output taken =
      other.Add("QueueDequeueV2", {queue},
                {{"component_types", std::vector<DType>{DType::kFloat}}});
  ASSERT_TRUE(scope.ok()) << scope.status();
  auto session = Open(Remote(*worker0_), graph);
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(session->Run({{zero, Tensor::Scalar<int32_t>(0)}},
                             {used, taken}, {}, nullptr),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("division by zero")));
  }
}

TEST_F(ClusterTest, CloseEndsARemoteStepThatWaits) {
  Graph graph;
  Scope scope(graph);
  const Scope ps = scope.Device("/job:ps/task:0");
  const AttrMap queue = {
      {"component_types", std::vector<DType>{DType::kFloat}},
      {"shapes", std::vector<PartialShape>{PartialShape::Scalar()}}};
  const AttrMap types = {
      {"component_types", std::vector<DType>{DType::kFloat}}};
  const Output begun = ps.Add("FIFOQueueV2", {}, queue);
  Node* tell = ps.AddNode("QueueEnqueueV2", {begun, ps.Scalar(1.0f)});
  const Output told = ps.Add("QueueDequeueV2", {begun}, types);
  const Output taken =
      ps.Add("QueueDequeueV2", {ps.Add("FIFOQueueV2", {}, queue)}, types);
  graph.AddControlEdge(tell, taken.node);
  ASSERT_TRUE(scope.ok()) << scope.status();
  auto session = Open(Remote(*worker0_), graph);
  absl::Status status;
  std::thread waits([&] { status = session->Run({}, {taken}, {}, nullptr); });
  SLUICE_EXPECT_OK(session->Run({}, {told}, {}, nullptr));
  SLUICE_EXPECT_OK(session->Close());
  waits.join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled,
                               HasSubstr("Session::Close")));
}

TEST_F(ClusterTest, ARestartedTaskIsNoticed) {
  Graph graph;
  Counter counter(graph);
  auto session = Open(worker0_->target(), graph);
  SLUICE_ASSERT_OK(session->Run({}, {}, {counter.init}, nullptr));
  SLUICE_ASSERT_OK(ps_->Stop());
  std::vector<Tensor> out;
  EXPECT_EQ(session->Run({}, {counter.read}, {}, &out).code(),
            absl::StatusCode::kUnavailable);
  ps_ = nullptr;
  ps_ = Start("ps", 0);
  absl::Status status = Unavailable("");
  for (int i = 0; i < 100 && absl::IsUnavailable(status); ++i) {
    status = session->Run({}, {counter.read}, {}, &out);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  // A new session finds the new server, with nothing in it.
  auto again = Open(worker0_->target(), graph);
  EXPECT_EQ(again->Run({}, {counter.read}, {}, &out).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(ClusterTest, LosingAPeerInTheMiddleOfAStepEndsIt) {
  Graph graph;
  Scope scope(graph);
  const Scope ps = scope.Device("/job:ps/task:0");
  const AttrMap types = {
      {"component_types", std::vector<DType>{DType::kFloat}}};
  const Output q = ps.Add("FIFOQueueV2", {}, types);
  const Output got = ps.Add("QueueDequeueV2", {q}, types);
  auto session = Open(worker0_->target(), graph);
  absl::Status status;
  std::thread runner([&] {
    std::vector<Tensor> out;
    status = session->Run({}, {got}, {}, &out);
  });
  const auto waits = [] {
    for (const WaitInfo& wait : WaitTable::Global().List()) {
      if (wait.step_id != 0) return true;
    }
    return false;
  };
  while (!waits()) std::this_thread::yield();
  SLUICE_ASSERT_OK(ps_->Stop());
  runner.join();
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsCancelled(status))
      << status;
}

TEST_F(ClusterTest, AServerServesOnWhenItsHandleIsDropped) {
  const std::string target = worker0_->target();
  std::weak_ptr<Server> watch = worker0_;
  worker0_ = nullptr;
  EXPECT_FALSE(watch.expired());
  Graph graph;
  Scope scope(graph);
  const Output c = scope.Scalar(2.0f);
  auto session = Open(target, graph);
  std::vector<Tensor> out;
  SLUICE_ASSERT_OK(session->Run({}, {c}, {}, &out));
  SLUICE_EXPECT_OK(watch.lock()->Stop());
}

TEST_F(ClusterTest, SmallTensorsOfAPeerComeInOneCall) {
  Graph graph;
  Scope scope(graph);
  const Scope ps = scope.Device("/job:ps/task:0");
  std::vector<Node*> init;
  std::vector<Output> values;
  for (int i = 0; i < 8; ++i) {
    const Output v =
        ps.Add("VariableV2", {},
               {{"dtype", DType::kFloat}, {"shape", PartialShape::Scalar()}});
    init.push_back(ps.AddNode("Assign", {v, ps.Scalar<float>(i)}));
    values.push_back(ps.Add("Identity", {v}));
  }
  const Output sum = scope.Device("/job:worker/task:0").Add("AddN", values);
  SessionConfig config;
  config.target = worker0_->target();
  auto session = *Session::Create(config, graph);
  SLUICE_ASSERT_OK(session->Run({}, {}, init, nullptr));
  std::vector<Tensor> out;
  SLUICE_ASSERT_OK(session->Run({}, {sum}, {}, &out));
  constexpr int kSteps = 20;
  const int64_t before = RpcsStarted();
  for (int i = 0; i < kSteps; ++i) {
    SLUICE_ASSERT_OK(session->Run({}, {sum}, {}, &out));
    EXPECT_EQ(out[0].scalar<float>(), 28.0f);
  }
  // One to run the ps's part, one for the tensors; and, at times, one that says
  // which steps are over.
  EXPECT_LE(RpcsStarted() - before, 3 * kSteps);
}

TEST_F(ClusterTest, ASessionSkipsTheNetworkToASuccessorOnTheSamePort) {
  std::shared_ptr<Server> first = worker0_;
  SLUICE_ASSERT_OK(first->Stop());
  worker0_ = Start("worker", 0);
  first.reset();
  EXPECT_NE(FindLocalMaster(worker0_->target()), nullptr);
}

// Programs join "grpc://" and the server's own entry of the cluster spec.
TEST_F(ClusterTest, ASessionSkipsTheNetworkByWhateverNameItGives) {
  const std::string port =
      worker0_->target().substr(std::string_view("grpc://localhost:").size());
  for (const char* host : {"localhost", "127.0.0.1", "[::1]"}) {
    EXPECT_NE(FindLocalMaster(StrCat("grpc://", host, ":", port)), nullptr)
        << host;
  }
  SLUICE_ASSERT_OK(worker0_->Stop());
  EXPECT_EQ(FindLocalMaster(StrCat("grpc://127.0.0.1:", port)), nullptr);
}

// Each address of 127.0.0.0/8 is a host of its own, with ports of its own.
TEST(Server, ListensAtTheLoopbackAddressThatItHas) {
  const int port = FreePorts(1)[0];
  const ClusterSpec spec{
      {"a", {StrCat("127.0.0.2:", port), StrCat("127.0.0.3:", port)}}};
  std::vector<std::shared_ptr<Server>> servers;
  for (int i = 0; i < 2; ++i) {
    auto server = Server::Create(spec, "a", i);
    ASSERT_TRUE(server.ok()) << server.status();
    servers.push_back(*server);
    const std::string address = *spec.TaskAddress("a", i);
    EXPECT_EQ(servers[i]->target(), "grpc://" + address);
    auto status = FetchTaskStatus(address, std::chrono::seconds(60));
    ASSERT_TRUE(status.ok()) << status.status();
    EXPECT_EQ(status->task(), StrCat("/job:a/replica:0/task:", i));
    EXPECT_EQ(status->target(), servers[i]->target());
  }
  EXPECT_EQ(FindLocalMaster(StrCat("grpc://127.0.0.1:", port)), nullptr);
  Graph graph;
  const Scope scope(graph);
  const Output x = scope.Device("/job:a/task:0").Scalar(3.0f);
  const Output y = scope.Device("/job:a/task:1").Add("Neg", {x});
  auto session = *Session::Create({.target = servers[0]->target()}, graph);
  EXPECT_EQ(session->Eval(y)->scalar<float>(), -3.0f);
  SLUICE_EXPECT_OK(session->Close());
  const absl::Status taken = Server::Create(spec, "a", 0).status();
  EXPECT_NE(std::string(taken.message()).find("cannot be bound"),
            std::string::npos)
      << taken;
  for (const auto& server : servers) SLUICE_EXPECT_OK(server->Stop());
}

// Whether something listens at that address of this machine, at the port of
// `target`.
bool ListensAt(const char* address, const std::string& target) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in there = {};
  there.sin_family = AF_INET;
  there.sin_port = htons(
      static_cast<uint16_t>(std::stoi(target.substr(target.rfind(':') + 1))));
  inet_pton(AF_INET, address, &there.sin_addr);
  const bool connected =
      connect(fd, reinterpret_cast<sockaddr*>(&there), sizeof(there)) == 0;
  close(fd);
  return connected;
}

bool Listens(const std::string& target) {
  return ListensAt("127.0.0.1", target);
}

// An address that only those have who listen at all of them.
bool ListensEverywhere(const std::string& target) {
  return ListensAt("127.9.9.9", target);
}

pb::ServerDef OneTask(const std::string& address) {
  pb::ServerDef def;
  ClusterSpec{{"a", {address}}}.ToProto(def.mutable_cluster());
  def.set_job_name("a");
  return def;
}

TEST(Server, ThatWasNotStartedFreesItsPort) {
  for (const bool join : {false, true}) {
    auto server = *Server::Create(OneTask("localhost:0"), /*start=*/false);
    EXPECT_TRUE(Listens(server->target()));
    if (join) SLUICE_EXPECT_OK(server->Join());
    SLUICE_EXPECT_OK(server->Stop());
    EXPECT_FALSE(Listens(server->target()));
    EXPECT_EQ(server->Start(),
              absl::FailedPreconditionError("Server has stopped."));
  }
}

TEST(Server, CallsWaitUntilItStarts) {
  for (const bool start : {true, false}) {
    auto server = *Server::Create(OneTask("localhost:0"), /*start=*/false);
    Graph graph;
    Scope scope(graph);
    const Output x = scope.Scalar(1.0f);
    // In the process itself the master is there.
    auto inside = *Session::Create({server->target()}, graph);
    SLUICE_EXPECT_OK(inside->Eval(x).status());
    SessionConfig config{server->target()};
    config.options.use_rpc = true;
    auto outside = *Session::Create(config, graph);
    absl::Status status = absl::UnknownError("waits");
    Notification over;
    std::thread client([&] {
      status = outside->Eval(x).status();
      over.Notify();
    });
    EXPECT_FALSE(over.WaitFor(std::chrono::milliseconds(100)));
    SLUICE_EXPECT_OK(start ? server->Start() : server->Stop());
    if (start) {
      EXPECT_TRUE(over.WaitFor(std::chrono::seconds(60)));
      SLUICE_EXPECT_OK(server->Stop());
    } else {
      // Nobody will ever answer.
      SLUICE_EXPECT_OK(outside->Close());
    }
    client.join();
    EXPECT_EQ(status.ok(), start) << status;
  }
}

TEST(Server, ListensWhereItIsTold) {
  ServerOptions options;
  options.bind = "127.0.0.3";
  auto server = *Server::Create(OneTask("0.0.0.0:0"), /*start=*/true, options);
  EXPECT_THAT(server->target(), HasSubstr("grpc://127.0.0.3:"));
  EXPECT_FALSE(Listens(server->target()));
  SLUICE_EXPECT_OK(server->Stop());
  options.bind = ServerOptions::kOwnHost;
  server = *Server::Create(OneTask("127.0.0.4:0"), /*start=*/true, options);
  EXPECT_THAT(server->target(), HasSubstr("grpc://127.0.0.4:"));
  SLUICE_EXPECT_OK(server->Stop());
  setenv("SLUICE_BIND", "192.0.2.1", 1);
  EXPECT_THAT(Server::Create(OneTask("localhost:0")).status().message(),
              HasSubstr("192.0.2.1 is no address of this machine"));
  setenv("SLUICE_BIND", "", 1);
  EXPECT_THAT(Server::Create(OneTask("localhost:0")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("SLUICE_BIND is set and empty")));
  unsetenv("SLUICE_BIND");
}

TEST(Server, KnowsLoopbackByOtherNames) {
  for (const char* name : {"LOCALHOST", "localhost."}) {
    auto server = *Server::Create(OneTask(StrCat(name, ":0")));
    EXPECT_THAT(server->target(), HasSubstr("grpc://localhost:")) << name;
    EXPECT_TRUE(Listens(server->target()));
    SLUICE_EXPECT_OK(server->Stop());
  }
}

// In numbers there are many ways to write it. The first that is mistaken for
// another address listens on all of them.
TEST(Server, KnowsLoopbackInEverySpelling) {
  for (const char* host :
       {"127.0.0.1", "127.1", "2130706433", "[::1]", "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]", "[::FFFF:7f00:1]"}) {
    auto server = Server::Create(OneTask(StrCat(host, ":0")));
    ASSERT_TRUE(server.ok()) << host << ": " << server.status();
    EXPECT_THAT((*server)->target(), HasSubstr("grpc://localhost:")) << host;
    EXPECT_FALSE(ListensEverywhere((*server)->target())) << host;
    SLUICE_EXPECT_OK((*server)->Stop());
  }
  for (const char* host : {"127.3", "[::ffff:127.0.0.3]"}) {
    auto server = Server::Create(OneTask(StrCat(host, ":0")));
    ASSERT_TRUE(server.ok()) << host << ": " << server.status();
    EXPECT_THAT((*server)->target(), HasSubstr("grpc://127.0.0.3:")) << host;
    EXPECT_FALSE(ListensEverywhere((*server)->target())) << host;
    SLUICE_EXPECT_OK((*server)->Stop());
  }
}

TEST(Server, AnIpv6AddressToListenAtNeedsNoBrackets) {
  for (const char* host : {"::", "[::]", "0:0::0"}) {
    ServerOptions options;
    options.bind = host;
    auto server =
        Server::Create(OneTask("localhost:0"), /*start=*/true, options);
    ASSERT_TRUE(server.ok()) << host << ": " << server.status();
    EXPECT_TRUE(ListensEverywhere((*server)->target())) << host;
    SLUICE_EXPECT_OK((*server)->Stop());
  }
  // An address for documents, which no machine has.
  ServerOptions options;
  options.bind = "2001:db8::1";
  EXPECT_THAT(Server::Create(OneTask("localhost:0"), /*start=*/true, options)
                  .status()
                  .message(),
              HasSubstr("2001:db8::1"));
}

TEST(Server, SigtermStopsTheServerThatTheMainThreadJoins) {
  const std::shared_ptr<Server> server = *Server::CreateLocal();
  std::thread killer([] {
    struct sigaction current = {};
    while (current.sa_handler == SIG_DFL) {
      sigaction(SIGTERM, nullptr, &current);
      std::this_thread::yield();
    }
    kill(getpid(), SIGTERM);
  });
  SLUICE_EXPECT_OK(server->Join());
  EXPECT_TRUE(server->JoinFor(std::chrono::milliseconds(0)));
  killer.join();
}

TEST(Server, JoinReturnsAfterStop) {
  auto server = *Server::CreateLocal();
  EXPECT_FALSE(server->JoinFor(std::chrono::milliseconds(1)));
  std::thread stopper([&] { SLUICE_EXPECT_OK(server->Stop()); });
  SLUICE_EXPECT_OK(server->Join());
  stopper.join();
  EXPECT_THAT(server->Start(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("Server has stopped.")));
}

TEST(Server, ATakenPortIsNamed) {
  Port taken;
  ASSERT_EQ(listen(taken.fd, 1), 0);
  auto server =
      Server::Create(ClusterSpec{{"a", {Local(taken.number)}}}, "a", 0);
  EXPECT_THAT(server.status(),
              StatusIs(absl::StatusCode::kUnknown,
                       testing::AllOf(HasSubstr("Could not start gRPC server"),
                                      HasSubstr(StrCat(taken.number)))));
}

TEST(Server, WrongDefinitionsAreErrors) {
  EXPECT_EQ(Server::Create(ClusterSpec{{"a", {"localhost:0"}}}, "b", 0)
                .status()
                .message(),
            "Job \"b\" was not defined in cluster");
  EXPECT_EQ(Server::Create(ClusterSpec{{"a", {"localhost:0"}}}, "a", 3)
                .status()
                .message(),
            "Task 3 was not defined in job \"a\"");
  EXPECT_EQ(Server::Create(ClusterSpec{{"a", {"localhost:port"}}}, "a", 0)
                .status()
                .message(),
            "Could not parse port for local server from \"localhost:port\".");
  for (const char* address : {"localhost:-1", "localhost:65536"}) {
    EXPECT_THAT(Server::Create(OneTask(address)).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         StrCat("Could not parse port for local server from "
                                "\"",
                                address, "\": it is not from 0 to 65535.")));
  }
  EXPECT_THAT(
      Server::Create(ClusterSpec{{"a", {"localhost:0", "x/y:1"}}}, "a", 0)
          .status(),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          HasSubstr("Could not interpret \"x/y:1\" as a host-port pair.")));
  EXPECT_THAT(
      Server::Create(ClusterSpec{{"my-job", {"localhost:0"}}}, "my-job", 0)
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("my-job")));
}

// A session whose cluster has one task that is not there says so and why.
std::string LineAboutMissing(const std::string& missing) {
  Port own;
  const int port = own.number;
  own.Release();
  auto server = *Server::Create(
      ClusterSpec{{"here", {Local(port)}}, {"gone", {missing}}}, "here", 0);
  Mutex mu;
  std::string line;
  SetLogSinkForTest([&](LogLevel, const std::string& text) {
    MutexLock lock(mu);
    if (text.find("still waiting") != std::string::npos) line = text;
  });
  Graph graph;
  Scope scope(graph);
  const Output c = scope.Scalar(1.0f);
  SessionConfig config;
  config.target = server->target();
  config.options.task_deadline = std::chrono::seconds(5);
  auto session = *Session::Create(config, graph);
  std::vector<Tensor> out;
  const absl::Status status = session->Run({}, {c}, {}, &out);
  SetLogSinkForTest(nullptr);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                               HasSubstr("/job:gone/replica:0/task:0")));
  SLUICE_EXPECT_OK(server->Stop());
  MutexLock lock(mu);
  return line;
}

TEST(Server, ATaskWithoutADeviceIsAnError) {
  pb::ServerDef def;
  ClusterSpec{{"a", {"localhost:0"}}}.ToProto(def.mutable_cluster());
  def.set_job_name("a");
  (*def.mutable_default_session_config()->mutable_device_count())["CPU"] = 0;
  EXPECT_THAT(Server::Create(def).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       "No CPU devices are available in this process"));
}

TEST(Server, AMissingTaskIsNamedWithTheReason) {
  Port unused;
  const std::string address = Local(unused.number);
  unused.Release();
  EXPECT_THAT(LineAboutMissing(address),
              testing::AllOf(HasSubstr("/job:gone/replica:0/task:0"),
                             HasSubstr("connection refused")));
}

TEST(Server, ATaskOfAnotherClusterIsTold) {
  auto other = *Server::CreateLocal();
  const std::string address = other->target().substr(7);
  EXPECT_THAT(LineAboutMissing(address), HasSubstr("another cluster"));
  SLUICE_EXPECT_OK(other->Stop());
}

// Its tensors would be asked for of nobody.
TEST(Server, AStepBetweenTasksThatDoNotKnowEachOtherIsAnError) {
  const std::vector<int> ports = FreePorts(3);
  const std::string a = Local(ports[0]), b = Local(ports[1]),
                    c = Local(ports[2]);
  const auto server_a =
      *Server::Create(ClusterSpec{{"a", {a}}, {"b", {b}}, {"c", {c}}}, "a", 0);
  const auto server_b =
      *Server::Create(ClusterSpec{{"a", {a}}, {"b", {b}}}, "b", 0);
  const auto server_c =
      *Server::Create(ClusterSpec{{"a", {a}}, {"c", {c}}}, "c", 0);
  Graph graph;
  Scope scope(graph);
  const Output x =
      scope.Add("Placeholder", {},
                {{"dtype", DType::kFloat}, {"shape", PartialShape::Scalar()}});
  const Output y = scope.Device("/job:b/task:0").Add("Neg", {x});
  const Output z = scope.Device("/job:c/task:0").Add("Neg", {y});
  SessionConfig config;
  config.target = server_a->target();
  auto session = *Session::Create(config, graph);
  const std::vector<Session::Feed> feeds = {{x, Tensor::Scalar(1.0f)}};
  EXPECT_THAT(session->Eval(z, feeds).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("comes from /job:b/replica:0/task:0, which is "
                                 "not in the cluster of "
                                 "/job:c/replica:0/task:0")));
  SLUICE_EXPECT_OK(session->Eval(y, feeds).status());
  SLUICE_EXPECT_OK(session->Close());
  for (const auto& server : {server_a, server_b, server_c}) {
    SLUICE_EXPECT_OK(server->Stop());
  }
}

TEST(Server, ACallableGoesWithItsStep) {
  Limits limits;
  limits.callables = 1;
  const std::string address = Local(FreePorts(1)[0]);
  const auto server = *Server::Create(ClusterSpec{{"a", {address}}}, "a", 0,
                                      ServerOptions{.limits = limits});
  Graph graph;
  Scope scope(graph);
  const AttrMap attrs = {{"dtype", DType::kFloat},
                         {"shape", PartialShape::Scalar()}};
  scope.Add("Neg", {scope.Named("x").Add("Placeholder", {}, attrs)});
  scope.Named("c").Add("Placeholder", {}, attrs);
  scope.Named("y").Add("Neg", {scope.Named("z").Add("Placeholder", {}, attrs)});
  SessionConfig config;
  config.target = StrCat("grpc://L", address.substr(1));  // By the network.
  auto session = *Session::Create(config, graph);
  StepSignature step = {{"x:0"}, {"y:0"}, {}};
  step.connections = {{"x:0", "z:0"}};
  for (int i = 0; i < 3; ++i) {
    auto prepared = session->Prepare(step);
    // The last one's release is on its way.
    while (absl::IsResourceExhausted(prepared.status())) {
      prepared = session->Prepare(step);
    }
    SLUICE_ASSERT_OK(prepared.status());
    EXPECT_TRUE(absl::IsResourceExhausted(session->Prepare(step).status()));
  }
  SLUICE_EXPECT_OK(session->Close());
  SLUICE_EXPECT_OK(server->Stop());
}

TEST(TaskConfig, ReadsTfConfig) {
  const absl::StatusOr<TaskConfig> config = TaskConfig::Parse(
      R"({"cluster": {"ps": ["a:1"], "worker": ["b:2", "c:3"]},
          "task": {"type": "worker", "index": 1}})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->job, "worker");
  EXPECT_EQ(config->task, 1);
  EXPECT_EQ(*config->cluster.TaskAddress("worker", 1), "c:3");
}

TEST(TaskConfig, SaysWhatIsMissing) {
  EXPECT_THAT(TaskConfig::Parse("ps=a:1").status().message(),
              HasSubstr("no JSON object"));
  EXPECT_THAT(
      TaskConfig::Parse(R"({"cluster": {"ps": ["a:1"]}})").status().message(),
      HasSubstr("names no task"));
  EXPECT_THAT(TaskConfig::Parse(R"({"cluster": {"ps": ["a:1"]},
                                    "task": {"type": "ps", "index": "x"}})")
                  .status()
                  .message(),
              HasSubstr("no integer"));
}

TEST(ClusterSpec, ReadsEveryForm) {
  const ClusterSpec want{{"ps", {"a:1"}}, {"worker", {"b:2", "c:3"}}};
  EXPECT_EQ(*ClusterSpec::Parse("ps=a:1;worker=b:2,c:3"), want);
  EXPECT_EQ(*ClusterSpec::Parse("ps|a:1,worker|b:2;c:3"), want);
  EXPECT_EQ(*ClusterSpec::Parse(
                R"({"ps": ["a:1"], "worker": {"0": "b:2", "1": "c:3"}})"),
            want);
  EXPECT_EQ(*ClusterSpec::Parse(
                R"({"cluster": {"ps": ["a:1"], "worker": ["b: 2", "c:3"]}})"),
            want);
  for (const char* bad : {"", "ps", "ps=a:1;ps=b:2", "{", "[1]", R"({"ps": 3})",
                          R"({"ps": {"x": "a:1"}})", R"({"ps": [1]})"}) {
    EXPECT_FALSE(ClusterSpec::Parse(bad).ok()) << bad;
  }
  for (const char* empty :
       {"w=a:1;ps=a:1,,b:2", "w|a:1,ps|a:1;;b:2",
        R"({"w": ["a:1"], "ps": ["a:1", ""]})", R"({"ps": {"1": " "}})"}) {
    EXPECT_EQ(ClusterSpec::Parse(empty).status().message(),
              "Task 1 of job 'ps' has an empty address")
        << empty;
  }
  EXPECT_EQ(ClusterSpec::Parse("ps=a:1;worker=").status().message(),
            "Task 0 of job 'worker' has an empty address");
  EXPECT_EQ(want.TaskAddress("x", 0).status().message(),
            "No such job in cluster: 'x'");
  EXPECT_EQ(want.TaskAddress("ps", 4).status().message(),
            "No task with index 4 in job 'ps'");
}

}  // namespace
}  // namespace sluice
