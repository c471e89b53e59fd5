#include "sluice/graph/function_body.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_split.h"
#include "sluice/base/status.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/graph.pb.h"

namespace sluice {
namespace {

// `value` with the call's attributes in the place of those it leaves open.
absl::StatusOr<AttrValue> Bound(const AttrValue& value, const AttrMap& call) {
  if (const auto* placeholder = value.get<AttrPlaceholder>()) {
    const AttrValue* bound = call.Find(placeholder->name);
    if (bound != nullptr) return *bound;
    return InvalidArgument("the call does not say what attribute '",
                           placeholder->name, "' is");
  }
  const auto* function = value.get<FunctionName>();
  if (function == nullptr || function->attrs == nullptr) return value;
  auto attrs = std::make_shared<AttrMap>();
  for (const auto& [name, inner] : *function->attrs) {
    SLUICE_ASSIGN_OR_RETURN(AttrValue bound, Bound(inner, call));
    attrs->Set(name, std::move(bound));
  }
  return AttrValue(FunctionName{function->name, std::move(attrs)});
}

// Fills in what `attrs` does not say.
void AddDefaults(const OpDef& op, AttrMap* attrs) {
  for (const AttrDef& attr : op.attrs) {
    if (attr.default_value && !attrs->Contains(attr.name)) {
      attrs->Set(attr.name, *attr.default_value);
    }
  }
}

// Where the outputs of a node, or an argument, are.
struct OutputRange {
  std::string name;  // Of the output; empty for an argument.
  int first = 0;
  int count = 0;
};

// The call decides on the number of arguments, and may not mean well.
constexpr size_t kMostArgs = 1 << 16;

// Writes the body as a GraphDef, which knows outputs by number.
class BodyWriter {
 public:
  BodyWriter(const FunctionLibrary& functions, const pb::FunctionDef& def,
             const OpDef& signature, const AttrMap& attrs)
      : functions_(functions),
        def_(def),
        signature_(signature),
        attrs_(attrs) {}

  absl::Status Write(pb::GraphDef* graph) {
    SLUICE_RETURN_IF_ERROR(AddArgs(graph));
    for (const pb::NodeDef& node : def_.node_def()) {
      SLUICE_RETURN_IF_ERROR(AddNode(node, graph));
    }
    for (int i = num_args_; i < graph->node_size(); ++i) {
      for (std::string& input : *graph->mutable_node(i)->mutable_input()) {
        if (input.starts_with('^')) continue;
        SLUICE_ASSIGN_OR_RETURN(input, TensorNameOf(input));
      }
    }
    return absl::OkStatus();
  }

  int num_args() const { return num_args_; }

  // "n:out:0" or "arg" -> "n:3", as a GraphDef writes it.
  absl::StatusOr<std::string> TensorNameOf(const std::string& text) const {
    const std::vector<std::string> parts = absl::StrSplit(text, ':');
    auto it = outputs_.find(parts[0]);
    if (it == outputs_.end()) {
      return InvalidArgument("there is no node or argument '", parts[0],
                             "', which '", text, "' names");
    }
    const bool is_argument = it->second.front().name.empty();
    const OutputRange* range = nullptr;
    if (is_argument) {
      range = &it->second.front();
    } else if (parts.size() > 1) {
      for (const OutputRange& each : it->second) {
        if (each.name == parts[1]) range = &each;
      }
    }
    const size_t index_at = is_argument ? 1 : 2;
    int index = 0;
    if (parts.size() > index_at + 1 || range == nullptr ||
        (parts.size() == index_at + 1 && !ParseIndex(parts.back(), &index)) ||
        index >= range->count) {
      return InvalidArgument("'", text, "' names no output of '", parts[0],
                             "'");
    }
    if (is_argument) return ArgName(range->first + index);
    return StrCat(parts[0], ":", range->first + index);
  }

 private:
  static bool ParseIndex(const std::string& text, int* index) {
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, *index);
    return result.ec == std::errc() && result.ptr == end && *index >= 0;
  }

  std::string ArgName(int index) const { return arg_names_[index]; }

