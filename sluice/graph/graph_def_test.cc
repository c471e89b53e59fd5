#include "sluice/graph/graph_def.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sluice/base/status.h"
#include "sluice/graph/functions.h"
#include "sluice/graph/testing/ops_tsv.h"
#include "sluice/graph/testing/test_ops.h"
#include "sluice/proto/graph.pb.h"

namespace sluice {
namespace {

using ::google::protobuf::TextFormat;
using ::google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

pb::GraphDef ParseGraph(const std::string& text) {
  pb::GraphDef def;
  EXPECT_TRUE(TextFormat::ParseFromString(text, &def)) << text;
  return def;
}

// Imports and returns the text of the error, or "OK".
std::string Import(const std::string& text, Graph* graph,
                   const ImportOptions& options = {},
                   ImportResults* results = nullptr) {
  return StatusText(ImportGraphDef(ParseGraph(text), options, graph, results));
}

// The error of a bad graph, which must leave no trace.
std::string ImportError(const std::string& text,
                        const ImportOptions& options = {}) {
  Graph graph;
  const std::string error = Import(text, &graph, options);
  EXPECT_EQ(graph.num_nodes(), 0);
  EXPECT_TRUE(graph.functions().empty());
  return error;
}

std::string ExportText(const Graph& graph, const ExportOptions& options = {}) {
  pb::GraphDef def;
  ExportGraphDef(graph, options, &def);
  std::string text;
  TextFormat::PrintToString(def, &text);
  return text;
}

std::vector<std::string> NodeNames(const Graph& graph) {
  std::vector<std::string> names;
  for (int i = 0; i < graph.num_nodes(); ++i) {
    names.push_back(graph.node(i)->name());
  }
  return names;
}

constexpr char kTwoNodes[] = R"(
  node { name: "a" op: "TestSource" device: "/job:ps" }
  node { name: "b" op: "TestAdd" input: "a" input: "a:0"
         attr { key: "T" value { type: DT_FLOAT } }
         attr { key: "_class" value { list { s: "loc:@a" } } } }
  versions { producer: 134 })";

TEST(AttrCodec, KeepsEveryKindOfValue) {
  AttrList functions;
  functions.functions = {{"f", nullptr}};
  AttrList bools;
  bools.bools = {true, false};
  auto attrs = std::make_shared<AttrMap>();
  attrs->Set("x", FunctionName{"inner", nullptr});
  const std::vector<AttrValue> values = {
      AttrValue(),
      std::string("a\0b", 3),
      int64_t{-5},
      2.5f,
      true,
      DType::kHalf,
      PartialShape({2, -1}),
      PartialShape(),
      Tensor::Vector<int32_t>({1, 2, 3}),
      Tensor::Scalar<std::string>("s"),
      FunctionName{"g", attrs},
      AttrPlaceholder{"T"},
      AttrList(),
      std::vector<std::string>{"a", ""},
      std::vector<int64_t>{1, 2},
      std::vector<float>{0.5f},
      bools,
      std::vector<DType>{DType::kInt8},
      std::vector<PartialShape>{PartialShape()},
      functions,
  };
  for (const AttrValue& value : values) {
    pb::AttrValue proto;
    AttrToProto(value, &proto);
    auto back = AttrFromProto(proto);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, value) << value.DebugString();
  }
}

TEST(AttrCodec, KeepsHowManyValuesTheWriterGave) {
  for (const char* text :
       {"dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: 3 } } "
        "float_val: 7",
        "dtype: DT_INT32 tensor_shape { dim { size: 2 } dim { size: 2 } } "
        "int_val: 1 int_val: 2",
        "dtype: DT_STRING tensor_shape { dim { size: 3 } } string_val: 'x'",
        "dtype: DT_UINT8 tensor_shape { dim { size: 2 } } "
        "int_val: 1 int_val: 2",
        "dtype: DT_UINT8 tensor_shape { dim { size: 2 } } "
        "tensor_content: '\\001\\002'",
        "dtype: DT_COMPLEX64 tensor_shape { dim { size: 2 } } "
        "scomplex_val: 1 scomplex_val: 2",
        "dtype: DT_BOOL tensor_shape { dim { size: 9 } } bool_val: true"}) {
    pb::AttrValue proto, again;
    ASSERT_TRUE(TextFormat::ParseFromString(text, proto.mutable_tensor()));
    auto value = AttrFromProto(proto);
    ASSERT_TRUE(value.ok()) << value.status();
    AttrToProto(*value, &again);
    EXPECT_TRUE(MessageDifferencer::Equals(proto, again))
        << again.DebugString();
  }
}

