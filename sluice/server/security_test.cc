// Servers and sessions under TLS, limits and a file jail.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>

#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"
#include "sluice/graph/graph_def.h"
#include "sluice/graph/scope.h"
#include "sluice/proto/graph.pb.h"
#include "sluice/proto/server.pb.h"
#include "sluice/rpc/testing/test_certificates.h"
#include "sluice/server/status.h"
#include "sluice/server/testing/cluster_test.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

// A cluster of 1 ps and 1 worker with options of its own.
class SecurityTest : public testing::Test {
 protected:
  void Start(const ServerOptions& options) { Start(options, options); }
  void Start(const ServerOptions& ps, const ServerOptions& worker) {
    ps_ = Serve("ps", ps);
    worker_ = Serve("worker", worker);
  }
  std::shared_ptr<Server> Serve(const std::string& job,
                                const ServerOptions& options) {
    auto server = Server::Create(spec_, job, 0, options);
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *server : nullptr;
  }
  void TearDown() override {
    for (auto& server : {ps_, worker_}) {
      if (server != nullptr) SLUICE_EXPECT_OK(server->Stop());
    }
  }
  // The worker's master, through the network.
  SessionConfig Config(const TlsOptions& tls = {}) const {
    SessionConfig config;
    config.target =
        "grpc://Localhost" + (*spec_.TaskAddress("worker", 0)).substr(9);
    config.options.fold_constants = false;
    config.tls = tls;
    return config;
  }
  // Runs a step over both tasks.
  static absl::Status Run(const SessionConfig& config) {
    Graph graph;
    const Scope scope(graph);
    const Output a = scope.Device("/job:ps/task:0").Scalar(3.0f);
    const Output b = scope.Device("/job:worker/task:0").Add("Neg", {a});
    SLUICE_ASSIGN_OR_RETURN(auto session, Session::Create(config, graph));
    SLUICE_ASSIGN_OR_RETURN(const Tensor result, session->Eval(b));
    EXPECT_EQ(result.scalar<float>(), -3.0f);
    return session->Close();
  }

  const ClusterSpec spec_ = [] {
    const std::vector<int> ports = FreePorts(2);
    return ClusterSpec{{"ps", {Local(ports[0])}},
                       {"worker", {Local(ports[1])}}};
  }();
  const TestCertificates certificates_;
  const TestCertificates others_;
  const TlsOptions tls_ = certificates_.Options();
  std::shared_ptr<Server> ps_, worker_;
};

TEST_F(SecurityTest, AStepRunsOverTls) {
  Start({.tls = tls_});
  SLUICE_EXPECT_OK(Run(Config(certificates_.Options("client", {"nowhere"}))));
  SLUICE_EXPECT_OK(Session::Reset(Config(tls_), {}));
}

TEST_F(SecurityTest, WhoSharesTheProcessCanAskOtherTasks) {
  Start({.tls = tls_});
  const TlsOptions found = Server::TlsAt(worker_->target());
  EXPECT_EQ(found.certificate, tls_.certificate);
  EXPECT_TRUE(FetchTaskStatus(*spec_.TaskAddress("ps", 0),
                              std::chrono::seconds(60), found)
                  .ok());
  EXPECT_TRUE(Server::TlsAt("grpc://localhost:1").empty());
}

TEST_F(SecurityTest, TheEnvironmentSwitchesTlsOn) {
  setenv("SLUICE_TLS_CERT", tls_.certificate.c_str(), 1);
  setenv("SLUICE_TLS_KEY", tls_.key.c_str(), 1);
  setenv("SLUICE_TLS_CA", tls_.ca.c_str(), 1);
  Start({});
  SLUICE_EXPECT_OK(Run(Config()));
  for (const char* name :
       {"SLUICE_TLS_CERT", "SLUICE_TLS_KEY", "SLUICE_TLS_CA"}) {
    unsetenv(name);
  }
  EXPECT_THAT(Run(Config()), StatusIs(absl::StatusCode::kUnauthenticated,
                                      HasSubstr("wants TLS")));
}

