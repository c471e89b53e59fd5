#include "sluice/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/graph/shape_inference.h"
#include "sluice/graph/testing/ops_tsv.h"
#include "sluice/graph/testing/test_ops.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

std::string AddError(Graph& graph, std::string op, std::vector<Output> inputs,
                     AttrMap attrs = {}) {
  const int before = graph.num_nodes();
  NodeSpec spec;
  spec.name = "bad";
  spec.op = std::move(op);
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  const absl::Status status = graph.AddNode(std::move(spec)).status();
  EXPECT_EQ(graph.num_nodes(), before);
  EXPECT_EQ(graph.FindNode("bad"), nullptr);
  return StatusText(status);
}

TEST(Graph, GivesNodesIdsNamesAndEdges) {
  Graph graph;
  const Output a = AddTestSource(graph, "a", {2, 3});
  Node* sum = AddTestNode(graph, "sum", "TestAdd", {a, a});
  EXPECT_EQ(a.node->id(), 0);
  EXPECT_EQ(sum->id(), 1);
  EXPECT_EQ(graph.FindNode("sum"), sum);
  EXPECT_EQ(graph.FindNode("su"), nullptr);
  EXPECT_EQ(*sum->FindAttr("T"), AttrValue(DType::kFloat));
  EXPECT_EQ(sum->output_shape(0), PartialShape({2, 3}));
  ASSERT_EQ(a.node->out_edges().size(), 2u);
  EXPECT_EQ(a.node->out_edges()[1].dst, sum);
  EXPECT_EQ(a.node->out_edges()[1].dst_input, 1);
}

TEST(Graph, FindsOutputsByName) {
  Graph graph;
  AddTestNode(graph, "s", "TestSplit", {AddTestSource(graph, "a")}, {{"N", 2}});
  EXPECT_EQ(TensorName(*graph.FindOutput("s:1")), "s:1");
  EXPECT_EQ(TensorName(*graph.FindOutput("s")), "s:0");
  EXPECT_THAT(StatusText(graph.FindOutput("s:2").status()),
              HasSubstr("has 2 outputs"));
  EXPECT_THAT(StatusText(graph.FindOutput("t:0").status()),
              HasSubstr("Not found: Tensor t:0"));
  for (const char* bad : {"s:", "s:x", "s:-1", "s:0x", "s:99999999999"}) {
    EXPECT_FALSE(graph.FindOutput(bad).ok()) << bad;
  }
}

TEST(Graph, InfersListLengthsAndTypesFromInputs) {
  Graph graph;
  const Output a = AddTestSource(graph, "a");
  const Output s =
      AddTestNode(graph, "s", "TestSource", {}, {{"dtype", DType::kString}})
          ->output(0);
  Node* sum = AddTestNode(graph, "sum", "TestAddN", {a, a, a});
  EXPECT_EQ(*sum->FindAttr("N"), AttrValue(3));
  Node* tuple = AddTestNode(graph, "tuple", "TestTuple", {a, s});
  EXPECT_EQ(tuple->output_type(1), DType::kString);
}

TEST(Graph, LetsARefFeedAValueButNotTheOtherWayRound) {
  Graph graph;
  const Output v = AddTestNode(graph, "v", "TestVariable")->output(0);
  const Output a = AddTestSource(graph, "a");
  EXPECT_EQ(TypeOf(v), RefType(DType::kFloat));
  Node* sum = AddTestNode(graph, "sum", "TestAdd", {v, a});
  EXPECT_EQ(sum->output_type(0), DType::kFloat);
  AddTestNode(graph, "assign", "TestAssign", {v, a});
  EXPECT_EQ(AddError(graph, "TestAssign", {a, a}),
            "Invalid argument: Input 0 of node bad was passed float from a:0 "
            "incompatible with expected float_ref.");
}

TEST(Graph, RefusesBadNodesAndStaysAsItWas) {
  Graph graph, other;
  const Output a = AddTestSource(graph, "a", {2});
  const Output b = AddTestSource(graph, "b", {3});
  EXPECT_THAT(AddError(graph, "NoSuchOp", {}), HasSubstr("not registered"));
  EXPECT_THAT(AddError(graph, "TestAdd", {a}), HasSubstr("takes 2 inputs"));
  EXPECT_THAT(AddError(graph, "TestAdd", {a, {a.node, 1}}),
              HasSubstr("Connecting to invalid output 1 of source node a which "
                        "has 1 outputs."));
  EXPECT_THAT(AddError(graph, "TestAdd", {a, AddTestSource(other, "o")}),
              HasSubstr("another graph"));
  EXPECT_THAT(AddError(graph, "TestAdd", {a, a}, {{"T", DType::kInt32}}),
              HasSubstr("DT_INT32"));
  EXPECT_THAT(AddError(graph, "TestAddN", {a}, {{"N", "many"}}),
              HasSubstr("'N'"));
  EXPECT_THAT(AddError(graph, "TestAddN", {a}, {{"N", INT64_MAX}}),
              HasSubstr("'N'"));
  EXPECT_THAT(AddError(graph, "TestAddN", {a}, {{"N", -1}}), HasSubstr("'N'"));
  EXPECT_EQ(AddError(graph, "TestAdd", {a, b}),
            "Invalid argument: Dimensions must be equal, but are 2 and 3 for "
            "'bad' (op: 'TestAdd') with input shapes: [2], [3].");
  EXPECT_TRUE(a.node->out_edges().empty());
}

