#include "sluice/rpc/fused_nodes.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "sluice/base/status.h"
#include "sluice/graph/graph.h"
#include "sluice/graph/graph_def.h"
#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using testing::ElementsAre;

pb::GraphDef ParsedGraph(const std::string& text) {
  pb::GraphDef graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph));
  return graph;
}

// "name = Op(inputs)" of each node.
std::vector<std::string> Lines(const pb::GraphDef& graph) {
  std::vector<std::string> lines;
  for (const pb::NodeDef& node : graph.node()) {
    std::string line = StrCat(node.name(), " = ", node.op(), "(");
    for (const std::string& input : node.input()) {
      StrAppend(&line, line.ends_with('(') ? "" : ", ", input);
    }
    lines.push_back(line + ")");
  }
  return lines;
}

// The nodes that are put in place of one, which must be a graph together with
// `inputs`.
std::vector<std::string> Apart(const std::string& inputs,
                               const std::string& node) {
  pb::GraphDef graph = ParsedGraph(node);
  SLUICE_EXPECT_OK(TakeApart(&graph));
  const std::vector<std::string> lines = Lines(graph);
  for (const pb::NodeDef& node : graph.node()) {
    EXPECT_EQ(node.device(), "/job:ps/replica:0/task:0/device:CPU:0");
  }
  graph.MergeFrom(ParsedGraph(inputs));
  Graph imported;
  ImportOptions options;
  options.allow_internal = true;
  SLUICE_EXPECT_OK(ImportGraphDef(graph, options, &imported));
  return lines;
}

std::string Placeholder(const std::string& name,
                        const std::string& type = "DT_FLOAT") {
  return StrCat("node { name: '", name,
                "' op: 'Placeholder' attr { key: 'dtype' value { type: ", type,
                " } } }\n");
}

constexpr char kFused[] =
    "name: 'f' device: '/job:ps/replica:0/task:0/device:CPU:0' "
    "attr { key: 'T' value { type: DT_FLOAT } }";

std::string MatMul(const std::string& ops, const std::string& more = "") {
  return StrCat("node { ", kFused,
                " op: '_FusedMatMul' input: ['x', 'w', 'b', '^x']"
                " attr { key: 'num_args' value { i: 1 } }"
                " attr { key: 'transpose_b' value { b: true } }"
                " attr { key: 'fused_ops' value { list { s: [",
                ops, "] } } }", more, "}");
}

TEST(TakeApart, AFusedMatMulIsAProductASumAndAnActivation) {
  const std::string inputs =
      Placeholder("x") + Placeholder("w") + Placeholder("b");
  EXPECT_THAT(Apart(inputs, MatMul("'BiasAdd'")),
              ElementsAre("f/_fused_0 = MatMul(x, w, ^x)",
                          "f = BiasAdd(f/_fused_0, b)"));
  for (const char* op : {"Relu", "Relu6", "Elu", "Tanh", "Sigmoid"}) {
    EXPECT_THAT(Apart(inputs, MatMul(StrCat("'BiasAdd', '", op, "'"))),
                ElementsAre("f/_fused_0 = MatMul(x, w, ^x)",
                            "f/_fused_1 = BiasAdd(f/_fused_0, b)",
                            StrCat("f = ", op, "(f/_fused_1)")));
  }
}

TEST(TakeApart, AttributesGoWhereTheyBelong) {
  pb::GraphDef graph =
      ParsedGraph(MatMul("'BiasAdd', 'LeakyRelu'",
                         "attr { key: 'leakyrelu_alpha' value { f: 0.5 } }"));
  SLUICE_EXPECT_OK(TakeApart(&graph));
  ASSERT_EQ(graph.node_size(), 3);
  EXPECT_TRUE(graph.node(0).attr().at("transpose_b").b());
  EXPECT_EQ(graph.node(1).attr().at("T").type(), pb::DT_FLOAT);
  EXPECT_EQ(graph.node(2).attr().at("alpha").f(), 0.5f);
}

TEST(TakeApart, WhatItDoesNotKnowStays) {
  for (const char* ops : {"", "'Relu'", "'BiasAdd', 'Odd'"}) {
    pb::GraphDef graph = ParsedGraph(MatMul(ops));
    SLUICE_EXPECT_OK(TakeApart(&graph));
    EXPECT_THAT(Lines(graph), ElementsAre("f = _FusedMatMul(x, w, b, ^x)"));
  }
}

TEST(TakeApart, UnaryOpsRunOneAfterTheOther) {
  EXPECT_THAT(
      Apart(Placeholder("x"),
            StrCat("node { ", kFused,
                   " op: '_UnaryOpsComposition' input: ['x', '^x'] attr { key: "
                   "'op_names' value { list { s: ['Exp', 'Relu', 'Tanh'] } } }"
                   " }")),
      ElementsAre("f/_fused_0 = Exp(x, ^x)", "f/_fused_1 = Relu(f/_fused_0)",
                  "f = Tanh(f/_fused_1)"));
}

