// The gradients of the array ops against those of TensorFlow 1.15.5's Python
// front end: every node with its name, inputs and attributes, in order.
// tests/golden/README.md says how the recording reads.
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "sluice/graph/scope.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/ops/array/testing/recording.h"

namespace sluice {
namespace {

// Numbers as the recording writes them: "2 3".
std::string ValuesText(const Tensor& tensor) {
  std::string text;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    double value = 0;
    switch (tensor.dtype()) {
      case DType::kInt32:
        value = tensor.data<int32_t>()[i];
        break;
      case DType::kInt64:
        value = tensor.data<int64_t>()[i];
        break;
      case DType::kFloat:
        value = tensor.data<float>()[i];
        break;
      default:
        ADD_FAILURE() << DTypeName(tensor.dtype());
    }
    StrAppend(&text, i > 0 ? " " : "", value);
  }
  return text;
}

class GradientRecord {
 public:
  // A first result "dy slices int32" says that dy is slices with such indices.
  explicit GradientRecord(const Recorded& record)
      : case_(record), scope_(graph_) {
    constexpr std::string_view kSlices = "dy slices ";
    if (record.results[0].starts_with(kSlices)) {
      slices_ = ParseDType(record.results[0].substr(kSlices.size()));
    }
  }

  std::vector<std::string> ExpectedLines() const {
    return {case_.results.begin() + (slices_ == DType::kInvalid ? 0 : 1),
            case_.results.end()};
  }

  // The nodes that the gradient made and what it returned, in the recording's
  // form; or the error.
  std::vector<std::string> Lines() {
    Node* node = BuildForward();
    if (node == nullptr) return {scope_.status().ToString()};
    MakeDy(*node);
    const int before = graph_.num_nodes();
    Scope inner = scope_.NameScope("g");
    std::vector<Output> values;
    for (const Grad& dy : dy_) values.push_back(dy.values);
    const Grads grads = slices_ == DType::kInvalid
                            ? node->op().gradient(inner, *node, values)
                            : node->op().slices_gradient(inner, *node, dy_);
    if (!inner.ok()) return {inner.status().ToString()};
    if (!grads.ok()) return {grads.status().ToString()};
    std::vector<std::string> lines;
    for (int i = before; i < graph_.num_nodes(); ++i) {
      lines.push_back(NodeText(*graph_.node(i)));
    }
    std::string results = "->";
    for (const Grad& grad : *grads) {
      StrAppend(&results, " ", GradText(grad));
    }
    lines.push_back(results);
    return lines;
  }

 private:
  Output Named(std::string name, Output output) {
    names_[{output.node, output.index}] = std::move(name);
    return output;
  }

  Output Placeholder(const std::string& name, DType dtype, PartialShape shape) {
    return Named(name, scope_.Named(name).Add(
                           "Placeholder", {},
                           {{"dtype", dtype}, {"shape", std::move(shape)}}));
  }

  Node* BuildForward() {
    std::vector<Output> inputs;
    for (size_t i = 0; i < case_.inputs.size(); ++i) {
      const std::string name = StrCat("in", i);
      inputs.push_back(
          Named(name, AddRecordedInput(scope_, name, case_.inputs[i])));
    }
    Node* node = scope_.Named("forward").AddNode(case_.op, inputs, case_.attrs);
    for (int i = 0; node != nullptr && i < node->num_outputs(); ++i) {
      Named(StrCat("out", i), node->output(i));
    }
    return node;
  }

  void MakeDy(const Node& node) {
    for (int i = 0; i < node.num_outputs(); ++i) {
      const DType dtype = BaseType(node.output_type(i));
      if (slices_ == DType::kInvalid) {
        dy_.push_back(
            Placeholder(StrCat("dy", i), dtype, node.output_shape(i)));
      } else {
        dy_.push_back(
            Grad::Slices(Placeholder(StrCat("dy", i), dtype, {}),
                         Placeholder(StrCat("indices", i), slices_, {}),
                         Placeholder(StrCat("shape", i), DType::kInt32, {-1})));
      }
    }
  }

  std::string Relative(const std::string& name) const {
    return name.starts_with("g/") ? name.substr(2) : name;
  }
  std::string OutputText(Output output) const {
    const auto it = names_.find({output.node, output.index});
    if (it != names_.end()) return it->second;
    return StrCat("@", Relative(output.node->name()),
                  output.index > 0 ? StrCat(":", output.index) : "");
  }
  std::string GradText(const Grad& grad) const {
    if (!grad) return "none";
    if (!grad.is_slices()) return OutputText(grad.values);
    return StrCat(OutputText(grad.values), "|", OutputText(grad.indices), "|",
                  OutputText(grad.dense_shape));
  }
  std::string NodeText(const Node& node) const {
    std::string text = StrCat(Relative(node.name()), " ", node.type());
    if (node.type() == "Const") {
      const Tensor value = node.attr<Tensor>("value");
      const std::string values = ValuesText(value);
      StrAppend(&text, " ", DTypeName(value.dtype()), " ",
                value.shape().DebugString(), values.empty() ? "" : " ", values);
      return text + (node.FindAttr("_class") != nullptr ? " _class" : "");
    }
    for (const Output& input : node.inputs()) {
      StrAppend(&text, " ", OutputText(input));
    }
    for (const auto& [name, value] : node.attrs()) {
      if (name == "_class") {
        text += " _class";
      } else {
        StrAppend(&text, " ", name, "=", value.DebugString());
      }
    }
    return text;
  }

  const Recorded& case_;
  DType slices_ = DType::kInvalid;
  Graph graph_;
  Scope scope_;
  std::vector<Grad> dy_;
  std::map<std::pair<const Node*, int>, std::string> names_;
};

TEST(ArrayGradients, AreThoseOfTensorFlowNodeForNode) {
  const std::vector<Recorded> records =
      ReadRecording("tests/golden/array_gradients.txt");
  ASSERT_GT(records.size(), 50u);
  for (const Recorded& record : records) {
    GradientRecord gradient(record);
    EXPECT_EQ(absl::StrJoin(gradient.Lines(), "\n"),
              absl::StrJoin(gradient.ExpectedLines(), "\n"))
        << record.name;
  }
}

TEST(ArrayGradients, ArePreventedWithTheGivenReason) {
  Graph graph;
  Scope scope(graph);
  const Output x = scope.Scalar<float>(1);
  Node* node = scope.AddNode("PreventGradient", {x}, {{"message", "why"}});
  ASSERT_NE(node, nullptr);
  EXPECT_THAT(
      node->op().gradient(scope, *node, std::vector<Output>{x}).status(),
      StatusIs(absl::StatusCode::kNotFound,
               "Gradient explicitly disabled. Reason: b'why'"));
}

TEST(ArrayGradients, AreNoneForOpsThatOnlyLookAtShapes) {
  for (const char* op :
       {"Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike", "Const",
        "Range", "LinSpace", "OneHot", "StopGradient", "ConcatOffset",
        "InvertPermutation", "BroadcastGradientArgs"}) {
    EXPECT_TRUE(OpRegistry::Global().Find(op)->not_differentiable) << op;
  }
}

}  // namespace
}  // namespace sluice
