// Programs of tests/golden/graphs written in C++: every node they build must be
// the one TensorFlow 1.15.5's Python built.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/client/collections.h"
#include "sluice/client/initializers.h"
#include "sluice/client/variable_scope.h"
#include "sluice/train/global_step.h"
#include "sluice/train/initialize.h"
#include "sluice/train/optimizers.h"
#include "sluice/train/replica_device_setter.h"
#include "sluice/train/saver.h"
#include "sluice/train/sync_replicas_optimizer.h"
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

bool StartsWithAny(const std::string& line,
                   const std::vector<std::string>& prefixes) {
  return std::ranges::any_of(prefixes, [&](const std::string& prefix) {
    return line.starts_with(prefix);
  });
}

// Nodes whose names begin with one of `but` are not compared, nor those that
// begin with none of `only`.
void ExpectGolden(Graph& graph, const std::string& name,
                  const std::vector<std::string>& but = {},
                  const std::vector<std::string>& only = {""}) {
  std::vector<std::string> ours = SortedNodeLines(graph);
  std::vector<std::string> golden = GoldenNodeLines(name);
  for (auto* lines : {&ours, &golden}) {
    std::erase_if(*lines, [&](const std::string& line) {
      return StartsWithAny(line, but) || !StartsWithAny(line, only);
    });
    EXPECT_FALSE(lines->empty());
  }
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

TEST(GoldenGraphs, APerceptronWithAdamIsBuiltAsByPython) {
  Graph graph;
  const Scope root(graph);
  const Output x = Placeholder(root, "x", DType::kFloat, {-1, 8});
  const Output y = Placeholder(root, "y", DType::kInt64, {-1});
  const Scope hidden = root.NameScope("hidden");
  const Output start =
      TruncatedNormalInitializer({8, 16}, 0, 0.1, {.seed = 1})(hidden);
  const Variable w1(hidden.Named("w"), start);
  const Variable b1(hidden.Named("b"), ZerosInitializer({16})(hidden));
  const Output product = hidden.Add("MatMul", {x, w1});
  const Output sum = hidden.Named("add").Add("AddV2", {product, b1});
  const Output h = hidden.Add("Relu", {sum});
  const Variable w2(root.Named("out/w"), GlorotUniformInitializer({16, 4}));
  const Variable b2(root.Named("out/b"), ZerosInitializer({4}));
  const Scope out = root.NameScope("out/");
  const Output logits =
      out.Named("logits").Add("BiasAdd", {out.Add("MatMul", {h, w2}), b2});
  const Scope loss_scope = root.NameScope("loss");
  const Scope xent =
      loss_scope.NameScope("SparseSoftmaxCrossEntropyWithLogits");
  xent.Add("Shape", {y});
  const Output losses =
      xent.Add("SparseSoftmaxCrossEntropyWithLogits", {logits, y});
  const Output loss = loss_scope.Add("Mean", {losses, loss_scope.Ints({0})});
  const Scope accuracy = root.NameScope("accuracy");
  const Scope argmax = accuracy.NameScope("ArgMax");
  const Output axis = argmax.Named("dimension").Scalar<int32_t>(1);
  const Output guess =
      argmax.Named(argmax.context().name_scope).Add("ArgMax", {logits, axis});
  const Output right = accuracy.Add("Equal", {guess, y});
  const Output counted =
      accuracy.Add("Cast", {right}, {{"DstT", DType::kFloat}});
  accuracy.Add("Mean", {counted, accuracy.Ints({0})});
  const Variable step = GetOrCreateGlobalStep(root);
  AdamOptimizer(1e-3).Minimize(root, loss, {.global_step = step});
  GlobalVariablesInitializer(root);
  ASSERT_TRUE(root.ok()) << root.status();
  ExpectGolden(graph, "mlp_adam");
}

TEST(GoldenGraphs, VariableScopesAreAsInPython) {
  Graph graph;
  const Scope root(graph);
  const VariableScope a(root, "a");
  const Variable v = a.GetVariable(
      "v", {2, 3}, {.initializer = [](const Shape& shape, DType dtype) {
        return ConstantInitializer(1.5, shape, dtype);
      }});
  const auto square = [](const Scope& scope, const Variable& var) {
    const Output squared = scope.Add("Square", {var});
    return scope.Named("l2").Add("Sum", {squared, scope.Ints({0})});
  };
  const VariableScope b(a, "b", {.regularizer = square});
  const Variable bv = b.GetVariable("v", {3});
  const Scope add = b.NameScope("Add");
  add.Named(add.context().name_scope)
      .Add("Add", {bv, add.Named("y").Scalar(1.0f)});
  const VariableScope again(root, "a", {.reuse = Reuse::kAlways});
  again.Named("again").Add("Identity", {again.GetVariable("v", {2, 3})});
  const VariableScope by_object(root, a, {.reuse = Reuse::kAlways});
  by_object.Named("by_object").Add("Identity", {by_object.FindVariable("v")});
  VariableScope(root, a, {.name_scope = false})
      .Named("no_aux")
      .Add("Identity", {v});
  const Scope ns = root.NameScope("ns");
  const VariableScope c(ns, "c", {.reuse = Reuse::kAuto});
  const Output start = c.Const(Tensor::Vector<int32_t>({1, 2, 3}));
  const Variable x = c.GetVariableFrom("x", start, {.trainable = false});
  EXPECT_EQ(c.GetVariable("x", {3}, {.dtype = DType::kInt32}), x);
  const Variable plain(ns.Named("plain"), Tensor::Vector<float>({1, 2}));
  for (int i = 0; i < 3; ++i) {
    VariableScope::Unique(root, "layer")
        .GetVariable("w", {2}, {.initializer = OnesInitializer});
  }
  const auto uniform = [](const Shape& shape, DType dtype) {
    return RandomUniformInitializer(shape, -1, 1, {.dtype = dtype, .seed = 3});
  };
  const VariableScope init(root, "init",
                           {.dtype = DType::kDouble, .initializer = uniform});
  init.GetVariable("u", {4});
  init.GetVariable(
      "local", {1},
      {.trainable = false, .collections = {keys::kLocalVariables}});
  init.GetVariable("flag", {},
                   {.dtype = DType::kBool,
                    .initializer = ZerosInitializer,
                    .trainable = false});
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(VariableScope(root, "", {.reuse = Reuse::kAlways})
                .GetVariable("a/b/v", {3}),
            bv);
  // RandomUniformInitializer makes no integers.
  ExpectGolden(graph, "variable_scopes", {"init/default_int"});
}

TEST(GoldenGraphs, PartsAndTheirSaverAreBuiltAsByPython) {
  Graph graph;
  const Scope root(graph);
  const Scope scope = root.Device(ReplicaDeviceSetter(
      {.ps_tasks = 3, .worker_device = "/job:worker/task:0"}));
  VariableScope(scope, "p", {.partitioner = FixedSizePartitioner(3)})
      .GetPartitionedVariable(
          "emb", {10, 4}, {.initializer = [](const Shape& part, DType dtype) {
            return RandomNormalInitializer(part, 0, 1,
                                           {.dtype = dtype, .seed = 7});
          }});
  VariableScope(scope, "q",
                {.partitioner = MinMaxVariablePartitioner(2, 0, 64)})
      .GetPartitionedVariable("w", {4, 8}, {.initializer = ZerosInitializer});
  const Saver saver(scope);
  ASSERT_TRUE(root.ok()) << root.status();
  ExpectGolden(graph, "partitioned_variables", {"q/w/ConcatPartitions", "q/w "},
               {"p/", "q/", "save/"});
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

TEST(GoldenGraphs, SynchronousTrainingIsBuiltAsByPython) {
  Graph graph;
  const Scope root(graph);
  const Scope scope = root.Device(ReplicaDeviceSetter(
      {.ps_tasks = 1, .worker_device = "/job:worker/task:0"}));
  const Output x =
      Placeholder(scope, "x", DType::kFloat, PartialShape::Scalar());
  const Variable w(scope.Named("w"), Tensor::Scalar(1.0f));
  const Variable e(scope.Named("e"), ZerosInitializer({4, 2}));
  const Output product = scope.Named("mul").Add("Mul", {w, x});
  const Output two = scope.NameScope("sub").Named("y").Scalar(2.0f);
  const Output error = scope.Named("sub/").Add("Sub", {product, two});
  const Output square = scope.Add("Square", {error});
  const Scope lookup = scope.NameScope("embedding_lookup");
  const Output ids = lookup.Named("ids").Ints({1, 1});
  const Scope beside = lookup.Colocate(e.node());
  const Output axis = beside.Named("axis").Scalar<int32_t>(0);
  const Output rows =
      beside.Named("embedding_lookup/").Add("GatherV2", {e, ids, axis});
  const Output found = lookup.Add("Identity", {rows});
  const Output sum = scope.Add("Sum", {found, scope.Ints({0, 1})});
  const Output loss = scope.Named("add").Add("AddV2", {square, sum});
  const Variable step = GetOrCreateGlobalStep(scope);
  SyncReplicasOptimizer optimizer(
      std::make_shared<GradientDescentOptimizer>(0.1), 2, 3);
  optimizer.Minimize(scope, loss, {.global_step = step});
  optimizer.InitTokensOp(scope);
  ASSERT_TRUE(root.ok()) << root.status();
  // Ours asks with fewer nodes which variables are not initialised.
  ExpectGolden(graph, "sync_replicas", {"report_uninitialized_variables/"});
}

}  // namespace
}  // namespace sluice