TEST(AttrCodec, RefusesBadValues) {
  constexpr char kTooFewValues[] =
      "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1099511627776 } } "
      "float_val: 1 }";
  for (const char* text :
       {"shape { dim { size: -2 } }",
        "shape { dim { size: 1 } unknown_rank: true }",
        "shape { dim { size: 4611686018427387904 } dim { size: 4 } }",
        "tensor { dtype: DT_FLOAT tensor_content: 'abc' }", "tensor { }",
        kTooFewValues, "list { i: 1 s: 'x' }",
        "list { shape { dim { size: -3 } } }"}) {
    pb::AttrValue proto;
    ASSERT_TRUE(TextFormat::ParseFromString(text, &proto)) << text;
    EXPECT_FALSE(AttrFromProto(proto).ok()) << text;
  }
}

TEST(AttrCodec, BoundsTheNestingOfFunctions) {
  pb::AttrValue proto;
  pb::AttrValue* inner = &proto;
  for (int i = 0; i < 1000; ++i) {
    inner->mutable_func()->set_name("f");
    inner = &(*inner->mutable_func()->mutable_attr())["x"];
  }
  EXPECT_THAT(StatusText(AttrFromProto(proto).status()),
              HasSubstr("nested too deeply"));
}

// Only bodies of functions have them.
TEST(Import, RefusesAnAttributeThatStandsForAnother) {
  pb::GraphDef def;
  ASSERT_TRUE(TextFormat::ParseFromString(
      "node { name: 'c' op: 'Const' "
      "attr { key: 'dtype' value { type: DT_FLOAT } } "
      "attr { key: 'value' value { placeholder: 'x' } } }",
      &def));
  Graph graph;
  const absl::Status status = ImportGraphDef(def, {}, &graph);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

TEST(Import, BuildsNodesEdgesAndShapes) {
  Graph graph;
  ASSERT_EQ(Import(kTwoNodes, &graph), "OK");
  EXPECT_THAT(NodeNames(graph), ElementsAre("a", "b"));
  const Node* b = graph.FindNode("b");
  EXPECT_EQ(TensorName(b->input(1)), "a:0");
  EXPECT_EQ(graph.FindNode("a")->device(), "/job:ps");
  EXPECT_EQ(graph.versions().producer, 134);
}

TEST(Import, TakesNodesInAnyOrderAndKeepsTheOrderOfTheFileWherePossible) {
  Graph graph;
  ASSERT_EQ(Import(R"(
      node { name: "d" op: "TestGroup" input: "^c" }
      node { name: "c" op: "TestGroup" input: "^b" }
      node { name: "x" op: "TestGroup" }
      node { name: "b" op: "TestGroup" }
      node { name: "y" op: "TestGroup" })",
                   &graph),
            "OK");
  EXPECT_THAT(NodeNames(graph), ElementsAre("x", "b", "c", "d", "y"));
}

TEST(Import, DropsRepeatedControlInputs) {
  Graph graph;
  ASSERT_EQ(Import(R"(
      node { name: "a" op: "TestGroup" }
      node { name: "b" op: "TestGroup" input: "^a" input: "^a" })",
                   &graph),
            "OK");
  EXPECT_EQ(graph.FindNode("b")->control_inputs().size(), 1u);
}

TEST(Import, PutsNamesAndColocationUnderAPrefix) {
  Graph graph;
  ImportOptions options;
  options.prefix = "import";
  ASSERT_EQ(Import(kTwoNodes, &graph, options), "OK");
  EXPECT_THAT(NodeNames(graph), ElementsAre("import/a", "import/b"));
  EXPECT_THAT(graph.FindNode("import/b")->attr<AttrList>("_class").strings,
              ElementsAre("loc:@import/a"));
  EXPECT_THAT(Import(kTwoNodes, &graph, options),
              HasSubstr("Node name 'import/a' already exists in the Graph"));
  options.prefix = "im port/";
  EXPECT_EQ(ImportError(kTwoNodes, options),
            "Invalid argument: Imported node name prefix 'im port/' would lead "
            "to invalid node names");
}