  absl::Status AddArgs(pb::GraphDef* graph) {
    for (const ArgDef& arg : signature_.inputs) {
      SLUICE_ASSIGN_OR_RETURN(const std::vector<DType> types,
                              ArgTypes(std::span(&arg, 1), attrs_));
      if (num_args_ + types.size() > kMostArgs) {
        return InvalidArgument("it has more than ", kMostArgs, " arguments");
      }
      outputs_[arg.name] = {{"", num_args_, static_cast<int>(types.size())}};
      for (size_t i = 0; i < types.size(); ++i) {
        pb::NodeDef* node = graph->add_node();
        node->set_name(i == 0 ? arg.name : StrCat(arg.name, ".", i));
        node->set_op("_Arg");
        AttrToProto(AttrValue(types[i]), &(*node->mutable_attr())["T"]);
        AttrToProto(AttrValue(int64_t{num_args_}),
                    &(*node->mutable_attr())["index"]);
        arg_names_.push_back(node->name());
        ++num_args_;
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddNode(const pb::NodeDef& def, pb::GraphDef* graph) {
    if (def.op() == "_Arg" || def.op() == "_Retval") {
      return InvalidArgument("node '", def.name(), "' is of type ", def.op(),
                             ", which only the runtime makes");
    }
    pb::NodeDef* node = graph->add_node();
    node->set_name(def.name());
    node->set_op(def.op());
    node->set_device(def.device());
    *node->mutable_input() = def.input();
    AttrMap attrs;
    for (const auto& [name, value] : def.attr()) {
      if (name == "_class") continue;  // All of a call is in one place.
      SLUICE_ASSIGN_OR_RETURN(const AttrValue raw, AttrFromProto(value));
      SLUICE_ASSIGN_OR_RETURN(AttrValue bound, Bound(raw, attrs_));
      AttrToProto(bound, &(*node->mutable_attr())[name]);
      attrs.Set(name, std::move(bound));
    }
    const OpInfo* op = functions_.FindOp(def.op());
    if (op == nullptr) {
      SLUICE_ASSIGN_OR_RETURN(op, OpRegistry::Global().Lookup(def.op()));
    }
    return AddOutputs(def.name(), op->def, std::move(attrs));
  }

  absl::Status AddOutputs(const std::string& name, const OpDef& op,
                          AttrMap attrs) {
    AddDefaults(op, &attrs);
    std::vector<OutputRange> ranges;
    int first = 0;
    for (const ArgDef& output : op.outputs) {
      SLUICE_ASSIGN_OR_RETURN(const int count, ArgCount(output, attrs));
      ranges.push_back({output.name, first, count});
      first += count;
    }
    if (ranges.empty()) ranges.push_back({"^", 0, 0});
    if (!outputs_.emplace(name, std::move(ranges)).second) {
      return InvalidArgument("two nodes or arguments are called '", name, "'");
    }
    return absl::OkStatus();
  }

  const FunctionLibrary& functions_;
  const pb::FunctionDef& def_;
  const OpDef& signature_;
  const AttrMap& attrs_;
  int num_args_ = 0;
  std::vector<std::string> arg_names_;
  absl::flat_hash_map<std::string, std::vector<OutputRange>> outputs_;
};

absl::Status FindResults(const pb::FunctionDef& def, const OpDef& signature,
                         const AttrMap& attrs, const BodyWriter& writer,
                         FunctionBody* body) {
  for (const ArgDef& result : signature.outputs) {
    auto it = def.ret().find(result.name);
    if (it == def.ret().end()) {
      return InvalidArgument("nothing is returned as '", result.name, "'");
    }
    SLUICE_ASSIGN_OR_RETURN(const int count, ArgCount(result, attrs));
    for (int i = 0; i < count; ++i) {
      SLUICE_ASSIGN_OR_RETURN(
          const std::string name,
          writer.TensorNameOf(result.is_list() ? StrCat(it->second, ":", i)
                                               : it->second));
      SLUICE_ASSIGN_OR_RETURN(const Output output,
                              body->graph->FindOutput(name));
      body->results.push_back(output);
    }
  }
  for (const auto& [name, node_name] : def.control_ret()) {
    Node* node = body->graph->FindNode(node_name);
    if (node == nullptr) {
      return InvalidArgument("it waits for node '", node_name,
                             "', which it does not have");
    }
    body->control_results.push_back(node);
  }
  // A map has no order; graphs shall be the same each time.
  std::ranges::sort(body->control_results, {}, &Node::id);
  return absl::OkStatus();
}

absl::StatusOr<FunctionBody> Instantiate(const FunctionLibrary& functions,
                                         const pb::FunctionDef& def,
                                         const OpDef& signature,
                                         AttrMap attrs) {
  AddDefaults(signature, &attrs);
  BodyWriter writer(functions, def, signature, attrs);
  pb::GraphDef graph;
  SLUICE_RETURN_IF_ERROR(writer.Write(&graph));
  FunctionBody body;
  body.graph = std::make_unique<Graph>();
  body.graph->functions() = functions;
  ImportOptions options;
  options.allow_internal = true;
  options.validate_colocation = false;
  graph.mutable_versions()->set_producer(kGraphDefVersion);
  SLUICE_RETURN_IF_ERROR(ImportGraphDef(graph, options, body.graph.get()));
  for (int i = 0; i < writer.num_args(); ++i) {
    body.args.push_back(body.graph->FindNode(graph.node(i).name()));
  }
  SLUICE_RETURN_IF_ERROR(FindResults(def, signature, attrs, writer, &body));
  return body;
}

}  // namespace

absl::StatusOr<FunctionBody> InstantiateFunction(
    const FunctionLibrary& functions, std::string_view name,
    const AttrMap& attrs) {
  const pb::FunctionDef* def = functions.Find(name);
  if (def == nullptr) return NotFound("Function ", name, " is not defined.");
  absl::StatusOr<FunctionBody> body =
      Instantiate(functions, *def, functions.FindOp(name)->def, attrs);
  if (body.ok()) return body;
  return WithMessage(body.status(),
                     StrCat("Function ", name, ": ", body.status().message()));
}

}  // namespace sluice
