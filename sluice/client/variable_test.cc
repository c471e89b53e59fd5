#include "sluice/client/variable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/client/collections.h"
#include "sluice/client/initializers.h"
#include "sluice/graph/scope.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> NodeNames(const Graph& graph) {
  std::vector<std::string> names;
  for (int i = 0; i < graph.num_nodes(); ++i) {
    names.push_back(graph.node(i)->name());
  }
  return names;
}

std::vector<std::string> Located(const Node* node) {
  return node->attr<AttrList>("_class").strings;
}

TEST(Variable, NamesItsNodesAsPythonDoes) {
  Graph graph;
  Scope root(graph);
  Variable w(root.Named("w"), Tensor::Scalar<float>(2));
  Variable again(root.Named("w"), Tensor::Scalar<float>(3));
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_THAT(NodeNames(graph), ElementsAre("w/initial_value", "w", "w/Assign",
                                            "w/read", "w_1/initial_value",
                                            "w_1", "w_1/Assign", "w_1/read"));
  EXPECT_EQ(w.name(), "w");
  EXPECT_EQ(w.dtype(), DType::kFloat);
  EXPECT_EQ(w.shape().DebugString(), "[]");
  EXPECT_EQ(w.initializer()->type(), "Assign");
  EXPECT_THAT(Located(w.value().node), ElementsAre("loc:@w"));
}

TEST(Variable, BuildsItsFirstValueBesideItself) {
  Graph graph;
  Scope root(graph);
  Variable w(root.Device("/job:ps").Named("w"), ZerosInitializer({3}));
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_THAT(NodeNames(graph),
              ElementsAre("w/Initializer/zeros", "w", "w/Assign", "w/read"));
  EXPECT_EQ(w.initial_value().node->device(), "");
  EXPECT_THAT(Located(w.initial_value().node), ElementsAre("loc:@w"));
  EXPECT_EQ(w.device(), "/job:ps");
}

TEST(Variable, FillsLargeZerosWhenItIsInitialised) {
  Graph graph;
  Scope root(graph);
  Variable w(root.Named("w"), ZerosInitializer({1000}));
  EXPECT_THAT(NodeNames(graph),
              ElementsAre("w/Initializer/zeros/shape_as_tensor",
                          "w/Initializer/zeros/Const", "w/Initializer/zeros",
                          "w", "w/Assign", "w/read"));
}

TEST(Variable, MayLiveBehindAHandle) {
  Graph graph;
  Scope root(graph);
  Variable w(root.Named("w"), ZerosInitializer({3}), {.resource = true});
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_THAT(NodeNames(graph),
              ElementsAre("w/Initializer/zeros", "w",
                          "w/IsInitialized/VarIsInitializedOp", "w/Assign",
                          "w/Read/ReadVariableOp"));
  EXPECT_EQ(w.dtype(), DType::kFloat);
  EXPECT_EQ(w.shape().DebugString(), "[3]");
}

TEST(Variable, IsListedInTheCollectionsItWasMadeFor) {
  Graph graph;
  Scope root(graph);
  Variable w(root.Named("w"), Tensor::Scalar<float>(2));
  Variable step(root.Named("step"), Tensor::Scalar<int64_t>(0),
                {.trainable = false});
  Variable local(root.Named("local"), Tensor::Scalar<int64_t>(0),
                 {.trainable = false, .collections = {keys::kLocalVariables}});
  EXPECT_THAT(GlobalVariables(graph), ElementsAre(w, step));
  EXPECT_THAT(TrainableVariables(graph), ElementsAre(w));
  EXPECT_THAT(LocalVariables(graph), ElementsAre(local));
}

TEST(Variable, NeedsAFirstValueOfKnownShape) {
  Graph graph;
  Scope root(graph);
  Output x = root.Named("x").Add("Placeholder", {}, {{"dtype", DType::kFloat}});
  Variable w(root.Named("w"), x);
  EXPECT_FALSE(w);
  EXPECT_THAT(std::string(root.status().message()),
              HasSubstr("initial_value must have a shape specified: x:0"));
  EXPECT_TRUE(GlobalVariables(graph).empty());
}

}  // namespace
}  // namespace sluice
