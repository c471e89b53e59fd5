#include "sluice/graph/graph.h"

#include <charconv>

#include "absl/strings/str_join.h"
#include "sluice/graph/build_context.h"
#include "sluice/graph/functions.h"
#include "sluice/graph/shape_inference.h"

namespace sluice {

const HandleShape& Node::output_handle(int i) const {
  static const HandleShape* none = new HandleShape;
  return output_handles_.empty() ? *none : output_handles_[i];
}

bool Node::IsControlFlow() const {
  const std::string& t = type();
  return t == "Switch" || t == "RefSwitch" || t == "Merge" || t == "RefMerge" ||
         t == "Enter" || t == "RefEnter" || t == "Exit" || t == "RefExit" ||
         t == "NextIteration" || t == "RefNextIteration" || t == "_SwitchN";
}

absl::Status Node::RefineOutputShape(int i, const PartialShape& shape) {
  SLUICE_ASSIGN_OR_RETURN(output_shapes_[i],
                          output_shapes_[i].MergeWith(shape));
  return absl::OkStatus();
}

std::string TensorName(Output output) {
  return StrCat(output.node->name(), ":", output.index);
}

bool TypeFits(DType from, DType to) {
  if (IsRef(to)) return from == to;
  return BaseType(from) == to;
}

Graph::Graph()
    : functions_(std::make_unique<FunctionLibrary>()),
      build_(std::make_unique<BuildState>()) {}
Graph::~Graph() = default;

Node* Graph::FindNode(std::string_view name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

absl::StatusOr<Output> Graph::FindOutput(std::string_view tensor_name) const {
  std::string_view name = tensor_name;
  int index = 0;
  if (const size_t colon = tensor_name.rfind(':');
      colon != std::string_view::npos) {
    name = tensor_name.substr(0, colon);
    const std::string_view digits = tensor_name.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      return InvalidArgument("'", tensor_name, "' is not a tensor name");
    }
  }
  Node* node = FindNode(name);
  if (node == nullptr) {
    return NotFound("Tensor ", tensor_name, ": no node named '", name, "'");
  }
  if (index < 0 || index >= node->num_outputs()) {
    return InvalidArgument("Tensor ", tensor_name, ": node '", name, "' has ",
                           node->num_outputs(), " outputs");
  }
  return node->output(index);
}

namespace {

// Sets `name` to `value`, or checks that what is there says the same.
absl::Status SetOrCheck(AttrMap* attrs, const OpDef& op, const ArgDef& arg,
                        const std::string& name, AttrValue value) {
  const AttrValue* existing = attrs->Find(name);
  if (existing == nullptr) {
    attrs->Set(name, std::move(value));
    return absl::OkStatus();
  }
  if (*existing == value) return absl::OkStatus();
  return InvalidArgument("Input '", arg.name, "' of op ", op.name, " has ",
                         value.DebugString(), " for attr '", name,
                         "', but it is ", existing->DebugString());
}

}  // namespace

absl::Status InferAttrs(const OpDef& op, std::span<const Output> inputs,
                        AttrMap* attrs) {
  // The length of one list argument may be left to the rest; of more than one,
  // the attributes must say.
  int unknown_lists = 0;
  int64_t known = 0;
  for (const ArgDef& arg : op.inputs) {
    if (!arg.is_list()) {
      ++known;
    } else if (attrs->Contains(arg.type_list_attr.empty()
                                   ? arg.number_attr
                                   : arg.type_list_attr)) {
      SLUICE_ASSIGN_OR_RETURN(const int count, ArgCount(arg, *attrs));
      known += count;
    } else {
      ++unknown_lists;
    }
  }
  const int64_t rest = static_cast<int64_t>(inputs.size()) - known;
  if (rest < 0 || (rest > 0 && unknown_lists == 0)) {
    return InvalidArgument("Op ", op.name, " takes ", known,
                           unknown_lists > 0 ? " or more" : "",
                           " inputs but got ", inputs.size());
  }
  size_t next = 0;
  for (const ArgDef& arg : op.inputs) {
    int64_t count = 1;
    if (!arg.number_attr.empty()) {
      const int64_t* given = attrs->Find<int64_t>(arg.number_attr);
      count = given != nullptr ? *given : rest / unknown_lists;
      attrs->Set(arg.number_attr, count);
    } else if (!arg.type_list_attr.empty()) {
      const AttrList* given = attrs->Find<AttrList>(arg.type_list_attr);
      count = given != nullptr ? static_cast<int64_t>(given->types.size())
                               : rest / unknown_lists;
    }
    if (next + count > inputs.size()) {
      return InvalidArgument("Op ", op.name,
                             " has too few inputs: ", inputs.size());
    }
    if (!arg.type_list_attr.empty()) {
      std::vector<DType> types;
      for (int64_t i = 0; i < count; ++i) {
        types.push_back(BaseType(TypeOf(inputs[next + i])));
      }
      if (!attrs->Contains(arg.type_list_attr)) {
        attrs->Set(arg.type_list_attr, std::move(types));
      }
    } else if (!arg.type_attr.empty()) {
      for (int64_t i = 0; i < count; ++i) {
        SLUICE_RETURN_IF_ERROR(SetOrCheck(attrs, op, arg, arg.type_attr,
                                          BaseType(TypeOf(inputs[next + i]))));
      }
    }
    next += count;
  }
  return absl::OkStatus();
}

namespace {

// Every given input must be an output of a node of `graph`.
absl::Status CheckEdges(const Graph& graph, const NodeSpec& spec) {
  for (const Output& input : spec.inputs) {
    if (!input) continue;
    if (&input.node->graph() != &graph) {
      return InvalidArgument("Input ", input.node->name(), " of node ",
                             spec.name, " is of another graph");
    }
    if (input.index < 0 || input.index >= input.node->num_outputs()) {
      return InvalidArgument(
          "Node '", spec.name, "': Connecting to invalid output ", input.index,
          " of source node ", input.node->name(), " which has ",
          input.node->num_outputs(), " outputs.");
    }
  }
  for (const Node* control : spec.control_inputs) {
    if (&control->graph() != &graph) {
      return InvalidArgument("Control input ", control->name(), " of node ",
                             spec.name, " is of another graph");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckInputs(const OpDef& op, const NodeSpec& spec,
                         const std::vector<DType>& expected) {
  if (spec.inputs.size() != expected.size()) {
    std::vector<std::string> types;
    for (DType type : expected) types.push_back(DTypeName(type));
    return InvalidArgument(
        "NodeDef expected inputs '", absl::StrJoin(types, ", "),
        "' do not match ", spec.inputs.size(), " inputs specified; ",
        OpSummary(op), "; NodeDef: {{node ", spec.name, "}}");
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!spec.inputs[i]) continue;  // A back edge that comes later.
    const DType got = TypeOf(spec.inputs[i]);
    if (!TypeFits(got, expected[i])) {
      return InvalidArgument(
          "Input ", i, " of node ", spec.name, " was passed ", DTypeName(got),
          " from ", TensorName(spec.inputs[i]), " incompatible with expected ",
          DTypeName(expected[i]), ".");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Node*> Graph::AddNode(NodeSpec spec) {
  SLUICE_ASSIGN_OR_RETURN(const OpInfo* op, FindOp(spec.op));
  SLUICE_RETURN_IF_ERROR(CheckEdges(*this, spec));
  if (by_name_.contains(spec.name)) {
    return InvalidArgument("Duplicate node name in graph: '", spec.name, "'");
  }
  bool complete = spec.infer_attrs;
  for (const Output& input : spec.inputs) complete &= bool(input);
  if (complete) {
    SLUICE_RETURN_IF_ERROR(InferAttrs(op->def, spec.inputs, &spec.attrs));
  }
  SLUICE_RETURN_IF_ERROR(CheckAttrs(op->def, spec.name, &spec.attrs));
  auto node = std::unique_ptr<Node>(new Node);
  SLUICE_ASSIGN_OR_RETURN(node->input_types_,
                          ArgTypes(op->def.inputs, spec.attrs));
  SLUICE_ASSIGN_OR_RETURN(node->output_types_,
                          ArgTypes(op->def.outputs, spec.attrs));
  SLUICE_RETURN_IF_ERROR(CheckInputs(op->def, spec, node->input_types_));
  node->id_ = num_nodes();
  node->graph_ = this;
  node->name_ = std::move(spec.name);
  node->op_ = op;
  node->inputs_ = std::move(spec.inputs);
  node->control_inputs_ = std::move(spec.control_inputs);
  node->attrs_ = std::move(spec.attrs);
  node->device_ = std::move(spec.device);
  node->output_shapes_.resize(node->output_types_.size());
  SLUICE_RETURN_IF_ERROR(InferShapes(node.get()));

  Node* added = node.get();
  nodes_.push_back(std::move(node));
  by_name_.emplace(added->name_, added);
  for (int i = 0; i < added->num_inputs(); ++i) {
    if (const Output input = added->inputs_[i]) {
      input.node->out_edges_.push_back({added, input.index, i});
    }
  }
  for (Node* control : added->control_inputs_) {
    control->out_edges_.push_back({added, -1, -1});
  }
  return added;
}

void Graph::Truncate(int first) {
  for (int id = num_nodes() - 1; id >= first; --id) {
    const Node* node = nodes_[id].get();
    by_name_.erase(node->name_);
    // Edges are appended, so those to new nodes stand at the end.
    const auto forget = [first](Node* source) {
      if (source == nullptr) return;
      std::vector<OutEdge>& edges = source->out_edges_;
      while (!edges.empty() && edges.back().dst->id_ >= first) edges.pop_back();
    };
    for (const Output& input : node->inputs_) forget(input.node);
    for (Node* control : node->control_inputs_) forget(control);
  }
  nodes_.resize(first);
}

absl::StatusOr<const OpInfo*> Graph::FindOp(std::string_view type) const {
  if (const OpInfo* op = OpRegistry::Global().Find(type)) return op;
  if (const OpInfo* op = functions_->FindOp(type)) return op;
  return OpRegistry::Global().Lookup(type);
}

absl::Status Graph::SetInput(Node* node, int index, Output value) {
  if (!TypeFits(TypeOf(value), node->input_type(index))) {
    return InvalidArgument("Input ", index, " of node ", node->name(),
                           " cannot be ", TensorName(value), " of type ",
                           DTypeName(TypeOf(value)));
  }
  if (const Output old = node->inputs_[index]) {
    std::erase_if(old.node->out_edges_, [&](const OutEdge& e) {
      return e.dst == node && e.dst_input == index;
    });
  }
  node->inputs_[index] = value;
  value.node->out_edges_.push_back({node, value.index, index});
  return absl::OkStatus();
}

Node* Graph::CopyNode(const Node& from, std::string name) {
  auto node = std::unique_ptr<Node>(new Node);
  node->id_ = num_nodes();
  node->graph_ = this;
  node->name_ = std::move(name);
  node->op_ = from.op_;
  node->inputs_.resize(from.inputs_.size());
  node->input_types_ = from.input_types_;
  node->output_types_ = from.output_types_;
  node->output_shapes_ = from.output_shapes_;
  node->output_handles_ = from.output_handles_;
  node->attrs_ = from.attrs_;
  node->device_ = from.device_;
  node->assigned_device_ = from.assigned_device_;
  Node* added = node.get();
  nodes_.push_back(std::move(node));
  by_name_.emplace(added->name_, added);
  return added;
}

void Graph::Connect(Output src, Node* dst, int input) {
  dst->inputs_[input] = src;
  src.node->out_edges_.push_back({dst, src.index, input});
}

void Graph::AddControlEdge(Node* src, Node* dst) {
  for (Node* existing : dst->control_inputs_) {
    if (existing == src) return;
  }
  dst->control_inputs_.push_back(src);
  src->out_edges_.push_back({dst, -1, -1});
}

namespace {

std::string InputShapesText(const Node& node) {
  std::string text;
  for (const Output& input : node.inputs()) {
    if (!text.empty()) text += ", ";
    text += input ? ShapeOf(input).DebugString() : "?";
  }
  return text;
}

// The element count of every shape in a graph fits into int64.
absl::Status CheckShapes(const std::vector<PartialShape>& shapes) {
  for (const PartialShape& shape : shapes) {
    if (!shape.known_rank()) continue;
    SLUICE_RETURN_IF_ERROR(PartialShape::Create(shape.dims()).status());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Graph::InferShapes(Node* node) {
  if (node->op_->shape == nullptr) return absl::OkStatus();
  for (const Output& input : node->inputs_) {
    // With a back edge missing nothing is certain yet, except for Merge, whose
    // shape function knows about it.
    if (!input && node->type() != "Merge" && node->type() != "RefMerge") {
      return absl::OkStatus();
    }
  }
  ShapeContext context(*node);
  absl::Status status = node->op_->shape(context);
  if (status.ok()) status = CheckShapes(node->output_shapes_);
  if (status.ok()) return status;
  return WithMessage(
      status,
      StrCat(status.message(), " for '", node->name(), "' (op: '", node->type(),
             "') with input shapes: ", InputShapesText(*node), "."));
}

}  // namespace sluice