TEST(Import, MakesNamesUniqueWhenAsked) {
  Graph graph;
  AddTestSource(graph, "a");
  ImportOptions options;
  options.uniquify_names = true;
  ASSERT_EQ(Import(R"(
      node { name: "a" op: "TestSource" }
      node { name: "a_1" op: "TestSource"
             attr { key: "_class" value { list { s: "loc:@a" } } } })",
                   &graph, options),
            "OK");
  EXPECT_THAT(NodeNames(graph), ElementsAre("a", "a_2", "a_1"));
  EXPECT_THAT(graph.FindNode("a_1")->attr<AttrList>("_class").strings,
              ElementsAre("loc:@a_2"));
  ASSERT_EQ(Import(kTwoNodes, &graph, options), "OK");
  EXPECT_NE(graph.FindNode("a_3"), nullptr);
}

TEST(Import, MapsInputsAndReturnsWhatIsAskedFor) {
  Graph graph;
  const Output x = AddTestSource(graph, "x", {7});
  ImportOptions options;
  options.prefix = "i";
  options.input_map = {{"a:0", x}};
  options.return_tensors = {"b", "a:0"};
  options.return_nodes = {"b"};
  ImportResults results;
  ASSERT_EQ(Import(kTwoNodes, &graph, options, &results), "OK");
  Node* b = graph.FindNode("i/b");
  EXPECT_EQ(b->input(0), x);
  EXPECT_EQ(b->output_shape(0), PartialShape({7}));
  EXPECT_NE(graph.FindNode("i/a"), nullptr);
  EXPECT_THAT(results.return_tensors, ElementsAre(b->output(0), x));
  EXPECT_THAT(results.return_nodes, ElementsAre(b));
  EXPECT_EQ(results.first_node, 1);

  options.prefix = "j";
  options.skip_mapped_nodes = true;
  ASSERT_EQ(Import(kTwoNodes, &graph, options), "OK");
  EXPECT_EQ(graph.FindNode("j/a"), nullptr);
  EXPECT_THAT(graph.FindNode("j/b")->attr<AttrList>("_class").strings,
              ElementsAre("loc:@x"));
}

TEST(Import, SaysWhichMappedInputsAndReturnsDoNotExist) {
  Graph graph;
  const Output x = AddTestSource(graph, "x");
  ImportOptions options;
  options.input_map = {{"q:0", x}, {"a:1", x}};
  EXPECT_EQ(Import(kTwoNodes, &graph, options),
            "Invalid argument: Attempted to map inputs that were not found in "
            "graph_def: [a:1, q:0]");
  EXPECT_EQ(graph.num_nodes(), 1);
  options = ImportOptions();
  options.return_tensors = {"q:0"};
  EXPECT_EQ(ImportError(kTwoNodes, options),
            "Invalid argument: Requested return tensor 'q:0' not found in "
            "graph def");
  options.return_tensors = {"b:3"};
  EXPECT_EQ(ImportError(kTwoNodes, options),
            "Invalid argument: Invalid return output 3 of node 'b', which has "
            "1 output(s)");
  options.return_tensors = {};
  options.return_nodes = {"q"};
  EXPECT_EQ(ImportError(kTwoNodes, options),
            "Invalid argument: Requested return node 'q' not found in graph "
            "def");
}

TEST(Import, AddsControlDependenciesWhereNoInputBringsThem) {
  Graph graph;
  Node* before = AddTestNode(graph, "before", "TestGroup");
  ImportOptions options;
  options.control_dependencies = {before};
  ASSERT_EQ(Import(kTwoNodes, &graph, options), "OK");
  EXPECT_THAT(graph.FindNode("a")->control_inputs(), ElementsAre(before));
  EXPECT_TRUE(graph.FindNode("b")->control_inputs().empty());
}

TEST(Import, GivesTheDefaultDeviceToNodesWithoutOne) {
  Graph graph;
  ImportOptions options;
  options.default_device = "/job:worker";
  ASSERT_EQ(Import(kTwoNodes, &graph, options), "OK");
  EXPECT_EQ(graph.FindNode("a")->device(), "/job:ps");
  EXPECT_EQ(graph.FindNode("b")->device(), "/job:worker");
}

