// Loops whose bodies lie on several tasks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/graph/scope.h"
#include "sluice/server/testing/cluster_test.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr char kPs[] = "/job:ps/task:0";
constexpr char kWorker[] = "/job:worker/task:0";

// while (x < limit) x = body(x), all but the body on the worker.
template <typename Body>
Output Loop(const Scope& scope, const std::string& name, Output start,
            float limit, Body body, bool condition_node = true) {
  const Scope worker = scope.Device(kWorker);
  const AttrMap frame = {{"frame_name", name}};
  AttrMap constant = frame;
  constant.Set("is_constant", true);
  const Output enter = worker.Add("Enter", {start}, frame);
  Graph& graph = scope.graph();
  // Made in the frame that the loop is entered from.
  Node* bound = *graph.AddNode(
      {StrCat(name, "_limit"),
       "Const",
       {},
       {start.node},
       {{"value", Tensor::Scalar(limit)}, {"dtype", DType::kFloat}},
       kWorker});
  const Output limit_in = worker.Add("Enter", {bound->output(0)}, constant);
  Node* merge = *graph.AddNode(
      {StrCat(name, "_merge"), "Merge", {enter, enter}, {}, {}, kWorker});
  Output condition = worker.Add("Less", {merge->output(0), limit_in});
  if (condition_node) condition = worker.Add("LoopCond", {condition});
  const std::vector<Output> sides =
      worker.AddMulti("Switch", {merge->output(0), condition});
  const Output next = worker.Add("NextIteration", {body(sides[1])});
  EXPECT_TRUE(graph.SetInput(merge, 1, next).ok());
  return worker.Add("Exit", {sides[0]});
}

// x + 1 on the ps; the 1 is made where x is, so in x's frame.
Output AddOneOnPs(const Scope& scope, Output x) {
  const Scope ps = scope.Device(kPs);
  return ps.Add("Sub", {x, ps.Add("Neg", {ps.Add("Div", {x, x})})});
}

class LoopTest : public ClusterTest {
 protected:
  void ExpectEnd(Graph& graph, Output end, float value) {
    auto session = Open(Remote(*worker0_), graph);
    std::vector<Tensor> out;
    SLUICE_ASSERT_OK(session->Run({}, {end}, {}, &out));
    EXPECT_EQ(out[0].scalar<float>(), value);
  }
};

TEST_F(LoopTest, ABodyOnAnotherTaskRunsOnceAnIteration) {
  Graph graph;
  Scope scope(graph);
  const Output end = Loop(scope, "loop", scope.Scalar(1.0f), 2000.0f,
                          [&](Output x) { return AddOneOnPs(scope, x); });
  ASSERT_TRUE(scope.ok()) << scope.status();
  ExpectEnd(graph, end, 2000.0f);
}

TEST_F(LoopTest, ALoopThatIsNotEnteredEndsOnEveryTask) {
  Graph graph;
  Scope scope(graph);
  const Output end = Loop(scope, "loop", scope.Scalar(7.0f), 5.0f,
                          [&](Output x) { return AddOneOnPs(scope, x); });
  ExpectEnd(graph, end, 7.0f);
}

TEST_F(LoopTest, LoopsInLoopsSpanTasks) {
  Graph graph;
  Scope scope(graph);
  // The inner loop counts up to 10 in ones, so the outer one runs it once and
  // then counts on by itself.
  const Output end =
      Loop(scope, "outer", scope.Scalar(1.0f), 13.0f, [&](Output x) {
        const Output inner = Loop(scope, "inner", x, 10.0f, [&](Output y) {
          return AddOneOnPs(scope, y);
        });
        return AddOneOnPs(scope, inner);
      });
  ASSERT_TRUE(scope.ok()) << scope.status();
  ExpectEnd(graph, end, 13.0f);
}

