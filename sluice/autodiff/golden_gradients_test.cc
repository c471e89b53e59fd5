// Gradients against graphs that TensorFlow 1.15.5 built: the forward part of a
// golden graph is imported, AddGradients is called as the program beside the
// graph called tf.gradients, and every node and static shape it adds must be
// the golden one, in the golden order.

#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "sluice/autodiff/gradients.h"
#include "sluice/graph/control_flow.h"
#include "sluice/graph/graph_def.h"
#include "sluice/kernel/testing/op_test.h"
#include "sluice/proto/graph.pb.h"

namespace sluice {
namespace {

// One call of tf.gradients. Tensors are given by name.
struct GoldenCall {
  std::string scope = "gradients";  // What its nodes are below.
  std::vector<std::string> ys;
  std::vector<std::string> xs;
  GradientOptions options = {};
  std::vector<std::string> grad_ys = {};  // "" stands for none.
  std::string device = "";
  std::vector<std::string> controls = {};
};

struct GoldenCase {
  std::string graph;
  std::vector<GoldenCall> calls;
};

void PrintTo(const GoldenCase& golden, std::ostream* out) {
  *out << golden.graph;
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Static shapes by tensor name.
std::map<std::string, PartialShape> GoldenShapes(const std::string& graph) {
  google::protobuf::Struct json;
  const auto status = google::protobuf::util::JsonStringToMessage(
      ReadText("tests/golden/graphs/" + graph + ".json"), &json);
  EXPECT_TRUE(status.ok()) << status.ToString();
  std::map<std::string, PartialShape> shapes;
  const auto& tensors = json.fields().at("tensors").struct_value();
  for (const auto& [name, value] : tensors.fields()) {
    const auto& shape = value.list_value().values(1);
    if (!shape.has_list_value()) continue;
    std::vector<int64_t> dims;
    for (const auto& dim : shape.list_value().values()) {
      dims.push_back(static_cast<int64_t>(dim.number_value()));
    }
    shapes[name] = PartialShape(std::span<const int64_t>(dims));
  }
  return shapes;
}

bool IsBelow(const std::string& name, const std::string& scope) {
  return name.starts_with(scope + "/");
}

std::string InputsText(const pb::NodeDef& def) {
  std::vector<std::string> data, control;
  for (const std::string& input : def.input()) {
    (input.starts_with("^") ? control : data).push_back(input);
  }
  std::ranges::sort(control);
  std::string text;
  for (const auto& input : data) text += input + " ";
  for (const auto& input : control) text += input + " ";
  return text;
}

// Constants are compared by value, however they are written.
std::string AttrsText(const pb::NodeDef& def) {
  std::map<std::string, std::string> attrs;
  for (const auto& [name, value] : def.attr()) {
    absl::StatusOr<AttrValue> attr = AttrFromProto(value);
    EXPECT_TRUE(attr.ok()) << def.name() << " " << name;
    if (!attr.ok()) continue;
    const Tensor* tensor = attr->get<Tensor>();
    attrs[name] = tensor ? tensor->DebugString(100) : attr->DebugString();
  }
  std::string text;
  for (const auto& [name, value] : attrs) {
    StrAppend(&text, name, "=", value, " ");
  }
  return text;
}

std::string NodeText(const pb::NodeDef& def) {
  return StrCat(def.name(), " = ", def.op(), "(", InputsText(def), ") @",
                def.device(), " ", AttrsText(def));
}

class GoldenGradients : public ::testing::TestWithParam<GoldenCase> {
 protected:
  void SetUp() override {
    const std::string path = "tests/golden/graphs/" + GetParam().graph;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        ReadText(path + ".pbtxt"), &golden_));
    shapes_ = GoldenShapes(GetParam().graph);
  }
  // Adds the golden nodes that the tensors of the call depend on.
  void ImportFor(const GoldenCall& call);
  void RunCall(const GoldenCall& call);
  void CompareShapes(int first);
  Output Find(const std::string& name) {
    absl::StatusOr<Output> output = graph_.FindOutput(name);
    EXPECT_TRUE(output.ok()) << output.status();
    return output.ok() ? *output : Output();
  }
  std::vector<Output> FindAll(const std::vector<std::string>& names) {
    std::vector<Output> outputs;
    for (const std::string& name : names) outputs.push_back(Find(name));
    return outputs;
  }
  void AddCondContexts();

