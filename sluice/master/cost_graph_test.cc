#include "sluice/master/cost_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/graph/scope.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

NodeStats Ran(const std::string& node, int64_t micros) {
  NodeStats stats;
  stats.node = node;
  stats.start_nanos = 5000;
  stats.end_nanos = 5000 + micros * 1000;
  stats.outputs = {{0, DType::kFloat, Shape({3}), 12},
                   {-1, DType::kFloat, Shape({3}), 12},
                   {1 << 30, DType::kFloat, Shape({3}), 12}};
  return stats;
}

TEST(CostGraph, JoinsTheGraphsOfAStepWithWhatWasMeasured) {
  auto a = std::make_shared<Graph>();
  Scope on_a(*a);
  on_a.Named("alone").AddNode("NoOp", {});
  auto b = std::make_shared<Graph>();
  Scope on_b(*b);
  const Output x = on_b.Named("x").Scalar(1.0f);
  const Output y = on_b.Named("y").Add("Neg", {x});
  on_b.Control(std::vector{x.node}).Named("z").Add("Neg", {y});
  b->node(1)->set_assigned_device("/device:CPU:0");
  const std::vector<StepStatsCollector::DeviceStats> stats = {
      {"/device:CPU:0", {Ran("y", 7), Ran("y", 4), Ran("x/_G0", 100)}}};
  const std::vector<CostNode> nodes =
      CostGraph(std::vector<std::shared_ptr<const Graph>>{a, b}, stats);
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(nodes[0].name, "alone");
  EXPECT_EQ(nodes[2].name, "y");
  EXPECT_EQ(nodes[2].device, "/device:CPU:0");
  EXPECT_EQ(nodes[2].micros, 11);
  EXPECT_THAT(nodes[2].inputs, ElementsAre(Pair(1, 0)));
  ASSERT_EQ(nodes[2].outputs.size(), 1u);
  EXPECT_EQ(nodes[2].outputs[0].bytes, 12);
  EXPECT_THAT(nodes[3].inputs, ElementsAre(Pair(2, 0)));
  EXPECT_THAT(nodes[3].controls, ElementsAre(1));
  EXPECT_THAT(nodes[3].outputs, IsEmpty());
  EXPECT_EQ(nodes[3].micros, 0);
}

}  // namespace
}  // namespace sluice
