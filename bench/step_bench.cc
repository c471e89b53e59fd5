// Steps in one process: what the engine adds to the work of the kernels.
#include <benchmark/benchmark.h>

#include "bench/counters.h"
#include "sluice/autodiff/gradients.h"
#include "sluice/base/logging.h"
#include "sluice/graph/scope.h"
#include "sluice/session/session.h"

namespace sluice {
namespace {

// A step of a local session, prepared and warm.
class WarmStep {
 public:
  WarmStep(const Scope& scope, const std::vector<Node*>& init,
           const std::vector<Output>& feeds, std::vector<Tensor> values,
           const std::vector<Output>& fetches,
           const std::vector<Node*>& targets)
      : values_(std::move(values)), fetched_(fetches.size()) {
    SLUICE_CHECK(scope.ok()) << scope.status();
    session_ = *Session::Create({}, scope.graph());
    SLUICE_CHECK(init.empty() || session_->Run({}, {}, init, nullptr).ok());
    StepSignature signature;
    for (const Output& o : feeds) signature.feeds.push_back(TensorName(o));
    for (const Output& o : fetches) signature.fetches.push_back(TensorName(o));
    for (const Node* n : targets) signature.targets.push_back(n->name());
    step_ = *session_->Prepare(signature);
    for (int i = 0; i < 100; ++i) Run();
  }

  void Run() {
    const absl::Status status = step_->Run(values_, fetched_, {}, nullptr);
    SLUICE_CHECK(status.ok()) << status;
  }

  void Measure(benchmark::State& state) {
    const StepCounters counters;
    for (auto _ : state) Run();
    counters.Report(state);
  }

 private:
  std::unique_ptr<Session> session_;
  std::shared_ptr<PreparedStep> step_;
  std::vector<Tensor> values_;
  std::vector<Tensor> fetched_;
};

Output Fed(const Scope& scope, const PartialShape& shape) {
  return scope.Add("Placeholder", {},
                   {{"dtype", DType::kFloat}, {"shape", shape}});
}

void ScalarAdd(benchmark::State& state) {
  Graph graph;
  Scope scope(graph);
  const Output x = Fed(scope, PartialShape::Scalar());
  const Output y = scope.Add("AddV2", {x, scope.Scalar(1.0f)});
  WarmStep(scope, {}, {x}, {Tensor::Scalar(2.0f)}, {y}, {}).Measure(state);
}
BENCHMARK(ScalarAdd);

void ChainOf1000(benchmark::State& state) {
  Graph graph;
  Scope scope(graph);
  const Output x = Fed(scope, PartialShape::Scalar());
  Output y = x;
  for (int i = 0; i < 1000; ++i) y = scope.Add("AddV2", {y, x});
  WarmStep(scope, {}, {x}, {Tensor::Scalar(1.0f)}, {y}, {}).Measure(state);
}
BENCHMARK(ChainOf1000);

Output Variable(const Scope& scope, std::vector<Node*>* init, Output value) {
  const Output v = scope.Add(
      "VariableV2", {}, {{"dtype", TypeOf(value)}, {"shape", ShapeOf(value)}});
  init->push_back(scope.AddNode("Assign", {v, value}));
  return v;
}

// 784-128-10, a batch of 32, one step of gradient descent.
void MlpTrainingStep(benchmark::State& state) {
  Graph graph;
  Scope scope(graph);
  std::vector<Node*> init;
  const auto weights = [&](int rows, int columns) {
    return Variable(scope, &init,
                    scope.Add("TruncatedNormal", {scope.Ints({rows, columns})},
                              {{"dtype", DType::kFloat}}));
  };
  const auto bias = [&](int n) {
    return Variable(scope, &init,
                    scope.Const(*Tensor::Zeros(DType::kFloat, Shape({n}))));
  };
  const Output x = Fed(scope, PartialShape({32, 784}));
  const Output y =
      scope.Add("Placeholder", {},
                {{"dtype", DType::kInt64}, {"shape", PartialShape({32})}});
  const Output w1 = weights(784, 128), w2 = weights(128, 10);
  const Output b1 = bias(128), b2 = bias(10);
  const Output hidden = scope.Add(
      "Relu", {scope.Add("BiasAdd", {scope.Add("MatMul", {x, w1}), b1})});
  const Output logits =
      scope.Add("BiasAdd", {scope.Add("MatMul", {hidden, w2}), b2});
  const Output loss = scope.Add(
      "Mean", {scope.Add("SparseSoftmaxCrossEntropyWithLogits", {logits, y}),
               scope.Ints({0})});
  const std::vector<Output> variables = {w1, b1, w2, b2};
  const auto gradients = AddGradients(scope, {{loss}}, variables);
  SLUICE_CHECK(gradients.ok()) << gradients.status();
  std::vector<Node*> updates;
  for (size_t i = 0; i < variables.size(); ++i) {
    updates.push_back(scope.AddNode(
        "ApplyGradientDescent",
        {variables[i], scope.Scalar(0.01f), (*gradients)[i].values}));
  }
  WarmStep(scope, init, {x, y},
           {*Tensor::Zeros(DType::kFloat, Shape({32, 784})),
            *Tensor::Zeros(DType::kInt64, Shape({32}))},
           {loss}, updates)
      .Measure(state);
}
BENCHMARK(MlpTrainingStep);

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
