#include "sluice/autodiff/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/autodiff/testing/node_text.h"
#include "sluice/autodiff/testing/test_ops.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

TEST(Group, WaitsForAllOnOneDevice) {
  Graph graph;
  const Scope ps = Scope(graph).Device("/job:ps");
  std::vector<Node*> nodes = {TestSource(ps, "a").node,
                              TestSource(ps, "b").node};
  Group(Scope(graph), nodes, "all");
  EXPECT_THAT(NodeLines(graph, 2), ElementsAre("all = NoOp(^a, ^b) @/job:ps"));
}

TEST(Group, WaitsOnEachDeviceFirst) {
  Graph graph;
  std::vector<Node*> nodes;
  for (const char* device : {"/job:b", "/job:a", "/job:b"}) {
    nodes.push_back(TestSource(Scope(graph).Device(device), "n").node);
  }
  Group(Scope(graph), nodes);
  EXPECT_THAT(NodeLines(graph, 3),
              ElementsAre("group_deps/NoOp = NoOp(^n_1) @/job:a",
                          "group_deps/NoOp_1 = NoOp(^n, ^n_2) @/job:b",
                          "group_deps = NoOp(^group_deps/NoOp, "
                          "^group_deps/NoOp_1)"));
}

TEST(Group, OfNothingDoesNothing) {
  Graph graph;
  Group(Scope(graph), {});
  EXPECT_THAT(NodeLines(graph, 0), ElementsAre("group_deps = NoOp()"));
}

TEST(Tuple, LetsValuesWaitForEachOther) {
  Graph graph;
  const Scope root(graph);
  const Output a = TestSource(root, "a");
  const Output v = TestSource(root, "v");
  const Output i = TestSource(root, "i", {2}, DType::kInt32);
  const Grad grads[] = {Grad::Slices(v, i, Output()), Grad(), a, a};
  const std::vector<Grad> gated = Tuple(root, grads);
  EXPECT_THAT(
      NodeLines(graph, 3),
      ElementsAre("tuple/group_deps = NoOp(^a, ^v)",
                  "tuple/control_dependency = Identity(v, ^tuple/group_deps) "
                  "loc:@v",
                  "tuple/control_dependency_1 = Identity(a, ^tuple/group_deps) "
                  "loc:@a",
                  "tuple/control_dependency_2 = Identity(a, ^tuple/group_deps) "
                  "loc:@a"));
  EXPECT_EQ(gated[0].indices, i);
  EXPECT_FALSE(gated[1]);
}

}  // namespace
}  // namespace sluice
