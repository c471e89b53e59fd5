#include "sluice/passes/inline_functions.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "sluice/graph/functions.h"
#include "sluice/graph/graph_def.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/proto/graph.pb.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr char kHere[] = "/job:a/replica:0/task:0/device:CPU:0";
constexpr char kThere[] = "/job:a/replica:0/task:0/device:CPU:1";

// Twice(a) = Neg(Neg(a)); it draws a number, too, which nobody takes.
constexpr char kTwice[] = R"(
  function {
    signature {
      name: "Twice"
      is_stateful: true
      input_arg { name: "a" type: DT_FLOAT }
      output_arg { name: "b" type: DT_FLOAT }
    }
    node_def { name: "m" op: "Neg" input: "a"
      attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "n" op: "Neg" input: "m:y:0"
      attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "unused" op: "Abs" input: "a"
      attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "shape" op: "Const"
      attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32
        tensor_shape { dim { size: 1 } } int_val: 2 } } } }
    node_def { name: "draw" op: "RandomUniform" input: "shape:output:0"
      attr { key: "T" value { type: DT_INT32 } }
      attr { key: "dtype" value { type: DT_FLOAT } } }
    ret { key: "b" value: "n:y:0" }
  })";

constexpr char kInput[] = R"(
  node { name: "x" op: "Placeholder"
    attr { key: "dtype" value { type: DT_FLOAT } } })";

std::unique_ptr<Graph> MakeGraph(const std::string& library,
                                 const std::string& nodes) {
  pb::GraphDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      StrCat("library {", library, "}", nodes, "versions { producer: 134 }"),
      &def));
  auto graph = std::make_unique<Graph>();
  const absl::Status status = ImportGraphDef(def, {}, graph.get());
  EXPECT_TRUE(status.ok()) << status;
  for (int id = 0; id < graph->num_nodes(); ++id) {
    graph->node(id)->set_assigned_device(kHere);
  }
  return graph;
}

// "name = Op(inputs ^controls)", in the order they were made.
std::vector<std::string> Lines(const Graph& graph) {
  std::vector<std::string> lines;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = *graph.node(id);
    std::string line = StrCat(node.name(), " = ", node.type(), "(");
    for (const Output& input : node.inputs()) {
      StrAppend(&line, line.back() == '(' ? "" : " ", input.node->name());
    }
    for (const Node* control : node.control_inputs()) {
      StrAppend(&line, line.back() == '(' ? "" : " ", "^", control->name());
    }
    lines.push_back(line + ")");
  }
  return lines;
}

std::vector<std::string> Inlined(const Graph& graph) {
  absl::StatusOr<std::unique_ptr<Graph>> inlined = InlineFunctions(graph);
  EXPECT_TRUE(inlined.ok()) << inlined.status();
  return inlined.ok() ? Lines(**inlined) : std::vector<std::string>();
}