  pb::GraphDef golden_;
  std::map<std::string, PartialShape> shapes_;
  Graph graph_;
  std::map<std::pair<std::string, int>, std::shared_ptr<CondContext>> contexts_;
};

void GoldenGradients::ImportFor(const GoldenCall& call) {
  std::set<std::string> wanted;
  std::vector<std::string> stack;
  auto want = [&](std::string name) {
    if (name.starts_with("^")) name.erase(0, 1);
    name = name.substr(0, name.find(':'));
    if (!name.empty() && graph_.FindNode(name) == nullptr &&
        wanted.insert(name).second) {
      stack.push_back(name);
    }
  };
  for (const auto* names :
       {&call.ys, &call.xs, &call.grad_ys, &call.controls}) {
    for (const std::string& name : *names) want(name);
  }
  std::map<std::string, const pb::NodeDef*> by_name;
  for (const pb::NodeDef& node : golden_.node()) by_name[node.name()] = &node;
  while (!stack.empty()) {
    const std::string name = stack.back();
    stack.pop_back();
    ASSERT_TRUE(by_name.contains(name)) << name;
    for (const std::string& input : by_name[name]->input()) want(input);
    if (name.ends_with("/pred_id")) {
      const std::string cond = name.substr(0, name.rfind('/'));
      want(cond + "/switch_t");
      want(cond + "/switch_f");
    }
  }
  pb::GraphDef forward;
  *forward.mutable_versions() = golden_.versions();
  for (const pb::NodeDef& node : golden_.node()) {
    if (wanted.contains(node.name())) *forward.add_node() = node;
  }
  ImportOptions options;
  options.extend = true;
  // The variables' initializers, which some nodes stand beside, are left out.
  options.validate_colocation = false;
  SLUICE_ASSERT_OK(ImportGraphDef(forward, options, &graph_));
  // Python knew some shapes better than their ops do.
  for (const pb::NodeDef& def : forward.node()) {
    Node* node = graph_.FindNode(def.name());
    for (int i = 0; i < node->num_outputs(); ++i) {
      SLUICE_ASSERT_OK(
          node->RefineOutputShape(i, shapes_[TensorName(node->output(i))]));
    }
  }
}

void GoldenGradients::CompareShapes(int first) {
  for (int id = first; id < graph_.num_nodes(); ++id) {
    const Node& node = *graph_.node(id);
    for (int i = 0; i < node.num_outputs(); ++i) {
      const std::string name = TensorName(node.output(i));
      EXPECT_EQ(node.output_shape(i).DebugString(), shapes_[name].DebugString())
          << name;
    }
  }
}

void GoldenGradients::RunCall(const GoldenCall& call) {
  ImportFor(call);
  if (HasFatalFailure()) return;
  AddCondContexts();
  std::vector<std::string> expected;
  for (const pb::NodeDef& node : golden_.node()) {
    if (IsBelow(node.name(), call.scope)) expected.push_back(NodeText(node));
  }
  std::vector<Grad> grad_ys;
  for (const std::string& name : call.grad_ys) {
    grad_ys.push_back(name.empty() ? Grad() : Grad(Find(name)));
  }
  Scope scope(graph_);
  if (!call.device.empty()) scope = scope.Device(call.device);
  if (!call.controls.empty()) scope = scope.Control(FindAll(call.controls));
  const int first = graph_.num_nodes();
  SLUICE_ASSERT_OK(AddGradients(scope, FindAll(call.ys), FindAll(call.xs),
                                grad_ys, call.options)
                       .status());
  pb::GraphDef added;
  ExportOptions from;
  from.from_node = first;
  ExportGraphDef(graph_, from, &added);
  for (int i = 0; i < added.node_size(); ++i) {
    const std::string want =
        i < static_cast<int>(expected.size()) ? expected[i] : "nothing";
    ASSERT_EQ(NodeText(added.node(i)), want)
        << "node " << i << " of " << call.scope;
  }
  ASSERT_EQ(added.node_size(), static_cast<int>(expected.size()))
      << "missing: " << expected[added.node_size()];
  CompareShapes(first);
}

// A GraphDef does not say which branch of which cond a node was built in, so
// this tells it from Switches and pivots, well enough for the golden graphs.
void GoldenGradients::AddCondContexts() {
  auto context = [&](const std::string& scope, int branch) {
    std::shared_ptr<CondContext>& cond = contexts_[{scope, branch}];
    if (cond == nullptr) {
      cond = CondContext::Create(
          scope, Find(scope + "/pred_id"),
          Find(scope + (branch == 1 ? "/switch_t" : "/switch_f")), branch,
          nullptr);
    }
    return cond;
  };
  auto scope_of = [](const Node& node, std::string_view suffix) {
    const std::string& name = node.name();
    return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size())
                                  : std::string();
  };
  for (int id = 0; id < graph_.num_nodes(); ++id) {
    Node& node = *graph_.node(id);
    if (node.control_flow() != nullptr || node.type() == "Merge") continue;
    if (node.type() == "Switch" || node.type() == "RefSwitch") {
      const std::string scope = scope_of(*node.input(1).node, "/pred_id");
      if (scope.empty() || node.out_edges().empty()) continue;
      node.set_control_flow(context(scope, node.out_edges()[0].src_output));
      continue;
    }
    for (const Output& input : node.inputs()) {
      if (input.node->control_flow() == nullptr) continue;
      node.set_control_flow(input.node->control_flow());
    }
    for (const Node* control : node.control_inputs()) {
      for (int branch : {0, 1}) {
        const std::string scope =
            scope_of(*control, branch == 1 ? "/switch_t" : "/switch_f");
        if (!scope.empty()) node.set_control_flow(context(scope, branch));
      }
    }
  }
}