TEST(Graph, RefusesShapesWhoseSizeOverflows) {
  Graph graph;
  const Output a = AddTestSource(graph, "a", {int64_t{1} << 40, 1});
  const Output b = AddTestSource(graph, "b", {1, int64_t{1} << 40});
  EXPECT_THAT(AddError(graph, "TestAdd", {a, b}), HasSubstr("too large"));
}

TEST(Graph, TruncateUndoesAdditions) {
  Graph graph;
  const Output a = AddTestSource(graph, "a");
  Node* first = AddTestNode(graph, "first", "TestAdd", {a, a});
  for (int i = 0; i < 3; ++i) {
    Node* node =
        AddTestNode(graph, StrCat("n", i), "TestAdd", {a, first->output(0)});
    graph.AddControlEdge(first, node);
  }
  graph.Truncate(2);
  EXPECT_EQ(graph.num_nodes(), 2);
  EXPECT_EQ(graph.FindNode("n1"), nullptr);
  EXPECT_EQ(a.node->out_edges().size(), 2u);
  EXPECT_TRUE(first->out_edges().empty());
  EXPECT_EQ(AddTestNode(graph, "n1", "TestAdd", {a, a})->id(), 2);
}

TEST(Graph, SetInputMovesTheEdge) {
  Graph graph;
  const Output a = AddTestSource(graph, "a");
  const Output b = AddTestSource(graph, "b");
  Node* sum = AddTestNode(graph, "sum", "TestAdd", {a, a});
  ASSERT_TRUE(graph.SetInput(sum, 1, b).ok());
  EXPECT_EQ(sum->input(1), b);
  EXPECT_EQ(a.node->out_edges().size(), 1u);
  EXPECT_EQ(b.node->out_edges().size(), 1u);
}

// Constants whose values shape functions look at.
class ConstantShape : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { RegisterMissingOps(); }

  Output Const(std::string name, Tensor value) {
    const DType dtype = value.dtype();
    return AddTestNode(graph_, std::move(name), "Const", {},
                       {{"value", std::move(value)}, {"dtype", dtype}})
        ->output(0);
  }

  Graph graph_;
};

TEST_F(ConstantShape, ComesFromConstants) {
  const Output dims = Const("dims", Tensor::Vector<int32_t>({2, -1}));
  Node* fill = AddTestNode(graph_, "fill", "TestFill", {dims});
  EXPECT_EQ(fill->output_shape(0), PartialShape({2, -1}));
}

TEST_F(ConstantShape, OfAScalarMayOnlyBeUnknown) {
  Node* fill = AddTestNode(graph_, "fill", "TestFill",
                           {Const("dims", Tensor::Scalar<int32_t>(-1))});
  EXPECT_FALSE(fill->output_shape(0).known_rank());
  EXPECT_THAT(
      AddError(graph_, "TestFill", {Const("bad_dims", Tensor::Scalar(3))}),
      HasSubstr("Input tensor must be rank 1, or if its rank 0 it must have "
                "value -1"));
}

TEST_F(ConstantShape, RefusesNegativeAndHugeSizes) {
  EXPECT_THAT(
      AddError(graph_, "TestFill", {Const("a", Tensor::Vector<int32_t>({-2}))}),
      HasSubstr("must be >= -1"));
  const int32_t big = 1 << 30;
  EXPECT_THAT(
      AddError(graph_, "TestFill",
               {Const("b", Tensor::Vector<int32_t>({big, big, big, big}))}),
      HasSubstr("too large"));
}

TEST_F(ConstantShape, DoesNotTrustAConstWhoseValueIsOfAnotherType) {
  NodeSpec spec;
  spec.name = "lie";
  spec.op = "Const";
  spec.attrs = {{"value", Tensor::Vector<float>({2})},
                {"dtype", DType::kInt32}};
  const auto lie = graph_.AddNode(std::move(spec));
  EXPECT_TRUE(!lie.ok() || !ConstantValue((*lie)->output(0)).has_value());
}

// Every node doubles the number of ways to the constant, so looking at all of
// them would take for ever.
TEST_F(ConstantShape, GivesUpOnValuesThatTakeTooLong) {
  int calls = 0;
  SetConstantEvaluator([&](const Node&, int, std::span<const Tensor> inputs) {
    ++calls;
    return std::optional<Tensor>(inputs[0]);
  });
  Output x = Const("x", Tensor::Scalar<int32_t>(1));
  for (int i = 0; i < 40; ++i) {
    x = AddTestNode(graph_, StrCat("x", i), "TestAdd", {x, x})->output(0);
  }
  EXPECT_FALSE(ConstantValue(x).has_value());
  EXPECT_LT(calls, 1000);
  SetConstantEvaluator(nullptr);
}

TEST_F(ConstantShape, FollowsShapesThroughPacksAndSlices) {
  const Output x = AddTestSource(graph_, "x", {4, -1, 6});
  const Output shape = AddTestNode(graph_, "shape", "Shape", {x})->output(0);
  const auto index = [&](std::string name, int32_t value) {
    return Const(std::move(name), Tensor::Vector<int32_t>({value}));
  };
  const Output size =
      AddTestNode(graph_, "size", "StridedSlice",
                  {shape, index("begin", 0), index("end", 1), index("one", 1)},
                  {{"shrink_axis_mask", 1}})
          ->output(0);
  const Output other = Const("other", Tensor::Scalar<int32_t>(5));
  const Output packed =
      AddTestNode(graph_, "packed", "Pack", {size, other})->output(0);
  EXPECT_EQ(ConstantValueAsShape(packed), PartialShape({4, 5}));
  EXPECT_EQ(ConstantValueAsShape(shape), PartialShape({4, -1, 6}));
}

}  // namespace
}  // namespace sluice
