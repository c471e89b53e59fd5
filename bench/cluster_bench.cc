// Steps over two tasks, a ps and a worker, that talk by a lane (with
// SLUICE_LANE=grpc by gRPC over loopback). Both are in this process, so that
// the counters see the whole cluster; the client's session finds its master
// without the network. bench/rival has the same with processes of their own.
#include <benchmark/benchmark.h>

#include "bench/counters.h"
#include "sluice/base/logging.h"
#include "sluice/graph/scope.h"
#include "sluice/server/server.h"
#include "sluice/session/session.h"

namespace sluice {
namespace {

// The cluster's only worker; its ps serves on beside it.
const std::string& WorkerTarget() {
  static const std::shared_ptr<Server> worker = [] {
    const auto ps = Server::CreateLocal();
    SLUICE_CHECK(ps.ok()) << ps.status();
    // Ports are free ones: the first cluster is only asked for two.
    const auto other = Server::CreateLocal();
    SLUICE_CHECK(other.ok()) << other.status();
    const auto address = [](const std::string& target) {
      return target.substr(sizeof("grpc://") - 1);
    };
    const ClusterSpec cluster{{"ps", {address((*ps)->target())}},
                              {"worker", {address((*other)->target())}}};
    (*ps)->Stop().IgnoreError();
    (*other)->Stop().IgnoreError();
    SLUICE_CHECK(Server::Create(cluster, "ps", 0).ok());
    const auto started = Server::Create(cluster, "worker", 0);
    SLUICE_CHECK(started.ok()) << started.status();
    return *started;
  }();
  return worker->target();
}

class ClusterStep {
 public:
  explicit ClusterStep(int64_t floats) : ps_(root_), worker_(root_) {
    ps_ = root_.Device("/job:ps/task:0");
    worker_ = root_.Device("/job:worker/task:0");
    variable_ = Variable(ps_, floats);
  }

  // Zeros, on the device of `scope`.
  Output Variable(const Scope& scope, int64_t floats) {
    const Output variable =
        scope.Add("VariableV2", {},
                  {{"dtype", DType::kFloat},
                   {"shape", PartialShape({floats})},
                   // Servers outlive a benchmark, and so do its variables.
                   {"shared_name", std::to_string(floats)}});
    const Output zeros =
        scope.Const(*Tensor::Zeros(DType::kFloat, Shape({floats})));
    init_.push_back(scope.AddNode("Assign", {variable, zeros}));
    return variable;
  }

  const Scope& ps() const { return ps_; }
  const Scope& worker() const { return worker_; }
  Output variable() const { return variable_; }

  // Runs `target` again and again, warm.
  void Measure(benchmark::State& state, Node* target) {
    SLUICE_CHECK(root_.ok()) << root_.status();
    SessionConfig config;
    config.target = WorkerTarget();
    auto session = *Session::Create(config, graph_);
    const absl::Status status = session->Run({}, {}, init_, nullptr);
    SLUICE_CHECK(status.ok()) << status;
    StepSignature signature;
    signature.targets = {target->name()};
    auto step = *session->Prepare(signature);
    const auto run = [&] {
      const absl::Status status = step->Run({}, {}, {}, nullptr);
      SLUICE_CHECK(status.ok()) << status;
    };
    for (int i = 0; i < 20; ++i) run();
    const StepCounters counters;
    for (auto _ : state) run();
    counters.Report(state);
  }

 private:
  Graph graph_;
  Scope root_{graph_};
  Scope ps_, worker_;
  Output variable_;
  std::vector<Node*> init_;
};

// The worker reads a variable of the ps.
void Pull(benchmark::State& state) {
  ClusterStep step(state.range(0) / sizeof(float));
  Node* read = step.worker().AddNode("Identity", {step.variable()});
  step.Measure(state, read);
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Pull)->RangeMultiplier(16)->Range(1 << 10, 64 << 20)->UseRealTime();

// The ps adds a variable of the worker to its own.
void Push(benchmark::State& state) {
  const int64_t floats = state.range(0) / sizeof(float);
  ClusterStep step(floats);
  const Output delta =
      step.worker().Add("Identity", {step.Variable(step.worker(), floats)});
  Node* add = step.ps().AddNode("AssignAdd", {step.variable(), delta});
  step.Measure(state, add);
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Push)->RangeMultiplier(16)->Range(1 << 10, 64 << 20)->UseRealTime();

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
