#include "sluice/client/variable_scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/client/collections.h"
#include "sluice/client/initializers.h"
#include "sluice/client/op_call.h"

namespace sluice {
namespace {
namespace variable_scope_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(VariableScope, NamesVariablesAndOps) {
  Graph graph;
  const Scope root(graph);
  const VariableScope a(root.NameScope("ops"), "a");
  const VariableScope b(a, "b");
  EXPECT_EQ(b.name(), "a/b");
  const Variable v = b.GetVariable("v", {2, 3});
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(v.name(), "a/b/v");
  EXPECT_EQ(v.shape().DebugString(), "[2,3]");
  EXPECT_TRUE(v.trainable());
  EXPECT_EQ(b.Add("Identity", {v}).node->name(), "ops/a/b/Identity");
  EXPECT_EQ(VariableScope(root).GetVariable("w", {}).name(), "w");
}

TEST(VariableScope, AVariableIsMadeOnceAndFoundAgain) {
  Graph graph;
  const Scope root(graph);
  const VariableScope a(root, "a");
  const Variable v = a.GetVariable("v", {2});
  const VariableScope again(root, "a", {.reuse = Reuse::kAlways});
  EXPECT_EQ(again.GetVariable("v", {2}), v);
  EXPECT_EQ(again.FindVariable("v"), v);
  EXPECT_EQ(
      VariableScope(root, a, {.reuse = Reuse::kAuto}).GetVariable("v", {2}), v);
  EXPECT_EQ(a.FindVariable("v"), v);
  EXPECT_EQ(VariableScope(again, "b").reuse(), Reuse::kAlways);
  const VariableScope either(root, "a", {.reuse = Reuse::kAuto});
  EXPECT_EQ(either.GetVariable("new", {}), either.GetVariable("new", {}));
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(GlobalVariables(graph).size(), 2u);
}

// What goes wrong, and what is said of it.
TEST(VariableScope, MistakesAreNamed) {
  struct Mistake {
    std::function<void(const Scope&)> make;
    std::string text;
  };
  const auto second = [](const Reuse reuse, const Shape& shape,
                         const GetVariableOptions& options) {
    return [=](const Scope& root) {
      VariableScope(root, "a").GetVariable("v", {2});
      VariableScope(root, "a", {.reuse = reuse})
          .GetVariable("v", shape, options);
    };
  };
  const Mistake mistakes[] = {
      {second(Reuse::kNever, {2}, {}),
       "Variable a/v already exists, disallowed."},
      {second(Reuse::kAlways, {3}, {}),
       "Trying to share variable a/v, but specified shape [3] and found shape "
       "[2]."},
      {second(Reuse::kAuto, {2}, {.dtype = DType::kDouble}),
       "Trying to share variable a/v, but specified dtype double and found "
       "dtype float."},
      {[](const Scope& root) {
         VariableScope(root, "a", {.reuse = Reuse::kAlways})
             .GetVariable("v", {2});
       },
       "Variable a/v does not exist, or was not created with GetVariable."},
      {[](const Scope& root) { VariableScope(root).FindVariable("v"); },
       "Variable v does not exist"},
      {[](const Scope& root) {
         VariableScope(root).GetVariable("v", {2},
                                         {.dtype = DType::kComplex64});
       },
       "An initializer for variable v of complex64 is required"},
      {[](const Scope& root) {
         VariableScope(root).GetPartitionedVariable(
             "v", {2, 2}, {.partitioner = [](const Shape&, DType) {
               return std::vector<int>{2, 2};
             }});
       },
       "Can only slice a variable along one dimension"},
      {[](const Scope& root) {
         VariableScope(root).GetPartitionedVariable(
             "v", {2, 2}, {.partitioner = FixedSizePartitioner(2, 5)});
       },
       "does not match the rank of v"},
      {[](const Scope& root) {
         VariableScope(root).GetPartitionedVariable("v", {});
       },
       "at least one dimension"},
      {[](const Scope& root) {
         VariableScope(root).GetPartitionedVariable("v", {2});
         VariableScope(root).GetPartitionedVariable("v", {2});
       },
       "Partitioned variable with name v already exists."},
      {[](const Scope& root) {
         const VariableScope scope(root, "", {.reuse = Reuse::kAuto});
         scope.GetPartitionedVariable("v", {2});
         scope.GetPartitionedVariable("v", {3});
       },
       "Trying to reuse partitioned variable v, but specified shape [3] and "
       "found shape [2]."},
  };
  for (const Mistake& mistake : mistakes) {
    Graph graph;
    const Scope root(graph);
    mistake.make(root);
    EXPECT_THAT(std::string(root.status().message()), HasSubstr(mistake.text));
  }
}

TEST(VariableScope, UniqueNamesCountAndStartAnewInAnotherScope) {
  Graph graph;
  const Scope root(graph);
  const auto three = [&](const VariableScope& outer) {
    std::vector<std::string> names;
    for (int i = 0; i < 3; ++i) {
      names.push_back(VariableScope::Unique(outer, "layer").name());
    }
    return names;
  };
  EXPECT_THAT(three(root), ElementsAre("layer", "layer_1", "layer_2"));
  const VariableScope a(root, "a");
  EXPECT_THAT(three(a), ElementsAre("a/layer", "a/layer_1", "a/layer_2"));
  const VariableScope again(root, "a");
  EXPECT_THAT(three(again), ElementsAre("a/layer", "a/layer_1", "a/layer_2"));
}

TEST(VariableScope, DefaultsAreInherited) {
  Graph graph;
  const Scope root(graph);
  const auto norm = [](const Scope& scope, const Variable& v) {
    return scope.Named("l2").Add("L2Loss", {v});
  };
  const VariableScope outer(root, "outer",
                            {.dtype = DType::kDouble,
                             .initializer = OnesInitializer,
                             .regularizer = norm,
                             .resource = true});
  const VariableScope inner(outer, "inner");
  const Variable v = inner.GetVariable("v", {2});
  const Variable w =
      inner.GetVariable("w", {2},
                        {.dtype = DType::kFloat,
                         .resource = false,
                         .trainable = false,
                         .collections = {keys::kLocalVariables}});
  const Variable n =
      VariableScope(root).GetVariable("n", {2}, {.dtype = DType::kInt64});
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(v.dtype(), DType::kDouble);
  EXPECT_TRUE(v.resource());
  EXPECT_EQ(v.initial_value().node->name(), "outer/inner/v/Initializer/ones");
  EXPECT_EQ(w.dtype(), DType::kFloat);
  EXPECT_FALSE(w.resource());
  EXPECT_EQ(n.initial_value().node->name(), "n/Initializer/zeros");
  EXPECT_THAT(LocalVariables(graph), ElementsAre(w));
  EXPECT_THAT(TrainableVariables(graph), ElementsAre(v, n));
  const std::vector<Output> losses =
      Collections::Of(graph).outputs(keys::kRegularizationLosses);
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(losses[0].node->name(), "outer/inner/v/Regularizer/l2");
}

TEST(VariableScope, DevicesAndControlAreTheScopes) {
  Graph graph;
  const Scope root(graph);
  const VariableScope a(root, "a");
  const Variable v = a.On(a.Device("/job:ps/task:1")).GetVariable("v", {2});
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(v.name(), "a/v");
  EXPECT_EQ(v.device(), "/job:ps/task:1");
}

TEST(VariableScope, PartsKnowTheWhole) {
  Graph graph;
  const Scope root(graph);
  const VariableScope p(root, "p", {.partitioner = FixedSizePartitioner(3, 1)});
  const std::vector<Variable> parts = p.GetPartitionedVariable("w", {4, 8});
  ASSERT_TRUE(root.ok()) << root.status();
  std::vector<std::string> seen;
  for (const Variable& part : parts) {
    seen.push_back(
        StrCat(part.name(), " ", part.saved_name(), " ", part.saved_slice()));
  }
  EXPECT_THAT(seen, ElementsAre("p/w/part_0 p/w 4 8 0,4:0,3",
                                "p/w/part_1 p/w 4 8 0,4:3,3",
                                "p/w/part_2 p/w 4 8 0,4:6,2"));
  const VariableScope again(root, "p", {.reuse = Reuse::kAlways});
  EXPECT_EQ(again.GetPartitionedVariable("w", {4, 8}), parts);
}

TEST(Partitioners, SayHowManyParts) {
  const Shape shape = {10, 4};  // 160 bytes of floats.
  const auto of = [&](const Partitioner& p, DType dtype = DType::kFloat) {
    return p(shape, dtype);
  };
  EXPECT_THAT(of(FixedSizePartitioner(3)), ElementsAre(3, 1));
  EXPECT_THAT(of(FixedSizePartitioner(30)), ElementsAre(10, 1));
  EXPECT_THAT(of(FixedSizePartitioner(2, 1)), ElementsAre(1, 2));
  EXPECT_THAT(of(VariableAxisSizePartitioner(64)), ElementsAre(3, 1));
  EXPECT_THAT(of(VariableAxisSizePartitioner(1)), ElementsAre(10, 1));
  EXPECT_THAT(of(VariableAxisSizePartitioner(64, 0, 2)), ElementsAre(2, 1));
  EXPECT_THAT(of(VariableAxisSizePartitioner(256), DType::kString),
              ElementsAre(3, 1));
  EXPECT_THAT(of(MinMaxVariablePartitioner(2, 0, 64)), ElementsAre(2, 1));
  EXPECT_THAT(of(MinMaxVariablePartitioner(9, 0, 64)), ElementsAre(3, 1));
  EXPECT_THAT(of(MinMaxVariablePartitioner()), ElementsAre(1, 1));
}

}  // namespace variable_scope_test
}  // namespace
}  // namespace sluice