TEST(InlineFunctions, PutsTheBodyInThePlaceOfTheCall) {
  const auto graph = MakeGraph(kTwice, StrCat(kInput, R"(
        node { name: "y" op: "Twice" input: "x" }
        node { name: "z" op: "Neg" input: "y" input: "^y"
          attr { key: "T" value { type: DT_FLOAT } } })"));
  EXPECT_TRUE(HasFunctionCalls(*graph));
  // The one input is what all wait for; what is not needed is left out, but
  // side effects are not.
  EXPECT_THAT(Inlined(*graph),
              ElementsAre("x = Placeholder()", "y/_arg_0 = Identity(x)",
                          "y/m = Neg(y/_arg_0)", "y/n = Neg(y/m)",
                          "y/shape = Const(^y/_arg_0)",
                          "y/draw = RandomUniform(y/shape)",
                          "z = Neg(y/n ^y/n ^y/_arg_0 ^y/draw)"));
}

TEST(InlineFunctions, StartsACallWhenAllItWaitsForIsThere) {
  const auto graph = MakeGraph(kTwice, StrCat(kInput, R"(
        node { name: "before" op: "NoOp" }
        node { name: "y" op: "Twice" input: "x" input: "^before" })"));
  graph->FindNode("y")->set_assigned_device(kThere);
  absl::StatusOr<std::unique_ptr<Graph>> inlined = InlineFunctions(*graph);
  SLUICE_ASSERT_OK(inlined.status());
  EXPECT_THAT(Lines(**inlined),
              ElementsAre("x = Placeholder()", "before = NoOp()",
                          "y/_arg_0 = Identity(x ^y/_start)",
                          "y/_start = NoOp(^x ^before)", "y/m = Neg(y/_arg_0)",
                          "y/n = Neg(y/m)", "y/shape = Const(^y/_start)",
                          "y/draw = RandomUniform(y/shape)"));
  for (const char* name : {"y/_arg_0", "y/_start", "y/n", "y/draw"}) {
    EXPECT_EQ((*inlined)->FindNode(name)->assigned_device(), kThere) << name;
  }
}

TEST(InlineFunctions, NamesNodesApartFromThoseOfTheGraph) {
  const auto graph = MakeGraph(kTwice, StrCat(kInput, R"(
        node { name: "y/m" op: "NoOp" }
        node { name: "y" op: "Twice" input: "x" })"));
  absl::StatusOr<std::unique_ptr<Graph>> inlined = InlineFunctions(*graph);
  SLUICE_ASSERT_OK(inlined.status());
  EXPECT_EQ((*inlined)->FindNode("y/m")->type(), "NoOp");
  EXPECT_EQ((*inlined)->FindNode("y/m_1")->type(), "Neg");
}

// Lists of arguments and results, and types that the call decides.
TEST(InlineFunctions, TakesAttributesFromTheCall) {
  constexpr char kSum[] = R"(
    function {
      signature {
        name: "SumOf"
        input_arg { name: "xs" type_attr: "T" number_attr: "N" }
        output_arg { name: "sum" type_attr: "T" }
        output_arg { name: "same" type_attr: "T" number_attr: "N" }
        attr { name: "T" type: "type" default_value { type: DT_DOUBLE } }
        attr { name: "N" type: "int" }
      }
      node_def { name: "s" op: "AddN" input: "xs:0" input: "xs:1"
        attr { key: "T" value { placeholder: "T" } }
        attr { key: "N" value { placeholder: "N" } } }
      node_def { name: "i" op: "IdentityN" input: "xs:1" input: "xs:0"
        attr { key: "T" value { list { type: DT_FLOAT type: DT_FLOAT } } } }
      ret { key: "sum" value: "s:sum:0" }
      ret { key: "same" value: "i:output" }
    })";
  const auto graph = MakeGraph(kSum, StrCat(kInput, R"(
        node { name: "y" op: "SumOf" input: "x" input: "x"
          attr { key: "T" value { type: DT_FLOAT } }
          attr { key: "N" value { i: 2 } } }
        node { name: "z" op: "Neg" input: "y:2"
          attr { key: "T" value { type: DT_FLOAT } } })"));
  EXPECT_THAT(Inlined(*graph),
              UnorderedElementsAre("x = Placeholder()", "y/_start = NoOp(^x)",
                                   "y/_arg_0 = Identity(x ^y/_start)",
                                   "y/_arg_1 = Identity(x ^y/_start)",
                                   "y/s = AddN(y/_arg_0 y/_arg_1)",
                                   "y/i = IdentityN(y/_arg_1 y/_arg_0)",
                                   "z = Neg(y/i)"));
}

TEST(InlineFunctions, DifferentiatesAndUsesDeclaredGradients) {
  constexpr char kSquare[] = R"(
    function {
      signature {
        name: "Sq"
        input_arg { name: "a" type: DT_FLOAT }
        output_arg { name: "b" type: DT_FLOAT }
      }
      node_def { name: "s" op: "Square" input: "a"
        attr { key: "T" value { type: DT_FLOAT } } }
      ret { key: "b" value: "s:y:0" }
    }
    function {
      signature {
        name: "SqGrad"
        input_arg { name: "a" type: DT_FLOAT }
        input_arg { name: "dy" type: DT_FLOAT }
        output_arg { name: "da" type: DT_FLOAT }
      }
      ret { key: "da" value: "dy" }
    })";
  const std::string call = StrCat(kInput, R"(
      node { name: "g" op: "SymbolicGradient" input: "x" input: "x"
        attr { key: "Tin" value { list { type: DT_FLOAT type: DT_FLOAT } } }
        attr { key: "Tout" value { list { type: DT_FLOAT } } }
        attr { key: "f" value { func { name: "Sq" } } } })");
  const std::vector<std::string> lines = Inlined(*MakeGraph(kSquare, call));
  EXPECT_THAT(lines, testing::Contains(HasSubstr(
                         "s_grad/Mul_1 = Mul(g/gradients/grad_ys_0 ")));
  EXPECT_THAT(
      Inlined(*MakeGraph(StrCat(kSquare,
                                "gradient { function_name: 'Sq' "
                                "gradient_func: 'SqGrad' }"),
                         call)),
      ElementsAre("x = Placeholder()", "g/_arg_0 = Identity(x ^g/_start)",
                  "g/_arg_1 = Identity(x ^g/_start)", "g/_start = NoOp(^x)"));
}

TEST(InlineFunctions, RefusesFunctionsThatCallEachOther) {
  constexpr char kPair[] = R"(
    function {
      signature { name: "F" input_arg { name: "a" type: DT_FLOAT }
        output_arg { name: "b" type: DT_FLOAT } }
      node_def { name: "n" op: "G" input: "a" }
      ret { key: "b" value: "n:b:0" }
    }
    function {
      signature { name: "G" input_arg { name: "a" type: DT_FLOAT }
        output_arg { name: "b" type: DT_FLOAT } }
      node_def { name: "n" op: "F" input: "a" }
      ret { key: "b" value: "n:b:0" }
    })";
  const auto graph = MakeGraph(
      kPair, StrCat(kInput, R"(node { name: "y" op: "F" input: "x" })"));
  EXPECT_THAT(InlineFunctions(*graph).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("Function F calls itself (F -> G -> F)"),
                             HasSubstr("[[{{node y"))));
}

