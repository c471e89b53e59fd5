#include "sluice/graph/graph_to_function.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "sluice/base/status.h"
#include "sluice/graph/functions.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/graph.pb.h"
#include "sluice/proto/op_def.pb.h"

namespace sluice {
namespace {

// What an argument or result may be called.
std::string ArgumentName(std::string name) {
  for (char& c : name) {
    const auto u = static_cast<unsigned char>(c);
    c = std::isalnum(u) ? static_cast<char>(std::tolower(u)) : '_';
  }
  const auto letter = std::find_if(name.begin(), name.end(), [](char c) {
    return std::isalpha(static_cast<unsigned char>(c));
  });
  return letter == name.end() ? "unknown" : std::string(letter, name.end());
}

class FunctionWriter {
 public:
  FunctionWriter(const Graph& graph, const FunctionParts& parts,
                 pb::FunctionDef* def)
      : graph_(graph), parts_(parts), def_(*def) {}

  absl::Status Write() {
    def_.Clear();
    def_.mutable_signature()->set_name(parts_.name);
    SLUICE_RETURN_IF_ERROR(AddInputs());
    SLUICE_RETURN_IF_ERROR(NameOutputs());
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      const Node& node = *graph_.node(id);
      if (!inputs_.contains(&node)) names_[&node] = Unique(node.name());
    }
    for (int id = 0; id < graph_.num_nodes(); ++id) {
      const Node& node = *graph_.node(id);
      if (!inputs_.contains(&node)) SLUICE_RETURN_IF_ERROR(AddNode(node));
    }
    for (size_t i = 0; i < parts_.outputs.size(); ++i) {
      (*def_.mutable_ret())[def_.signature().output_arg(i).name()] =
          Reference(parts_.outputs[i]);
    }
    for (const auto& [name, value] : parts_.attrs) {
      AttrToProto(value, &(*def_.mutable_attr())[name]);
    }
    return absl::OkStatus();
  }

 private:
  std::string Unique(const std::string& name) {
    std::string unique = name;
    for (int i = 0; !used_.insert(unique).second; ++i) {
      unique = StrCat(name, "_", i);
    }
    return unique;
  }

  absl::Status AddInputs() {
    for (size_t i = 0; i < parts_.inputs.size(); ++i) {
      const Output input = parts_.inputs[i];
      if (input.node->num_outputs() != 1) {
        return InvalidArgument("Node ", input.node->name(),
                               " has several outputs, so it can be no "
                               "argument of function ",
                               parts_.name);
      }
      auto* arg = def_.mutable_signature()->add_input_arg();
      arg->set_name(Unique(ArgumentName(input.node->name())));
      SetType(TypeOf(input), arg);
      if (!inputs_.emplace(input.node, arg->name()).second) {
        return InvalidArgument(TensorName(input),
                               " is given twice as an "
                               "argument of function ",
                               parts_.name);
      }
      auto& attrs = (*def_.mutable_arg_attr())[static_cast<uint32_t>(i)];
      for (const auto& [name, value] : input.node->attrs()) {
        if (!name.starts_with('_') || name == "_output_shapes") continue;
        AttrToProto(value, &(*attrs.mutable_attr())[name]);
      }
    }
    return absl::OkStatus();
  }

  absl::Status NameOutputs() {
    if (!parts_.output_names.empty() &&
        parts_.output_names.size() != parts_.outputs.size()) {
      return InvalidArgument(
          "Expected number of out_names to be equal to the "
          "number of outputs, but got ",
          parts_.output_names.size(), " and ", parts_.outputs.size());
    }
    for (size_t i = 0; i < parts_.outputs.size(); ++i) {
      auto* arg = def_.mutable_signature()->add_output_arg();
      if (parts_.output_names.empty()) {
        arg->set_name(Unique(ArgumentName(parts_.outputs[i].node->name())));
      } else {
        arg->set_name(parts_.output_names[i]);
        if (!used_.insert(arg->name()).second) {
          return InvalidArgument("Cannot have duplicate output names. Name '",
                                 arg->name(), "' appears more than once.");
        }
      }
      SetType(TypeOf(parts_.outputs[i]), arg);
    }
    return absl::OkStatus();
  }

  static void SetType(DType type, pb::OpDef::ArgDef* arg) {
    arg->set_type(static_cast<pb::DataType>(BaseType(type)));
  }

  absl::Status AddNode(const Node& node) {
    pb::NodeDef* out = def_.add_node_def();
    NodeToDef(node, out);
    out->set_name(names_[&node]);
    out->clear_input();
    for (const Output& input : node.inputs()) {
      if (!input) {
        return InvalidArgument("Node ", node.name(), " lacks an input");
      }
      out->add_input(Reference(input));
    }
    for (const Node* control : node.control_inputs()) {
      auto argument = inputs_.find(control);
      out->add_input(StrCat(
          "^", argument != inputs_.end() ? argument->second : names_[control]));
    }
    RenameColocation(out);
    if (node.op().def.stateful) def_.mutable_signature()->set_is_stateful(true);
    return absl::OkStatus();
  }

  // Groups hold nodes of the body only.
  void RenameColocation(pb::NodeDef* out) const {
    auto it = out->mutable_attr()->find("_class");
    if (it == out->mutable_attr()->end()) return;
    constexpr std::string_view kPrefix = "loc:@";
    pb::AttrValue kept;
    for (const std::string& group : it->second.list().s()) {
      if (!group.starts_with(kPrefix)) {
        kept.mutable_list()->add_s(group);
        continue;
      }
      const Node* with = graph_.FindNode(group.substr(kPrefix.size()));
      auto name = with == nullptr ? names_.end() : names_.find(with);
      if (name == names_.end()) continue;
      kept.mutable_list()->add_s(StrCat(kPrefix, name->second));
    }
    if (kept.list().s().empty()) {
      out->mutable_attr()->erase("_class");
    } else {
      it->second = kept;
    }
  }

  // "a" of an argument, "n:out:0" of a node.
  std::string Reference(Output output) const {
    auto argument = inputs_.find(output.node);
    if (argument != inputs_.end()) return argument->second;
    int left = output.index;
    for (const ArgDef& arg : output.node->op().def.outputs) {
      const absl::StatusOr<int> count = ArgCount(arg, output.node->attrs());
      const int size = count.ok() ? *count : 0;  // The node was checked.
      if (left < size) {
        return StrCat(names_.at(output.node), ":", arg.name, ":", left);
      }
      left -= size;
    }
    return names_.at(output.node);
  }

  const Graph& graph_;
  const FunctionParts& parts_;
  pb::FunctionDef& def_;
  absl::flat_hash_set<std::string> used_;
  absl::flat_hash_map<const Node*, std::string> inputs_;
  absl::flat_hash_map<const Node*, std::string> names_;
};

}  // namespace

absl::Status GraphToFunction(const Graph& graph, const FunctionParts& parts,
                             pb::FunctionDef* def) {
  return FunctionWriter(graph, parts, def).Write();
}

absl::Status AddFunction(const Graph& graph, const FunctionParts& parts,
                         FunctionLibrary* library) {
  pb::FunctionDefLibrary added;
  SLUICE_RETURN_IF_ERROR(GraphToFunction(graph, parts, added.add_function()));
  SLUICE_RETURN_IF_ERROR(library->AddAll(graph.functions()));
  return library->Add(added);
}

}  // namespace sluice