TEST(Import, ExtendsAGraphOnlyWithNewNodes) {
  Graph graph;
  ASSERT_EQ(Import(kTwoNodes, &graph), "OK");
  const std::string more = R"(
      node { name: "c" op: "TestAdd" input: "b" input: "a" input: "^b"
             attr { key: "T" value { type: DT_FLOAT } }
             attr { key: "_class" value { list { s: "loc:@a" } } } })";
  EXPECT_EQ(Import(more, &graph),
            "Invalid argument: Node 'c': Unknown input node 'b'");
  ImportOptions options;
  options.extend = true;
  ASSERT_EQ(Import(more, &graph, options), "OK");
  EXPECT_EQ(graph.FindNode("c")->input(0).node, graph.FindNode("b"));
  EXPECT_EQ(Import(more, &graph, options),
            "Invalid argument: GraphDef argument to Extend includes node 'c', "
            "which was created by a previous call to Create or Extend in this "
            "session.");
}

TEST(Import, LeavesTheGraphAsItWasWhenANodeIsBad) {
  Graph graph;
  ASSERT_EQ(Import(kTwoNodes, &graph), "OK");
  const std::string before = ExportText(graph);
  ImportOptions options;
  options.extend = true;
  EXPECT_NE(Import(R"(
      node { name: "c" op: "TestAdd" input: "a" input: "b"
             attr { key: "T" value { type: DT_FLOAT } } }
      node { name: "bad" op: "TestAdd" input: "c" input: "^a"
             attr { key: "T" value { type: DT_FLOAT } } }
      library { function { signature { name: "F" } } }
      versions { producer: 5 min_consumer: 7 })",
                   &graph, options),
            "OK");
  EXPECT_EQ(ExportText(graph), before);
  EXPECT_EQ(graph.FindNode("a")->out_edges().size(), 2u);
  EXPECT_TRUE(graph.FindNode("b")->out_edges().empty());
}

TEST(Import, MergesOutputShapesAndDropsTheAttribute) {
  Graph graph;
  ASSERT_EQ(Import(R"(
      node { name: "a" op: "TestSource"
        attr { key: "_output_shapes"
               value { list { shape { dim { size: 2 } } } } } }
      node { name: "b" op: "TestAdd" input: "a" input: "a"
        attr { key: "T" value { type: DT_FLOAT } }
        attr { key: "_output_shapes"
               value { list { shape { dim { size: 99 } } } } } })",
                   &graph),
            "OK");
  EXPECT_EQ(graph.FindNode("a")->output_shape(0), PartialShape({2}));
  EXPECT_EQ(graph.FindNode("a")->FindAttr("_output_shapes"), nullptr);
  // What we know better stays.
  EXPECT_EQ(graph.FindNode("b")->output_shape(0), PartialShape({2}));
}

TEST(Import, DropsNewerAttributesThatHoldTheirDefault) {
  const auto import = [](const std::string& attr) {
    Graph graph;
    const std::string result =
        Import(StrCat("node { name: 'a' op: 'TestGroup' attr { ", attr, " } }"),
               &graph);
    if (result == "OK") {
      EXPECT_EQ(graph.node(0)->attrs().size(), 0u) << attr;
    }
    return result;
  };
  for (const char* harmless :
       {"key: 'grad_a' value { b: false }", "key: 'x' value { i: 0 }",
        "key: 'incompatible_shape_error' value { b: true }",
        "key: 'Tk' value { type: DT_INT32 }", "key: 'l' value { list { } }",
        "key: 'exponential_avg_factor' value { f: 1 }",
        "key: 'metadata' value { s: 'anything' }",
        "key: 'validate_shape' value { b: true }"}) {
    EXPECT_EQ(import(harmless), "OK") << harmless;
  }
  EXPECT_EQ(import("key: 'zzz' value { i: 1 }"),
            "Invalid argument: NodeDef mentions attr 'zzz' not in "
            "Op<name=TestGroup; signature= -> >; NodeDef: {{node a}}. (Check "
            "whether your GraphDef-interpreting binary is up to date with your "
            "GraphDef-generating binary.).");
  EXPECT_NE(import("key: 'grad_a' value { b: true }"), "OK");
}