TEST(TakeApart, ACastOfTheHostIsACast) {
  EXPECT_THAT(Apart(Placeholder("x"),
                    "node { name: 'f' op: '_HostCast' input: 'x' device: "
                    "'/job:ps/replica:0/task:0/device:CPU:0'"
                    " attr { key: 'SrcT' value { type: DT_FLOAT } }"
                    " attr { key: 'DstT' value { type: DT_INT32 } } }"),
              ElementsAre("f = Cast(x)"));
}

TEST(TakeApart, ASwitchOfManyIsARowOfSwitches) {
  const std::string inputs = Placeholder("x") + Placeholder("i", "DT_INT32");
  const std::string node = StrCat(
      "node { ", kFused,
      " op: '_SwitchN' input: ['x', 'i'] attr { key: 'num_outs' value { i: 3 } "
      "} }");
  std::string users;
  for (const char* output : {"f", "f:1", "f:2"}) {
    StrAppend(&users, "node { name: 'of_",
              output[1] != 0 ? StrCat(output + 2) : "0",
              "' op: "
              "'Neg' device: '/job:ps/replica:0/task:0/device:CPU:0' input: '",
              output, "' attr { key: 'T' value { type: DT_FLOAT } } }");
  }
  EXPECT_THAT(
      Apart(inputs, node + users),
      ElementsAre("f/_fused_0 = Const(^i)", "f/_fused_1 = Equal(i, f/_fused_0)",
                  "f/_fused_2 = Switch(x, f/_fused_1)",
                  "f/_fused_3 = Const(^i)", "f/_fused_4 = Equal(i, f/_fused_3)",
                  "f/_fused_5 = Switch(f/_fused_2, f/_fused_4)",
                  "f = NoOp(^x, ^i)", "of_0 = Neg(f/_fused_2:1)",
                  "of_1 = Neg(f/_fused_5:1)", "of_2 = Neg(f/_fused_5)"));
}

// A graph of one node that stands for a row of so many.
pb::GraphDef RowOfUnaryOps(int count) {
  pb::GraphDef graph;
  pb::NodeDef* node = graph.add_node();
  node->set_op("_UnaryOpsComposition");
  node->add_input("x");
  auto& names = (*node->mutable_attr())["op_names"];
  for (int i = 0; i < count; ++i) names.mutable_list()->add_s("Neg");
  return graph;
}

pb::GraphDef RowOfSwitches(int outputs) {
  pb::GraphDef graph;
  pb::NodeDef* node = graph.add_node();
  node->set_op("_SwitchN");
  node->add_input("x");
  node->add_input("i");
  (*node->mutable_attr())["num_outs"].set_i(outputs);
  return graph;
}

auto IsTooMuch() {
  return StatusIs(absl::StatusCode::kInvalidArgument,
                  testing::HasSubstr("more than 100000 nodes or 67108864"));
}

TEST(TakeApart, TheRowsOfAGraphAreTogetherOfBoundedLength) {
  pb::GraphDef most = RowOfUnaryOps(100'000);
  pb::GraphDef more = most;
  more.MergeFrom(RowOfUnaryOps(1));
  SLUICE_EXPECT_OK(TakeApart(&most));
  EXPECT_EQ(most.node_size(), 100'000);
  EXPECT_THAT(TakeApart(&more), IsTooMuch());
  pb::GraphDef switches;
  for (int i = 0; i < 40; ++i) switches.MergeFrom(RowOfSwitches(1000));
  EXPECT_THAT(TakeApart(&switches), IsTooMuch());
}

// Two bytes ask for one more op, which has all that the fused one has.
TEST(TakeApart, WhatARowRepeatsIsBounded) {
  const std::string text(100'000, 'x');
  for (const pb::GraphDef& row : {RowOfUnaryOps(1000), RowOfSwitches(1000)}) {
    pb::GraphDef name = row, device = row, type = row;
    name.mutable_node(0)->set_name(text);
    device.mutable_node(0)->set_device(text);
    (*type.mutable_node(0)->mutable_attr())["T"].set_s(text);
    for (pb::GraphDef* graph : {&name, &device, &type}) {
      EXPECT_THAT(TakeApart(graph), IsTooMuch());
    }
  }
  pb::GraphDef waits = RowOfSwitches(1000);
  waits.mutable_node(0)->add_input("^" + text);
  EXPECT_THAT(TakeApart(&waits), IsTooMuch());
}

}  // namespace
}  // namespace sluice