TEST_F(SecurityTest, ASessionThatDoesNotFitIsRefusedAtOnce) {
  Start({.tls = tls_});
  EXPECT_THAT(Run(Config()), StatusIs(absl::StatusCode::kUnauthenticated,
                                      HasSubstr("wants TLS")));
  EXPECT_THAT(Run(Config(others_.Options())),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("not signed by the CA of this side")));
  const std::string both = certificates_.Write(
      "both", certificates_.ca().certificate + others_.ca().certificate);
  TlsOptions mixed = others_.Options();
  mixed.ca = both;
  EXPECT_THAT(Run(Config(mixed)),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("does not take the certificate")));
}

TEST_F(SecurityTest, ATlsSessionIsToldOfAPlainServer) {
  Start({});
  EXPECT_THAT(Run(Config(tls_)), StatusIs(absl::StatusCode::kUnauthenticated,
                                          HasSubstr("speaks plain text")));
}

TEST_F(SecurityTest, FilesThatAreWrongAreNamed) {
  EXPECT_THAT(Server::Create(spec_, "ps", 0,
                             {.tls = TlsOptions::InDirectory("/no/where")})
                  .status(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("TLS certificate /no/where/tls.crt")));
  Graph graph;
  EXPECT_THAT(
      Session::Create(Config(TlsOptions::InDirectory("/no/where")), graph)
          .status(),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/where/tls.crt")));
}

TEST_F(SecurityTest, EmptyNamesOfFilesDoNotMeanPlainText) {
  pb::ServerDef def;
  spec_.ToProto(def.mutable_cluster());
  def.set_job_name("ps");
  def.mutable_default_session_config()
      ->mutable_rpc_options()
      ->mutable_sluice_tls();
  EXPECT_THAT(Server::Create(def).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the certificate is missing")));
  setenv("SLUICE_TLS_CERT", "", 1);
  EXPECT_THAT(Server::Create(spec_, "ps", 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("(SLUICE_TLS_CERT)")));
  Graph graph;
  EXPECT_THAT(Session::Create(Config(), graph).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("(SLUICE_TLS_CERT)")));
  unsetenv("SLUICE_TLS_CERT");
}

// The lines a server logs while it starts on all addresses.
std::vector<std::string> StartUpLog(const ServerOptions& options,
                                    const std::string& host = "0.0.0.0") {
  static Mutex mu;
  std::vector<std::string> lines;
  SetLogSinkForTest([&](LogLevel, const std::string& line) {
    MutexLock lock(mu);
    lines.push_back(line);
  });
  auto server =
      Server::Create(ClusterSpec{{"a", {host + ":0"}}}, "a", 0, options);
  EXPECT_TRUE(server.ok()) << server.status();
  if (server.ok()) SLUICE_EXPECT_OK((*server)->Stop());
  SetLogSinkForTest({});
  return lines;
}

TEST_F(SecurityTest, AnOpenPlainServerWarnsAndTellsHowToChangeThat) {
  EXPECT_THAT(StartUpLog({}),
              testing::Contains(AllOf(HasSubstr("without encryption"),
                                      HasSubstr("sluice certs"),
                                      HasSubstr("SLUICE_TLS_CERT"))));
  EXPECT_THAT(StartUpLog({.tls = tls_}),
              Each(Not(HasSubstr("without encryption"))));
}

TEST_F(SecurityTest, ACertificateForOtherHostsIsWarnedOf) {
  const auto warning = testing::Contains(AllOf(
      HasSubstr("not for localhost"), HasSubstr("sluice certs DIR --host")));
  EXPECT_THAT(StartUpLog({.tls = certificates_.Options("other", {"node-1"})},
                         "localhost"),
              warning);
  EXPECT_THAT(StartUpLog({.tls = tls_}, "localhost"), Not(warning));
  EXPECT_THAT(StartUpLog({.tls = certificates_.Options("ip", {"127.0.0.1"})},
                         "127.0.0.1"),
              Each(Not(HasSubstr("The certificate of this server"))));
}

TEST_F(SecurityTest, AJailSaysSoWhenItStarts) {
  const TempDir dir;
  const auto line = testing::Contains(
      AllOf(HasSubstr("these folders only"), HasSubstr(dir.path())));
  EXPECT_THAT(StartUpLog({.allowed_files = {dir.path()}}), line);
  EXPECT_THAT(StartUpLog({}), Not(line));
}

TEST_F(SecurityTest, AnEmptyListOfAllowedFilesIsRefused) {
  setenv("SLUICE_ALLOW_FILES", "", 1);
  EXPECT_THAT(Server::Create(spec_, "ps", 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("SLUICE_ALLOW_FILES")));
  unsetenv("SLUICE_ALLOW_FILES");
}

ServerOptions WithLimit(const std::string& text) {
  Limits limits;
  EXPECT_TRUE(limits.Set(text).ok());
  return {.limits = limits};
}

TEST_F(SecurityTest, OneSessionTooManyIsRefused) {
  Start(WithLimit("sessions=2"));
  Graph graph;
  const Output x = Scope(graph).Scalar(1.0f);
  std::vector<std::unique_ptr<Session>> open;
  for (int i = 0; i < 2; ++i) {
    open.push_back(*Session::Create(Config(), graph));
    SLUICE_ASSERT_OK(open.back()->Eval(x).status());
  }
  EXPECT_THAT(Run(Config()), StatusIs(absl::StatusCode::kResourceExhausted,
                                      AllOf(HasSubstr("limit sessions=2"),
                                            HasSubstr("--limit sessions=N"))));
  SLUICE_ASSERT_OK(open[0]->Close());
  SLUICE_EXPECT_OK(Run(Config()));
}

TEST_F(SecurityTest, AGraphWithTooManyNodesIsRefused) {
  Start(WithLimit("graph_nodes=10"));
  Graph graph;
  const Scope scope(graph);
  std::vector<Output> all;
  for (int i = 0; i < 8; ++i) all.push_back(scope.Scalar(1.0f));
  auto session = *Session::Create(Config(), graph);
  SLUICE_EXPECT_OK(session->Eval(all[0]).status());
  // Also when it grows little by little.
  for (int i = 0; i < 8; ++i) all.push_back(scope.Scalar(1.0f));
  EXPECT_THAT(session->Eval(all.back()).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("A graph of 16 nodes is over the limit "
                                 "graph_nodes=10")));
  SLUICE_EXPECT_OK(Run(Config()));
}