TEST(Import, ConnectsTheBackEdgesOfLoops) {
  RegisterMissingOps();
  const std::string attrs = "attr { key: 'T' value { type: DT_FLOAT } } ";
  const std::string merge =
      StrCat("node { name: 'merge' op: 'Merge' input: 'enter' input: 'next' ",
             attrs, "attr { key: 'N' value { i: 2 } } }");
  const std::string rest = StrCat(
      "node { name: 'x' op: 'TestSource' } ",
      "node { name: 'enter' op: 'Enter' input: 'x' ", attrs,
      "attr { key: 'frame_name' value { s: 'f' } } } ",
      "node { name: 'next' op: 'NextIteration' input: 'merge' ", attrs, "}");
  for (const std::string& text : {merge + rest, rest + merge}) {
    Graph graph;
    ASSERT_EQ(Import(text, &graph), "OK");
    EXPECT_EQ(TensorName(graph.FindNode("merge")->input(1)), "next:0");
    EXPECT_EQ(graph.FindNode("next")->out_edges().size(), 1u);
    Graph again;
    EXPECT_EQ(Import(ExportText(graph), &again), "OK");
  }
  EXPECT_THAT(
      ImportError(absl::StrReplaceAll(merge + rest,
                                      {{"input: 'next'", "input: 'next:1'"}})),
      HasSubstr("Node 'merge': Connecting to invalid output 1 of source node "
                "next which has 1 outputs."));
  // A value goes round a loop; a control edge that does closes a cycle.
  EXPECT_EQ(ImportError(absl::StrReplaceAll(
                merge + rest,
                {{"input: 'next'", "input: '^next'"}, {"i: 2", "i: 1"}})),
            "Invalid argument: 2 nodes in a cycle: next -> merge -> next");
}

TEST(Import, NamesTheNodesOfOtherCycles) {
  const std::string add =
      "op: 'TestAddN' attr { key: 'N' value { i: 1 } } "
      "attr { key: 'T' value { type: DT_FLOAT } } } ";
  EXPECT_EQ(ImportError(StrCat("node { name: 'behind' input: 'a' ", add,
                               "node { name: 'a' input: 'b' ", add,
                               "node { name: 'b' input: 'c' ", add,
                               "node { name: 'c' input: 'a' ", add)),
            "Invalid argument: 4 nodes in a cycle: c -> b -> a -> c");
  EXPECT_EQ(ImportError(StrCat("node { name: 'a' input: 'a' ", add)),
            "Invalid argument: 1 nodes in a cycle: a -> a");
  EXPECT_EQ(ImportError(R"(node { name: "a" op: "TestGroup" input: "^b" }
                           node { name: "b" op: "TestGroup" input: "^a" })"),
            "Invalid argument: 2 nodes in a cycle: b -> a -> b");
}

// One bad graph each, with the beginning of its error.
struct BadGraph {
  const char* text;
  const char* error;
};

