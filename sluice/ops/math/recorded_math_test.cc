// The math and nn ops against recordings of TensorFlow 1.15.5: values and
// errors of kernels, static shapes, and the nodes of gradients.
// tests/golden/README.md says how the recordings read.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/array/testing/recording.h"

namespace sluice {
namespace {
namespace recorded_math {

absl::Status RunRecorded(const Recorded& record, OpTest* op) {
  for (const auto& [name, value] : record.attrs) op->Attr(name, value);
  for (const RecordedInput& input : record.inputs) {
    op->AddInput(TensorOf(input));
  }
  return op->Run();
}

void ExpectRecordedRun(const Recorded& record) {
  OpTest op(record.op);
  const absl::Status status = RunRecorded(record, &op);
  int output = 0;
  for (const std::string& line : record.results) {
    if (line.starts_with("error ")) {
      const std::vector<std::string> parts =
          absl::StrSplit(line.substr(6), absl::MaxSplits(' ', 1));
      EXPECT_EQ(absl::StatusCodeToString(status.code()), parts[0]);
      // The node has another name here.
      EXPECT_EQ(absl::StrReplaceAll(
                    status.message(),
                    {{"operation op ", StrCat("operation ", record.op, " ")}}),
                parts[1]);
      return;
    }
    ASSERT_TRUE(status.ok()) << status;
    const Tensor want = TensorOf(ParseRecordedInput(line.substr(4)));
    ExpectClose(op.output(output++), want,
                want.dtype() == DType::kDouble ? 1e-12 : 1e-5);
  }
  EXPECT_TRUE(status.ok()) << status;
}

TEST(RecordedMathOps, GiveTheSameValuesAndErrors) {
  const std::vector<Recorded> records =
      ReadRecording("tests/golden/math_ops.txt");
  ASSERT_GT(records.size(), 600u);
  for (const Recorded& record : records) {
    SCOPED_TRACE(record.DebugString());
    ExpectRecordedRun(record);
  }
}

// Another number of the same type.
std::string OtherNumber(DType dtype, const std::string& text,
                        std::mt19937& random) {
  // None so large that a segment op would make a result of that size.
  constexpr const char* kIntegers[] = {
      "-2147483648", "-100", "-2", "-1", "0", "1", "2", "3", "7", "1000"};
  constexpr const char* kFloats[] = {"nan",  "inf", "-inf", "0",    "-1e-40",
                                     "1e38", "-3",  "0.5",  "1e-3", "7"};
  if (IsInteger(dtype)) return kIntegers[random() % 10];
  if (IsFloating(dtype)) return kFloats[random() % 10];
  return text;
}

RecordedInput Mutated(RecordedInput input, std::mt19937& random) {
  for (std::string& value : input.values) {
    if (random() % 4 == 0) value = OtherNumber(input.dtype, value, random);
  }
  if (random() % 4 != 0) return input;
  const std::string first = input.values.empty() ? "0" : input.values[0];
  input.shape = PartialShape::Scalar();
  for (int rank = static_cast<int>(random() % 5); rank > 0; --rank) {
    input.shape.AddDim(random() % 4);
  }
  input.values.resize(input.shape.NumElements(), first);
  return input;
}

// Kernels meet any input with a value or an error. What they read and write out
// of bounds, a sanitizer sees.
TEST(RecordedMathOps, SurviveInputsThatNobodyMeant) {
  std::mt19937 random(1);
  int failed = 0;
  for (const Recorded& original : ReadRecording("tests/golden/math_ops.txt")) {
    for (int i = 0; i < 10; ++i) {
      Recorded record = original;
      for (RecordedInput& input : record.inputs) {
        input = Mutated(input, random);
      }
      OpTest op(record.op);
      failed += !RunRecorded(record, &op).ok();
    }
  }
  EXPECT_GT(failed, 500);
}

// The shapes of all outputs, or "error …" without the part that names the node.
std::string StaticShapes(const Recorded& record) {
  Graph graph;
  Scope scope(graph);
  std::vector<Output> inputs;
  for (const RecordedInput& input : record.inputs) {
    inputs.push_back(AddRecordedInput(scope, "in", input));
  }
  const Node* node =
      scope.Named("node").AddNode(record.op, inputs, record.attrs);
  if (node == nullptr) {
    std::string message(scope.status().message());
    message = message.substr(0, message.rfind(" for 'node'"));
    return StrCat("error ",
                  absl::StrReplaceAll(message, {{"\n", "\\n"}, {"\t", "\\t"}}));
  }
  std::string text = "shape";
  for (int i = 0; i < node->num_outputs(); ++i) {
    const PartialShape& shape = node->output_shape(i);
    StrAppend(&text, " ", shape.known_rank() ? shape.DebugString() : "?");
  }
  return text;
}

TEST(RecordedMathOps, InferTheSameShapesAndErrors) {
  const std::vector<Recorded> records =
      ReadRecording("tests/golden/math_shapes.txt");
  ASSERT_GT(records.size(), 200u);
  for (const Recorded& record : records) {
    EXPECT_EQ(StaticShapes(record), absl::StrJoin(record.results, "\n"))
        << record.DebugString();
  }
}

std::string NumberText(double value, bool single) {
  return single ? absl::StrFormat("%.9g", value)
                : absl::StrFormat("%.17g", value);
}

std::string ValuesText(const Tensor& tensor) {
  std::string text;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const DType dtype = tensor.dtype();
    StrAppend(
        &text, " ",
        dtype == DType::kInt32    ? StrCat(tensor.data<int32_t>()[i])
        : dtype == DType::kInt64  ? StrCat(tensor.data<int64_t>()[i])
        : dtype == DType::kFloat  ? NumberText(tensor.data<float>()[i], true)
        : dtype == DType::kDouble ? NumberText(tensor.data<double>()[i], false)
        : dtype == DType::kBool   ? StrCat(int{tensor.data<bool>()[i]})
                                  : "?");
  }
  return text;
}

// Calls the gradient of one recorded op and writes down what it did.
class GradientWriter {
 public:
  explicit GradientWriter(const Recorded& record)
      : record_(record), scope_(graph_) {}