TEST(InlineFunctions, SaysWhichCallHasNoFunction) {
  const auto graph = MakeGraph("", StrCat(kInput, R"(
        node { name: "y" op: "PartitionedCall" input: "x"
          attr { key: "Tin" value { list { type: DT_FLOAT } } }
          attr { key: "Tout" value { list { type: DT_FLOAT } } }
          attr { key: "f" value { func { name: "Nowhere" } } } })"));
  EXPECT_THAT(InlineFunctions(*graph).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       "Function Nowhere is not defined.\n\t [[{{node y}}]]"));
}

// Each calls the one before it twice.
TEST(InlineFunctions, RefusesBodiesThatGrowTooLarge) {
  std::string library = R"(function {
      signature { name: "F0" input_arg { name: "a" type: DT_FLOAT }
        output_arg { name: "b" type: DT_FLOAT } }
      node_def { name: "n" op: "Neg" input: "a"
                 attr { key: "T" value { type: DT_FLOAT } } }
      ret { key: "b" value: "n:y:0" } })";
  for (int i = 1; i < 7; ++i) {
    StrAppend(&library, R"(function {
        signature { name: "F)",
              i, R"(" input_arg { name: "a" type: DT_FLOAT }
          output_arg { name: "b" type: DT_FLOAT } }
        node_def { name: "n" op: "F)",
              i - 1, R"(" input: "a" }
        node_def { name: "m" op: "F)",
              i - 1, R"(" input: "n:b:0" }
        ret { key: "b" value: "m:b:0" } })");
  }
  const auto call = [&](int function) {
    return MakeGraph(library, StrCat(kInput, "node { name: 'y' op: 'F",
                                     function, "' input: 'x' }"));
  };
  SLUICE_EXPECT_OK(InlineFunctions(*call(4), 100).status());
  EXPECT_THAT(InlineFunctions(*call(6), 100).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("more than 100 nodes is over the limit "
                                 "graph_nodes=100")));
}

}  // namespace
}  // namespace sluice