TEST(Import, SaysWhatIsWrongWithAGraph) {
  const std::string float_t = "attr { key: 'T' value { type: DT_FLOAT } }";
  const BadGraph cases[] = {
      {"node { name: 'a b' op: 'TestGroup' }",
       "Invalid argument: Node 'a b': Node name contains invalid characters"},
      {"node { name: '_a' op: 'TestGroup' }",
       "Invalid argument: Node '_a': Node name contains invalid characters"},
      {"node { name: '' op: 'TestGroup' }",
       "Invalid argument: Node '': Node name contains invalid characters"},
      {"node { name: 'a' op: 'TestGroup' } node { name: 'a' op: 'TestGroup' }",
       "Invalid argument: Node 'a' is not unique"},
      {"node { name: 'a' op: 'NoSuchOp' }",
       "Not found: Op type not registered 'NoSuchOp' in binary running on "},
      {"node { name: 'a' op: 'TestSplit' }",
       "Invalid argument: NodeDef missing attrs 'N', 'T' from "
       "Op<name=TestSplit; signature=x:T -> y:N*T; attr=N:int,min=1; "
       "attr=T:type>; NodeDef: {{node a}}"},
      {"node { name: 'a' op: 'TestGroup' input: 'missing' }",
       "Invalid argument: Node 'a': Unknown input node 'missing'"},
      {"node { name: 'a' op: 'TestGroup' input: '^missing' }",
       "Invalid argument: Node 'a': Unknown input node 'missing'"},
      {"node { name: 'a' op: 'TestGroup' input: '' }",
       "Invalid argument: Node 'a': Unknown input node ''"},
      {"node { name: 'a' op: 'TestGroup' } "
       "node { name: 'b' op: 'TestSource' } "
       "node { name: 'c' op: 'TestAddN' input: '^a' input: 'b' }",
       "Invalid argument: Node 'c': Control dependencies must come after "
       "regular dependencies"},
      {"node { name: 'b' op: 'TestSource' } "
       "node { name: 'c' op: 'TestTuple' input: 'b:1' "
       "  attr { key: 'Ts' value { list { type: DT_FLOAT } } } }",
       "Invalid argument: Node 'c': Connecting to invalid output 1 of source "
       "node b which has 1 outputs."},
      {"node { name: 'b' op: 'TestSource' } "
       "node { name: 'c' op: 'TestTuple' input: 'b:99999999999' "
       "  attr { key: 'Ts' value { list { type: DT_FLOAT } } } }",
       "Invalid argument: Node 'c': Unknown input node 'b:99999999999'"},
      {"node { name: 'b' op: 'TestSource' } "
       "node { name: 'c' op: 'TestTuple' input: 'b' "
       "  attr { key: 'Ts' value { list { type: DT_FLOAT type: DT_INT32 } } } "
       "}",
       "Invalid argument: NodeDef expected inputs 'float, int32' do not match "
       "1 "
       "inputs specified; Op<name=TestTuple; "},
      {"node { name: 'b' op: 'TestSource' } "
       "node { name: 'c' op: 'TestTuple' input: 'b' "
       "  attr { key: 'Ts' value { list { type: DT_INT32 } } } }",
       "Invalid argument: Input 0 of node c was passed float from b:0 "
       "incompatible with expected int32."},
      {"node { name: 'b' op: 'TestSource' } "
       "node { name: 'c' op: 'TestAdd' input: 'b' input: 'b' "
       "  attr { key: 'T' value { type: DT_BOOL } } }",
       "Invalid argument: Value for attr 'T' of bool is not in the list of "
       "allowed values: float, int32, string"},
      {"node { name: 'a' op: 'TestSource' device: '/nonsense:3' }",
       "Invalid argument: Malformed device specification '/nonsense:3' in "
       "node: {{node a}} = TestSource[_device=\"/nonsense:3\"]()"},
      {"node { name: 'a' op: 'TestSource' "
       "  attr { key: 'shape' value { shape { dim { size: -7 } } } } }",
       "Invalid argument: Node 'a': Attr 'shape': Shape "},
      {"node { name: 'a' op: 'TestSource' attr { key: 'shape' value { shape { "
       "  dim { size: 4611686018427387904 } dim { size: 4 } } } } }",
       "Invalid argument: Node 'a': Attr 'shape': Shape "},
      {"node { name: 'a' op: 'TestSource' "
       "  attr { key: '_class' value { list { s: 'loc:@gone' } } } }",
       "Invalid argument: Node 'a' expects to be colocated with unknown node "
       "'gone'"},
      {"versions { producer: 5 min_consumer: 99999 }",
       "Invalid argument: GraphDef min consumer version 99999 above current "
       "version 134 for TensorFlow 1.15.5.  Please upgrade TensorFlow."},
      {"versions { producer: -1 }",
       "Invalid argument: GraphDef producer version -1 below min producer 0 "
       "supported by TensorFlow 1.15.5.  Please regenerate your graph."},
      {"versions { producer: 134 bad_consumers: 134 }",
       "Invalid argument: GraphDef disallows consumer version 134.  Please "
       "upgrade TensorFlow: this version is likely buggy."},
      {"library { function { signature { name: 'TestAdd' } } }",
       "Invalid argument: Cannot add function 'TestAdd' because an op with the "
       "same name already exists."},
      {"library { function { signature { } } }",
       "Invalid argument: Bad OpDef '': it has no name"},
  };
  for (const BadGraph& bad : cases) {
    EXPECT_THAT(ImportError(bad.text), StartsWith(bad.error)) << bad.text;
  }
}