// Each function calls the one before it twice.
TEST_F(SecurityTest, FunctionsThatGrowTooLargeAreRefused) {
  Start(WithLimit("graph_nodes=100"));
  std::string text = R"(
      versions { producer: 134 }
      node { name: "x" op: "Const"
             attr { key: "dtype" value { type: DT_FLOAT } }
             attr { key: "value" value { tensor { dtype: DT_FLOAT
                                                  tensor_shape {} } } } }
      node { name: "y" op: "F17" input: "x" }
      library {)";
  for (int i = 0; i < 18; ++i) {
    const std::string inner = i == 0 ? "Neg" : StrCat("F", i - 1);
    const char* attr =
        i == 0 ? R"(attr { key: "T" value { type: DT_FLOAT } })" : "";
    const char* result = i == 0 ? "y" : "b";
    StrAppend(&text, R"(function { signature { name: "F)", i, R"("
                        input_arg { name: "a" type: DT_FLOAT }
                        output_arg { name: "b" type: DT_FLOAT } }
        node_def { name: "n" op: ")",
              inner, "\" input: \"a\" ", attr, R"( }
        node_def { name: "m" op: ")",
              inner, "\" input: \"n:", result, ":0\" ", attr, R"( }
        ret { key: "b" value: "m:)",
              result, ":0\" } }");
  }
  pb::GraphDef def;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text + "}", &def));
  Graph graph;
  SLUICE_ASSERT_OK(ImportGraphDef(def, {}, &graph));
  auto session = *Session::Create(Config(), graph);
  EXPECT_THAT(session->Eval({graph.FindNode("y"), 0}).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("is over the limit graph_nodes=100")));
  SLUICE_EXPECT_OK(Run(Config()));
}

