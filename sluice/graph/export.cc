// Graphs and nodes to messages and to the short form of messages.
#include "absl/strings/str_join.h"
#include "sluice/graph/functions.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/graph.pb.h"

namespace sluice {
namespace {

// Readers older than this know no functions.
constexpr int kFirstVersionWithFunctions = 12;

std::string InputText(Output input) {
  if (input.index == 0) return input.node->name();
  return TensorName(input);
}

AttrValue OutputShapes(const Node& node) {
  std::vector<PartialShape> shapes;
  for (int i = 0; i < node.num_outputs(); ++i) {
    shapes.push_back(node.output_shape(i));
  }
  return AttrValue(std::move(shapes));
}

std::string Summary(std::string_view name, std::string_view op,
                    const AttrMap& attrs, std::string_view device,
                    const std::vector<std::string>& inputs) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : attrs) {
    parts.push_back(StrCat(key, "=", value.DebugString()));
  }
  if (!device.empty()) parts.push_back(StrCat("_device=\"", device, "\""));
  return StrCat("{{node ", name, "}} = ", op, "[", absl::StrJoin(parts, ", "),
                "](", absl::StrJoin(inputs, ", "), ")");
}

}  // namespace

void NodeToDef(const Node& node, pb::NodeDef* def) {
  def->Clear();
  def->set_name(node.name());
  def->set_op(node.type());
  for (const Output& input : node.inputs()) {
    // A back edge that is still to come has nothing to say.
    if (input) def->add_input(InputText(input));
  }
  // Sorted by name, as TensorFlow writes them.
  std::vector<std::string> controls;
  for (const Node* control : node.control_inputs()) {
    controls.push_back(StrCat("^", control->name()));
  }
  std::ranges::sort(controls);
  for (std::string& control : controls) def->add_input(std::move(control));
  def->set_device(node.device());
  for (const auto& [name, value] : node.attrs()) {
    AttrToProto(value, &(*def->mutable_attr())[name]);
  }
}

void ExportGraphDef(const Graph& graph, const ExportOptions& options,
                    pb::GraphDef* def) {
  def->Clear();
  for (int id = std::max(options.from_node, 0); id < graph.num_nodes(); ++id) {
    const Node& node = *graph.node(id);
    if (options.filter && !options.filter(node)) continue;
    pb::NodeDef* out = def->add_node();
    NodeToDef(node, out);
    if (options.assigned_devices && !node.assigned_device().empty()) {
      out->set_device(node.assigned_device());
    }
    if (options.add_shapes && node.num_outputs() > 0) {
      AttrToProto(OutputShapes(node),
                  &(*out->mutable_attr())["_output_shapes"]);
    }
  }
  const GraphVersions& versions = graph.versions();
  int min_consumer = versions.min_consumer;
  if (!graph.functions().empty()) {
    graph.functions().ToProto(def->mutable_library());
    min_consumer = std::max(min_consumer, kFirstVersionWithFunctions);
  }
  def->mutable_versions()->set_producer(versions.producer);
  def->mutable_versions()->set_min_consumer(min_consumer);
  for (int bad : versions.bad_consumers) {
    def->mutable_versions()->add_bad_consumers(bad);
  }
}

std::string NodeSummary(const Node& node) {
  std::vector<std::string> inputs;
  for (const Output& input : node.inputs()) {
    if (input) inputs.push_back(InputText(input));
  }
  for (const Node* control : node.control_inputs()) {
    inputs.push_back(StrCat("^", control->name()));
  }
  return Summary(node.name(), node.type(), node.attrs(), node.device(), inputs);
}

std::string NodeSummary(const pb::NodeDef& def) {
  AttrMap attrs;
  for (const auto& [name, value] : def.attr()) {
    auto attr = AttrFromProto(value);
    attrs.Set(name, attr.ok() ? *std::move(attr) : AttrValue());
  }
  return Summary(def.name(), def.op(), attrs, def.device(),
                 {def.input().begin(), def.input().end()});
}

}  // namespace sluice