TEST(Import, TakesInternalNamesOnlyWhenAllowed) {
  Graph graph;
  ImportOptions options;
  options.allow_internal = true;
  EXPECT_EQ(Import("node { name: '_a' op: 'TestGroup' }", &graph, options),
            "OK");
  EXPECT_EQ(Import("node { name: 'a/.b-c_d>e' op: 'TestGroup' }", &graph),
            "OK");
}

TEST(Import, BoundsTheMemoryOfConstants) {
  ImportOptions options;
  options.max_tensor_bytes = 1000;
  RegisterMissingOps();
  EXPECT_THAT(ImportError(R"(
      node { name: "a" op: "Const"
        attr { key: "dtype" value { type: DT_FLOAT } }
        attr { key: "value" value { tensor { dtype: DT_FLOAT float_val: 1
          tensor_shape { dim { size: 1000 } } } } } })",
                          options),
              StartsWith("Resource exhausted: Node 'a'"));
}

TEST(Import, BoundsTheNumberOfOutputs) {
  std::string text = "node { name: 'a' op: 'TestSource' } ";
  for (int i = 0; i < 20; ++i) {
    StrAppend(&text, "node { name: 's", i, "' op: 'TestSplit' input: 'a' ",
              "attr { key: 'T' value { type: DT_FLOAT } } ",
              "attr { key: 'N' value { i: 1048576 } } } ");
  }
  EXPECT_THAT(ImportError(text), HasSubstr("outputs; at most 16777216"));
}

TEST(Import, MergesVersions) {
  Graph graph;
  ASSERT_EQ(Import("versions { producer: 1645 }", &graph), "OK");
  EXPECT_EQ(graph.versions().producer, 1645);
  ASSERT_EQ(Import(kTwoNodes, &graph), "OK");
  ASSERT_EQ(Import("versions { producer: 20 min_consumer: 12 "
                   "bad_consumers: 3 }",
                   &graph),
            "OK");
  EXPECT_EQ(graph.versions().producer, 20);
  EXPECT_EQ(graph.versions().min_consumer, 12);
  EXPECT_THAT(graph.versions().bad_consumers, ElementsAre(3));
}

constexpr char kFunction[] = R"(
  node { name: "x" op: "TestSource" }
  node { name: "call" op: "Double" input: "x" }
  library {
    function { signature { name: "Double" input_arg { name: "a" type: DT_FLOAT }
                           output_arg { name: "b" type: DT_FLOAT } }
               ret { key: "b" value: "a" } }
    gradient { function_name: "Double" gradient_func: "DoubleGrad" } }
  versions { producer: 134 min_consumer: 12 })";

TEST(Functions, AreOpsOfTheirGraphAndGoOutAsTheyCame) {
  Graph graph;
  ASSERT_EQ(Import(kFunction, &graph), "OK");
  EXPECT_EQ(graph.FindNode("call")->output_type(0), DType::kFloat);
  EXPECT_EQ(graph.FindNode("call")->type(), "Double");
  pb::GraphDef out;
  ExportGraphDef(graph, {}, &out);
  EXPECT_TRUE(MessageDifferencer::Equals(out.library(),
                                         ParseGraph(kFunction).library()));
  Graph other;
  EXPECT_THAT(Import("node { name: 'x' op: 'Double' }", &other),
              StartsWith("Not found"));
}

TEST(Functions, MayComeTwiceButNotInTwoForms) {
  FunctionLibrary library;
  auto def = ParseGraph(kFunction).library();
  ASSERT_TRUE(library.Add(def).ok());
  EXPECT_TRUE(library.Add(def).ok());
  EXPECT_TRUE(library.AddAll(library).ok());
  EXPECT_NE(library.Find("Double"), nullptr);
  EXPECT_EQ(library.Find("Triple"), nullptr);

  auto changed = def;
  changed.mutable_function(0)->mutable_signature()->set_is_stateful(true);
  changed.add_function()->mutable_signature()->set_name("Fresh");
  EXPECT_EQ(
      StatusText(library.Add(changed)),
      "Invalid argument: Cannot add function 'Double' because a different "
      "function with the same name already exists.");
  EXPECT_EQ(library.Find("Fresh"), nullptr);
  changed = def;
  changed.mutable_gradient(0)->set_gradient_func("Other");
  EXPECT_EQ(StatusText(library.Add(changed)),
            "Invalid argument: Cannot assign gradient function 'Other' to "
            "'Double' because it already has gradient function 'DoubleGrad'");
}