// Sent in each iteration of a loop of which the ps has nothing else. Hangs in
// TensorFlow.
TEST_F(LoopTest, ABodyReadsAVariableOfATaskThatIsNotInTheLoop) {
  Graph graph;
  Scope scope(graph);
  const Scope ps = scope.Device(kPs);
  const Output variable =
      ps.Add("VariableV2", {},
             {{"shape", PartialShape::Scalar()}, {"dtype", DType::kFloat}});
  Node* const assign = ps.AddNode("Assign", {variable, ps.Scalar(2.0f)});
  const auto read = [&](const std::string& name, Output x) {
    const Output ref = ps.Add("RefEnter", {variable},
                              {{"frame_name", name}, {"is_constant", true}});
    return scope.Device(kWorker).Add("Add", {x, ref});
  };
  const Output end = Loop(scope, "loop", scope.Scalar(1.0f), 6.0f,
                          [&](Output x) { return read("loop", x); });
  ASSERT_TRUE(scope.ok()) << scope.status();
  auto session = Open(Remote(*worker0_), graph);
  SLUICE_ASSERT_OK(session->Run({}, {}, {assign}, nullptr));
  std::vector<Tensor> out;
  SLUICE_ASSERT_OK(session->Run({}, {end}, {}, &out));
  EXPECT_EQ(out[0].scalar<float>(), 7.0f);
}

TEST_F(LoopTest, WhatDoesNotChangeIsMadeOnAnotherTaskInEachLoop) {
  Graph graph;
  Scope scope(graph);
  const auto add_two = [&](const std::string& name, Output two, Output x) {
    const Scope ps = scope.Device(kPs);
    // A plain Enter goes where its value is used first.
    const Output inside =
        ps.Add("Enter", {two}, {{"frame_name", name}, {"is_constant", true}});
    return scope.Device(kWorker).Add("Add", {x, ps.Add("Neg", {inside})});
  };
  const Output minus_two = scope.Scalar(-2.0f);
  const Output end =
      Loop(scope, "outer", scope.Scalar(1.0f), 20.0f, [&](Output x) {
        const Output in_outer = scope.Device(kPs).Add(
            "Enter", {minus_two},
            {{"frame_name", "outer"}, {"is_constant", true}});
        return Loop(scope, "inner", add_two("outer", minus_two, x), 10.0f,
                    [&](Output y) { return add_two("inner", in_outer, y); });
      });
  ASSERT_TRUE(scope.ok()) << scope.status();
  ExpectEnd(graph, end, 21.0f);
}

TEST_F(LoopTest, ACutLoopNeedsACondition) {
  Graph graph;
  Scope scope(graph);
  const Output end = Loop(
      scope, "loop", scope.Scalar(1.0f), 5.0f,
      [&](Output x) { return AddOneOnPs(scope, x); }, false);
  auto session = Open(Remote(*worker0_), graph);
  EXPECT_THAT(session->Run({}, {end}, {}, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("must have a pivot predicate: loop")));
}

TEST(Loop, SpansDevicesOfOneTask) {
  Graph graph;
  Scope scope(graph);
  const AttrMap frame = {{"frame_name", "loop"}};
  const Scope first = scope.Device("/cpu:0");
  const Output enter = first.Add("Enter", {scope.Scalar(true)}, frame);
  Node* merge =
      *graph.AddNode({"merge", "Merge", {enter, enter}, {}, {}, "/cpu:0"});
  const Output condition = first.Add("LoopCond", {merge->output(0)});
  const std::vector<Output> sides =
      first.AddMulti("Switch", {merge->output(0), condition});
  const Output next = first.Add(
      "NextIteration", {scope.Device("/cpu:1").Add("LogicalNot", {sides[1]})});
  SLUICE_ASSERT_OK(graph.SetInput(merge, 1, next));
  const Output end = first.Add("Exit", {sides[0]});
  ASSERT_TRUE(scope.ok()) << scope.status();
  SessionConfig config;
  config.options.num_cpus = 2;
  auto session = *Session::Create(config, graph);
  std::vector<Tensor> out;
  SLUICE_ASSERT_OK(session->Run({}, {end}, {}, &out));
  EXPECT_FALSE(out[0].scalar<bool>());
}

}  // namespace
}  // namespace sluice
