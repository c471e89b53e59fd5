// Programs of tests/golden/graphs written in C++: every node they build must be
// the one TensorFlow 1.15.5's Python built.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/client/collections.h"
#include "sluice/client/initializers.h"
#include "sluice/train/global_step.h"
#include "sluice/train/initialize.h"
#include "sluice/train/optimizers.h"
#include "sluice/train/replica_device_setter.h"
#include "sluice/train/saver.h"
#include "sluice/train/testing/golden_graph.h"

namespace sluice {
namespace {

// The lines of one that the other does not have.
std::vector<std::string> Missing(const std::vector<std::string>& from,
                                 const std::vector<std::string>& in) {
  std::vector<std::string> result;
  std::ranges::set_difference(from, in, std::back_inserter(result));
  return result;
}

void ExpectGolden(Graph& graph, const std::string& name) {
  const std::vector<std::string> ours = SortedNodeLines(graph);
  const std::vector<std::string> golden = GoldenNodeLines(name);
  EXPECT_THAT(Missing(ours, golden), testing::IsEmpty()) << "only ours";
  EXPECT_THAT(Missing(golden, ours), testing::IsEmpty()) << "only golden";
}

Output Placeholder(const Scope& scope, std::string_view name, DType dtype,
                   const PartialShape& shape = {}) {
  return scope.Named(name).Add("Placeholder", {},
                               {{"dtype", dtype}, {"shape", shape}});
}

TEST(GoldenGraphs, AdagradOnTwoParameterServersIsBuiltAsByPython) {
  Graph graph;
  const Scope root(graph);
  const ClusterSpec cluster = {{"ps", {"localhost:1", "localhost:2"}},
                               {"worker", {"localhost:3", "localhost:4"}}};
  const Scope scope = root.Device(ReplicaDeviceSetter(
      {.worker_device = "/job:worker/task:1", .cluster = cluster}));
  const Output x = Placeholder(scope, "X", DType::kFloat);
  const Output y = Placeholder(scope, "Y", DType::kFloat);
  const Variable w(scope.Named("b0"), Tensor::Scalar(-1.0f));
  const Variable b(scope.Named("b1"), Tensor::Scalar(-2.0f));
  const Output product = scope.Named("Mul").Add("Mul", {x, w});
  const Output model = scope.Named("add").Add("AddV2", {product, b});
  const Output error = scope.Named("sub").Add("Sub", {y, model});
  const Scope pow = scope.NameScope("Pow");
  const Output two = pow.Named("y").Scalar(2.0f);
  const Output loss = scope.Named("Pow/").Add("Pow", {error, two});
  const Variable step(scope, Tensor::Scalar<int32_t>(0));
  AdagradOptimizer(0.8).Minimize(scope, loss, {.global_step = step});
  const Saver saver(scope);
  GlobalVariablesInitializer(scope);
  ASSERT_TRUE(root.ok()) << root.status();
  ExpectGolden(graph, "linreg_adagrad_ps2");
}

TEST(GoldenGraphs, AShardedSaverIsBuiltAsByPython) {
  Graph graph;
  const Scope root(graph);
  const Variable a(root.Device("/job:ps/task:0").Named("a"),
                   Tensor::Vector<float>({1, 2}));
  const Scope ps1 = root.Device("/job:ps/task:1");
  const Variable b(ps1.Named("b"), Tensor::Scalar<int32_t>(3));
  const Variable b2(ps1.Named("b2"), Tensor::Scalar(4.0f));
  const Variable c(root.Device("/job:worker/task:0/cpu:0").Named("c"),
                   Tensor::Scalar<std::string>("s"));
  const Saver saver(root, {.sharded = true});
  ASSERT_TRUE(root.ok()) << root.status();
  ExpectGolden(graph, "saver_sharded");
}

}  // namespace
}  // namespace sluice
