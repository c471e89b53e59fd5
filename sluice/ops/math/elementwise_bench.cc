// What an element-wise kernel costs on small tensors, beside the cost of making
// its output.
#include <benchmark/benchmark.h>

#include "sluice/graph/scope.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/kernel/run_kernel.h"

namespace sluice {
namespace {

// One node with its inputs in slots, ready to run again and again.
class Bench {
 public:
  Bench(const char* op, std::vector<Tensor> inputs, bool last_use) {
    Scope scope(graph_);
    std::vector<Output> outputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      outputs.push_back(
          scope.Add("Placeholder", {}, {{"dtype", inputs[i].dtype()}}));
      slots_[i].tensor = std::move(inputs[i]);
      slots_[i].kind = Slot::Kind::kValue;
      last_use_[i] = last_use;
    }
    node_ = scope.AddNode(op, outputs);
    kernel_ = *MakeKernel(*node_, ScratchDevice());
    where_ = {node_, at_, last_use_, 2, node_->output_types().data()};
    ctx_.Enter(where_);
  }

  void Run() {
    benchmark::DoNotOptimize(kernel_->Run(ctx_).ok());
    slots_[2].tensor = Tensor();
  }
  void MakeOutputOnly() {
    benchmark::DoNotOptimize(ctx_.Output(0, ctx_.input(0).shape()).ok());
    slots_[2].tensor = Tensor();
  }

 private:
  Graph graph_;
  Node* node_ = nullptr;
  std::unique_ptr<Kernel> kernel_;
  Step step_;
  Slot slots_[3];
  const int32_t at_[2] = {0, 1};
  bool last_use_[2] = {};
  NodeSlots where_;
  KernelContext ctx_{step_, ScratchDevice(), slots_};
};

Tensor Filled(const Shape& shape) {
  Tensor tensor(DType::kFloat, shape);
  for (float& value : tensor.mutable_data<float>()) value = 1.5f;
  return tensor;
}

void BM_OutputOnly(benchmark::State& state) {
  Bench bench("AddV2", {Filled({}), Filled({})}, false);
  for (auto _ : state) bench.MakeOutputOnly();
}
BENCHMARK(BM_OutputOnly);

void BM_AddScalars(benchmark::State& state) {
  Bench bench("AddV2", {Filled({}), Filled({})}, false);
  for (auto _ : state) bench.Run();
}
BENCHMARK(BM_AddScalars);

void BM_AddEqualShapes(benchmark::State& state) {
  Bench bench("AddV2", {Filled({2, 4}), Filled({2, 4})}, false);
  for (auto _ : state) bench.Run();
}
BENCHMARK(BM_AddEqualShapes);

void BM_MulByScalar(benchmark::State& state) {
  Bench bench("Mul", {Filled({8}), Filled({})}, false);
  for (auto _ : state) bench.Run();
}
BENCHMARK(BM_MulByScalar);

void BM_AddRow(benchmark::State& state) {
  Bench bench("AddV2", {Filled({4, 8}), Filled({8})}, false);
  for (auto _ : state) bench.Run();
}
BENCHMARK(BM_AddRow);

void BM_Neg(benchmark::State& state) {
  Bench bench("Neg", {Filled({})}, false);
  for (auto _ : state) bench.Run();
}
BENCHMARK(BM_Neg);

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