  std::vector<std::string> Lines() {
    Node* node = BuildForward();
    if (node == nullptr) return {scope_.status().ToString()};
    if (node->op().gradient == nullptr) return {"no gradient"};
    const std::vector<Output> dy = MakeDy(*node);
    const int before = graph_.num_nodes();
    Scope inner = scope_.NameScope("g");
    const Grads grads = node->op().gradient(inner, *node, dy);
    if (!inner.ok()) return {inner.status().ToString()};
    if (!grads.ok()) return {grads.status().ToString()};
    std::vector<std::string> lines;
    for (int i = before; i < graph_.num_nodes(); ++i) {
      lines.push_back(NodeText(*graph_.node(i)));
    }
    std::string results = "->";
    for (const Grad& grad : *grads) {
      StrAppend(&results, " ", grad ? OutputText(grad.values) : "none");
    }
    lines.push_back(results);
    return lines;
  }

 private:
  Node* BuildForward() {
    std::vector<Output> inputs;
    for (size_t i = 0; i < record_.inputs.size(); ++i) {
      const std::string name = StrCat("in", i);
      inputs.push_back(AddRecordedInput(scope_, name, record_.inputs[i]));
      Remember(name, inputs.back());
    }
    Node* node =
        scope_.Named("forward").AddNode(record_.op, inputs, record_.attrs);
    for (int i = 0; node != nullptr && i < node->num_outputs(); ++i) {
      Remember(StrCat("out", i), node->output(i));
    }
    return node;
  }

  std::vector<Output> MakeDy(const Node& node) {
    std::vector<Output> dy;
    for (int i = 0; i < node.num_outputs(); ++i) {
      dy.push_back(scope_.Named(StrCat("dy", i))
                       .Add("Placeholder", {},
                            {{"dtype", BaseType(node.output_type(i))},
                             {"shape", node.output_shape(i)}}));
      Remember(StrCat("dy", i), dy.back());
    }
    return dy;
  }

  void Remember(std::string name, Output output) {
    nodes_.try_emplace(output.node, name);
    outputs_[{output.node, output.index}] = std::move(name);
  }
  static std::string Relative(const std::string& name) {
    return name.starts_with("g/") ? name.substr(2) : name;
  }
  std::string OutputText(Output output) const {
    const auto it = outputs_.find({output.node, output.index});
    if (it != outputs_.end()) return it->second;
    return StrCat("@", Relative(output.node->name()),
                  output.index > 0 ? StrCat(":", output.index) : "");
  }
  std::string ControlText(const Node* node) const {
    const auto it = nodes_.find(node);
    return it != nodes_.end() ? StrCat(" ^", it->second)
                              : StrCat(" ^@", Relative(node->name()));
  }

  std::string NodeText(const Node& node) const {
    std::string text = StrCat(Relative(node.name()), " ", node.type());
    if (node.type() == "Const") {
      const Tensor value = node.attr<Tensor>("value");
      StrAppend(&text, " ", DTypeName(value.dtype()), " ",
                value.shape().DebugString(), ValuesText(value));
    } else {
      for (const Output& input : node.inputs()) {
        StrAppend(&text, " ", OutputText(input));
      }
      for (const auto& [name, value] : node.attrs()) {
        if (name == "_class") continue;
        // Messages shorten long strings.
        const std::string* string = value.get<std::string>();
        StrAppend(&text, " ", name, "=",
                  string != nullptr ? StrCat("\"", *string, "\"")
                                    : absl::StrReplaceAll(value.DebugString(),
                                                          {{", ", ","}}));
      }
    }
    if (node.FindAttr("_class") != nullptr) text += " _class";
    if (!node.device().empty()) StrAppend(&text, " device=", node.device());
    for (const Node* control : node.control_inputs()) {
      text += ControlText(control);
    }
    return text;
  }

  const Recorded& record_;
  Graph graph_;
  Scope scope_;
  std::map<std::pair<const Node*, int>, std::string> outputs_;
  std::map<const Node*, std::string> nodes_;
};

TEST(MathGradients, AreThoseOfTensorFlowNodeForNode) {
  const std::vector<Recorded> records =
      ReadRecording("tests/golden/math_gradients.txt");
  ASSERT_GT(records.size(), 200u);
  for (const Recorded& record : records) {
    EXPECT_EQ(absl::StrJoin(GradientWriter(record).Lines(), "\n"),
              absl::StrJoin(record.results, "\n"))
        << record.name;
  }
}

}  // namespace recorded_math
}  // namespace
}  // namespace sluice