TEST_F(SecurityTest, AGraphWithTooManyBytesIsRefused) {
  Start(WithLimit("graph_bytes=1000"));
  Graph graph;
  const Output x =
      Scope(graph).Const(Tensor::Scalar<std::string>(std::string(2000, 'x')));
  auto session = *Session::Create(Config(), graph);
  EXPECT_THAT(session->Eval(x).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("limit graph_bytes=1000")));
}

TEST_F(SecurityTest, ARequestThatIsTooLargeIsRefused) {
  Start(WithLimit("message_bytes=10K"));
  Graph graph;
  const Scope scope(graph);
  const Output x = scope.Add("Placeholder", {}, {{"dtype", DType::kString}});
  const Output y = scope.Add("Identity", {x});
  auto session = *Session::Create(Config(), graph);
  const auto run = [&](size_t size) {
    return session
        ->Eval(y, {{x, Tensor::Scalar<std::string>(std::string(size, 'x'))}})
        .status();
  };
  SLUICE_EXPECT_OK(run(1000));
  EXPECT_THAT(run(20000), StatusIs(absl::StatusCode::kResourceExhausted,
                                   HasSubstr("limit message_bytes=10240")));
  SLUICE_EXPECT_OK(run(1000));
}

TEST_F(SecurityTest, OneRegisteredGraphTooManyIsRefused) {
  Start(WithLimit("graphs=3"), {});
  Graph graph;
  const Scope ps = Scope(graph).Device("/job:ps/task:0");
  auto session = *Session::Create(Config(), graph);
  const auto run_another = [&] {
    return session->Eval(ps.Scalar(1.0f)).status();
  };
  for (int i = 0; i < 3; ++i) SLUICE_ASSERT_OK(run_another());
  EXPECT_THAT(run_another(), StatusIs(absl::StatusCode::kResourceExhausted,
                                      HasSubstr("limit graphs=3")));
  SLUICE_ASSERT_OK(session->Close());
  SLUICE_EXPECT_OK(Run(Config()));
}

TEST_F(SecurityTest, OpsStayInTheJail) {
  const TempDir dir;
  SLUICE_ASSERT_OK(RealFileSystem().MkDirs(dir / "in"));
  SLUICE_ASSERT_OK(RealFileSystem().WriteFile(dir / "in/f", "inside"));
  SLUICE_ASSERT_OK(RealFileSystem().WriteFile(dir / "f", "outside"));
  Start({}, {.allowed_files = {dir / "in"}});
  Graph graph;
  const Scope scope = Scope(graph).Device("/job:worker/task:0");
  const Output name = scope.Add("Placeholder", {}, {{"dtype", DType::kString}});
  const Output read = scope.Add("ReadFile", {name});
  const Output match = scope.Add("MatchingFiles", {name});
  const Output text =
      scope.Const(Tensor::Scalar<std::string>(std::string("new")));
  Node* const write = scope.AddNode("WriteFile", {name, text});
  SessionConfig config = Config();
  config.options.fold_constants = true;
  auto session = *Session::Create(config, graph);
  const auto fed = [&](const std::string& path) {
    return std::vector<Session::Feed>{
        {name, Tensor::Scalar<std::string>(std::string(path))}};
  };
  EXPECT_EQ(session->Eval(read, fed(dir / "in/f"))->scalar<std::string>(),
            "inside");
  SLUICE_EXPECT_OK(session->Run(write, fed(dir / "in/g")));
  const auto denied =
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(dir / "in"));
  EXPECT_THAT(session->Eval(read, fed(dir / "f")).status(), denied);
  EXPECT_THAT(session->Eval(read, fed(dir / "in/../f")).status(), denied);
  EXPECT_THAT(session->Eval(match, fed(dir / "*")).status(), denied);
  EXPECT_THAT(session->Run(write, fed(dir / "g")), denied);
  // Also not where a constant can be computed before the step runs.
  const Output known =
      scope.Const(Tensor::Scalar<std::string>(std::string(dir / "f")));
  const Output folded = scope.Add("Identity", {scope.Add("ReadFile", {known})});
  EXPECT_THAT(session->Eval(folded).status(), denied);
  EXPECT_FALSE(RealFileSystem().Exists(dir / "g"));
}

}  // namespace
}  // namespace sluice