TEST_P(GoldenGradients, AreTheNodesThatTensorFlowAdds) {
  for (const GoldenCall& call : GetParam().calls) {
    RunCall(call);
    if (HasFatalFailure()) return;
  }
}

GradientOptions Gated() {
  GradientOptions options;
  options.gate = true;
  return options;
}
GradientOptions Beside() {
  GradientOptions options;
  options.colocate_with_ops = true;
  return options;
}
GradientOptions Summed(AggregationMethod method) {
  GradientOptions options;
  options.aggregation = method;
  return options;
}
GradientOptions Called(const std::string& name) {
  GradientOptions options;
  options.name = name;
  return options;
}

// The gradients that the program gradient_options registers in Python.
GradientOptions WithPythonGradients() {
  GradientOptions options;
  options.callback = [](const Node& op, std::span<const Grad> dy,
                        Scope& scope) -> std::optional<Grads> {
    const std::string key = op.attr<std::string>("_gradient_op_type");
    const Scope mul = scope.NameScope("mul");
    if (key == "GoldenTwice") {
      const Output two = mul.Named("x").Scalar<float>(2);
      return Grads(std::vector<Grad>{
          mul.Named(mul.context().name_scope).Add("Mul", {two, dy[0].values})});
    }
    if (key.starts_with("CustomGradient-")) {
      const Output half = mul.Named("y").Scalar<float>(0.5);
      return Grads(
          std::vector<Grad>{Grad(), mul.Named(mul.context().name_scope)
                                        .Add("Mul", {dy[0].values, half})});
    }
    return std::nullopt;
  };
  return options;
}

GoldenCase ConvolutionCase() {
  return {"layers_convnet",
          {{.ys = {"total_loss"},
            .xs = {"c1/kernel", "c1/bias", "conv2d/kernel", "dense/kernel",
                   "dense/bias", "dense_1/kernel", "dense_1/bias"},
            .options = Gated()}}};
}

GoldenCase BatchNormCase() {
  return {"batch_norm",
          {{.ys = {"Sum"},
            .xs = {"fused_bn/gamma", "fused_bn/beta", "plain_bn/gamma",
                   "plain_bn/beta"},
            .options = Gated(),
            .controls = {
                "fused_bn/AssignMovingAvg", "fused_bn/AssignMovingAvg_1",
                "plain_bn/AssignMovingAvg", "plain_bn/AssignMovingAvg_1"}}}};
}