TEST(Export, WritesInputsDevicesShapesAndVersions) {
  Graph graph;
  const Output x = AddTestSource(graph, "x", {2, -1});
  Node* split = AddTestNode(graph, "split", "TestSplit", {x}, {{"N", 2}});
  Node* group = AddTestNode(graph, "group", "TestGroup");
  Node* sum = AddTestNode(graph, "sum", "TestAdd",
                          {split->output(1), split->output(0)});
  graph.AddControlEdge(group, sum);
  sum->set_device("/job:ps");
  sum->set_assigned_device("/job:ps/replica:0/task:0/device:CPU:0");
  pb::NodeDef def;
  NodeToDef(*sum, &def);
  EXPECT_THAT(def.input(), ElementsAre("split:1", "split", "^group"));
  EXPECT_EQ(def.device(), "/job:ps");

  pb::GraphDef out;
  ExportOptions options;
  options.from_node = 1;
  options.add_shapes = true;
  options.assigned_devices = true;
  options.filter = [&](const Node& node) { return &node != split; };
  ExportGraphDef(graph, options, &out);
  ASSERT_EQ(out.node_size(), 2);
  EXPECT_EQ(out.node(0).name(), "group");
  EXPECT_FALSE(out.node(0).attr().contains("_output_shapes"));
  EXPECT_EQ(out.node(1).device(), "/job:ps/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(
      out.node(1).attr().at("_output_shapes").list().shape(0).dim(1).size(),
      -1);
  EXPECT_EQ(out.versions().producer(), 134);
}

TEST(NodeSummary, IsTensorFlowsOneLineForm) {
  RegisterMissingOps();
  Graph graph;
  ASSERT_EQ(Import(R"(
      node { name: "b" op: "Const" device: "/job:ps"
        attr { key: "dtype" value { type: DT_FLOAT } }
        attr { key: "value" value { tensor { dtype: DT_FLOAT float_val: 1 } } }
      }
      node { name: "c" op: "TestAdd" input: "b" input: "b" input: "^b"
        attr { key: "T" value { type: DT_FLOAT } } })",
                   &graph),
            "OK");
  EXPECT_EQ(NodeSummary(*graph.FindNode("b")),
            "{{node b}} = Const[dtype=DT_FLOAT, value=Tensor<type: float "
            "shape: [] values: 1>, _device=\"/job:ps\"]()");
  EXPECT_EQ(NodeSummary(*graph.FindNode("c")),
            "{{node c}} = TestAdd[T=DT_FLOAT](b, b, ^b)");
}

// A client may make an op before the Switch that feeds it, so the order can
// change.
void SortNodes(pb::GraphDef* def) {
  std::sort(def->mutable_node()->begin(), def->mutable_node()->end(),
            [](const auto& a, const auto& b) { return a.name() < b.name(); });
}

// What real programs build: in and out again without a difference.
TEST(GoldenGraphs, GoOutAsTheyCame) {
  RegisterMissingOps();
  int graphs = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("tests/golden/graphs")) {
    if (entry.path().extension() != ".pbtxt") continue;
    std::ifstream file(entry.path());
    google::protobuf::io::IstreamInputStream stream(&file);
    pb::GraphDef def, out;
    ASSERT_TRUE(TextFormat::Parse(&stream, &def)) << entry.path();
    Graph graph;
    const absl::Status status = ImportGraphDef(def, {}, &graph);
    EXPECT_TRUE(status.ok()) << entry.path() << ": " << status;
    if (!status.ok()) continue;
    ExportGraphDef(graph, {}, &out);
    SortNodes(&def);
    SortNodes(&out);
    MessageDifferencer differencer;
    std::string report;
    differencer.ReportDifferencesToString(&report);
    // Some constants are NaN.
    google::protobuf::util::DefaultFieldComparator comparator;
    comparator.set_treat_nan_as_equal(true);
    differencer.set_field_comparator(&comparator);
    EXPECT_TRUE(differencer.Compare(def, out)) << entry.path() << "\n"
                                               << report;
    ++graphs;
  }
  EXPECT_EQ(graphs, 35);
}

}  // namespace
}  // namespace sluice