std::vector<GoldenCase> Cases() {
  std::vector<GoldenCase> cases;
  cases.push_back(
      {"broadcast_grads", {{.ys = {"add_9"}, .xs = {"a", "b", "u", "s"}}}});
  cases.push_back({"gradient_options",
                   {{.ys = {"add_1"}, .xs = {"x", "w"}, .options = Gated()},
                    {.scope = "gradients_1",
                     .ys = {"add_1"},
                     .xs = {"x"},
                     .options = Summed(AggregationMethod::kTree)},
                    {.scope = "gradients_2",
                     .ys = {"add_1"},
                     .xs = {"x"},
                     .options = Summed(AggregationMethod::kAccumulateN)},
                    {.scope = "custom",
                     .ys = {"add_1", "x/read"},
                     .xs = {"x", "w"},
                     .options = Called("custom"),
                     .grad_ys = {"Const", ""}},
                    {.scope = "gradients_3", .ys = {"add_2"}, .xs = {"x"}},
                    {.scope = "gradients_4",
                     .ys = {"Sum"},
                     .xs = {"x", "w"},
                     .options = Beside()},
                    {.scope = "gradients_5",
                     .ys = {"Sum_1"},
                     .xs = {"x", "w"},
                     .options = Beside()},
                    {.scope = "gradients_6",
                     .ys = {"overridden"},
                     .xs = {"x"},
                     .options = WithPythonGradients()},
                    {.scope = "gradients_7",
                     .ys = {"IdentityN"},
                     .xs = {"x"},
                     .options = WithPythonGradients()},
                    {.scope = "gradients_8", .ys = {"Sum_2"}, .xs = {"w"}}}});
  cases.push_back(
      {"colocation", {{.ys = {"Square"}, .xs = {"v"}, .options = Beside()}}});
  cases.push_back({"cond_grad", {{.ys = {"Mean"}, .xs = {"x", "w"}}}});
  cases.push_back({"mlp_adam",
                   {{.ys = {"loss/Mean"},
                     .xs = {"hidden/w", "hidden/b", "out/w", "out/b"},
                     .options = Gated()}}});
  cases.push_back({"linreg_adagrad_ps2",
                   {{.ys = {"Pow"},
                     .xs = {"b0", "b1"},
                     .options = Gated(),
                     .device = "/job:worker/task:1"}}});
  cases.push_back({"embedding_sparse_grad",
                   {{.ys = {"add_1"},
                     .xs = {"s0", "s1", "s2", "one"},
                     .options = Gated()}}});
  cases.push_back({"resource_variables",
                   {{.ys = {"add_1"}, .xs = {"v", "e"}, .options = Gated()}}});
  cases.push_back({"partitioned_variables",
                   {{.ys = {"Sum"},
                     .xs = {"p/emb/part_0", "p/emb/part_1", "p/emb/part_2",
                            "q/w/part_0", "q/w/part_1"},
                     .options = Gated(),
                     .device = "/job:worker/task:0"}}});
  cases.push_back({"sync_replicas",
                   {{.ys = {"add"},
                     .xs = {"w", "e"},
                     .options = Gated(),
                     .device = "/job:worker/task:0"}}});
  cases.push_back({"monitored_session",
                   {{.ys = {"Square"}, .xs = {"w"}, .options = Gated()}}});
  cases.push_back({"moving_average_schedules",
                   {{.ys = {"Sum"}, .xs = {"w", "b"}, .options = Gated()},
                    {.scope = "gradients_1",
                     .ys = {"Sum"},
                     .xs = {"w", "b"},
                     .options = Gated()},
                    {.scope = "gradients_2",
                     .ys = {"Sum"},
                     .xs = {"w", "b"},
                     .options = Gated()}}});
  // Compared from the day their ops are there.
  const auto has = [](std::string_view op) {
    return OpRegistry::Global().Find(op) != nullptr;
  };
  if (has("Conv2D") && has("MaxPool")) cases.push_back(ConvolutionCase());
  if (has("FusedBatchNormV3")) cases.push_back(BatchNormCase());
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenGradients, ::testing::ValuesIn(Cases()),
                         [](const ::testing::TestParamInfo<GoldenCase>& info) {
                           return info.param.graph;
                         });

}  // namespace
}  // namespace sluice
