#include "sluice/graph/build_context.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "sluice/graph/while_context.h"

namespace sluice {

void BuildContext::PushDevice(const DeviceName& spec) {
  devices = std::make_shared<DeviceScope>(
      DeviceScope{DeviceScope::Kind::kSpec, spec, nullptr, devices});
}

void BuildContext::PushDeviceFunction(DeviceFunction function) {
  devices = std::make_shared<DeviceScope>(DeviceScope{
      DeviceScope::Kind::kFunction, {}, std::move(function), devices});
}

void BuildContext::ClearDevices() {
  devices = std::make_shared<DeviceScope>(
      DeviceScope{DeviceScope::Kind::kClear, {}, nullptr, devices});
}

void BuildContext::PushControl(std::vector<Node*> nodes) {
  controls.push_back(
      std::make_shared<ControlScope>(ControlScope{std::move(nodes), {}}));
}

void BuildContext::ClearControl() {
  controls.clear();
  control_flow = nullptr;
}

void BuildContext::PushColocation(Node* node, bool replace) {
  devices = nullptr;
  if (replace) colocation.clear();
  if (node != nullptr) colocation.push_back(node);
}

std::string BuildState::UniqueName(std::string_view full_name,
                                   bool mark_as_used) {
  const std::string base = absl::AsciiStrToLower(ToAbsl(full_name));
  auto it = used_.find(base);
  int i = it == used_.end() ? 0 : it->second;
  if (mark_as_used) used_[base] = i + 1;
  if (i == 0) return std::string(full_name);
  std::string key = base;
  while (used_.contains(key)) key = StrCat(base, "_", i++);
  if (mark_as_used) used_[key] = 1;
  return StrCat(full_name, "_", i - 1);
}

void BuildState::MarkUsed(std::string_view full_name) {
  used_.try_emplace(absl::AsciiStrToLower(ToAbsl(full_name)), 1);
}

bool IsValidScopeName(std::string_view name) {
  return std::ranges::all_of(name, [](char c) {
    return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' ||
           c == '-' || c == '/' || c == '\\';
  });
}

bool IsValidNodeName(std::string_view name) {
  return !name.empty() &&
         (isalnum(static_cast<unsigned char>(name[0])) || name[0] == '.') &&
         IsValidScopeName(name);
}

absl::StatusOr<std::string> EnterNameScope(Graph& graph,
                                           const BuildContext& context,
                                           std::string_view name) {
  if (name.empty()) return std::string();
  if (name.ends_with('/')) return std::string(name);
  const bool valid = context.name_scope.empty() ? IsValidNodeName(name)
                                                : IsValidScopeName(name);
  if (!valid) return InvalidArgument("'", name, "' is not a valid scope name");
  return graph.build().UniqueName(StrCat(context.name_scope, name)) + "/";
}

std::vector<Node*> ControlsFor(const BuildContext& context,
                               std::span<const Output> inputs) {
  std::vector<Node*> result;
  for (const auto& scope : context.controls) {
    const bool dominated = std::ranges::any_of(inputs, [&](const Output& in) {
      return scope->seen.contains(in.node);
    });
    if (dominated) continue;
    for (Node* control : scope->nodes) {
      const bool is_input = std::ranges::any_of(
          inputs, [&](const Output& in) { return in.node == control; });
      if (!is_input && std::ranges::count(result, control) == 0) {
        result.push_back(control);
      }
    }
  }
  return result;
}

namespace {

absl::StatusOr<std::string> NameOf(Graph& graph, const BuildContext& context,
                                   const NewNode& node) {
  const std::string_view name = node.name.empty() ? node.op : node.name;
  if (name.ends_with('/')) return std::string(name.substr(0, name.size() - 1));
  const std::string full = StrCat(context.name_scope, name);
  if (!IsValidNodeName(full)) {
    return InvalidArgument("'", name, "' is not a valid node name");
  }
  return graph.build().UniqueName(full);
}

}  // namespace

absl::Status ApplyDevices(const BuildContext& context, Node* node) {
  for (const DeviceScope* scope = context.devices.get(); scope != nullptr;
       scope = scope->outer.get()) {
    if (scope->kind == DeviceScope::Kind::kClear) break;
    if (scope->kind == DeviceScope::Kind::kFunction) {
      SLUICE_ASSIGN_OR_RETURN(std::string device, scope->function(*node));
      node->set_device(std::move(device));
      continue;
    }
    if (scope->spec.empty()) continue;
    DeviceName merged;
    if (!node->device().empty()) {
      SLUICE_ASSIGN_OR_RETURN(merged, DeviceName::Parse(node->device()));
    }
    merged.FillFrom(scope->spec);
    node->set_device(merged.ToString());
  }
  return absl::OkStatus();
}

namespace {

std::vector<std::string> ColocationGroups(const Node& node) {
  std::vector<std::string> groups;
  if (const AttrList* list = node.attrs().Find<AttrList>("_class")) {
    for (const std::string& group : list->strings) {
      if (group.starts_with("loc:@")) groups.push_back(group);
    }
  }
  if (groups.empty()) groups.push_back(StrCat("loc:@", node.name()));
  return groups;
}

void ApplyColocation(const BuildContext& context, Node* node) {
  if (context.colocation.empty()) return;
  std::vector<std::string> groups;
  bool device_set = false;
  for (const Node* with : context.colocation) {
    for (std::string& group : ColocationGroups(*with)) {
      groups.push_back(std::move(group));
    }
    if (!with->device().empty() && !device_set) {
      node->set_device(with->device());
      device_set = true;
    }
  }
  std::ranges::sort(groups);
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  node->set_attr("_class", std::move(groups));
}

void ApplyAttrs(const BuildContext& context, const std::string& op,
                AttrMap* attrs) {
  for (auto it = context.attrs.rbegin(); it != context.attrs.rend(); ++it) {
    if (!attrs->Contains(it->first)) attrs->Set(it->first, it->second);
  }
  if (context.gradient_overrides != nullptr) {
    auto it = context.gradient_overrides->find(op);
    if (it != context.gradient_overrides->end() &&
        !attrs->Contains("_gradient_op_type")) {
      attrs->Set("_gradient_op_type", it->second);
    }
  }
}

void ApplyContainer(const BuildContext& context, Node* node) {
  if (context.container.empty() || !node->op().def.stateful) return;
  const std::string* container = node->attrs().Find<std::string>("container");
  if (container != nullptr && container->empty()) {
    node->set_attr("container", context.container);
  }
}

// An op that takes a reference runs where the variable is.
void ColocateWithRefs(const OpDef& op, const std::vector<Output>& inputs,
                      BuildContext* context) {
  const bool has_ref = std::ranges::any_of(
      op.inputs, [](const ArgDef& arg) { return arg.is_ref; });
  if (!has_ref) return;
  size_t next = 0;
  for (const ArgDef& arg : op.inputs) {
    const size_t count =
        arg.is_list() ? inputs.size() - (op.inputs.size() - 1) : 1;
    for (size_t i = 0; i < count && next < inputs.size(); ++i, ++next) {
      if (arg.is_ref) context->PushColocation(inputs[next].node);
    }
  }
}

// Makes a new node part of the cond branch or loop body it is built in.
absl::Status EnterControlFlow(const BuildContext& context,
                              const std::shared_ptr<ControlFlowContext>& flow,
                              const std::vector<Node*>& outside, Node* node) {
  node->set_control_flow(flow);
  for (const Output& input : node->inputs()) {
    SLUICE_RETURN_IF_ERROR(CheckInputContext(*node, *input.node));
  }
  if (flow == nullptr) return absl::OkStatus();
  BuildContext below = context;
  // A constant opens no scope of its own in Python.
  if (node->type() != "Const") below.name_scope = node->name() + "/";
  SLUICE_RETURN_IF_ERROR(flow->AddNode(node, below));
  return flow->AddOutsideControls(node, outside, below);
}

}  // namespace

absl::StatusOr<Node*> BuildNode(Graph& graph, const BuildContext& outer,
                                NewNode node) {
  if (graph.build().finalized) {
    return FailedPrecondition("Graph is finalized and cannot be modified.");
  }
  SLUICE_ASSIGN_OR_RETURN(const OpInfo* op, graph.FindOp(node.op));
  BuildContext context = outer;
  ColocateWithRefs(op->def, node.inputs, &context);
  SLUICE_ASSIGN_OR_RETURN(std::string name, NameOf(graph, context, node));
  NodeSpec spec;
  spec.control_inputs = std::move(node.control_inputs);
  for (Node* control : ControlsFor(context, node.inputs)) {
    if (std::ranges::count(spec.control_inputs, control) == 0) {
      spec.control_inputs.push_back(control);
    }
  }
  const auto flow = ContextOfNewNode(context, op->def.name, node.inputs);
  std::vector<Node*> outside;
  if (flow != nullptr) {
    outside = flow->TakeOutsideControls(&spec.control_inputs);
  }
  spec.name = std::move(name);
  spec.op = std::move(node.op);
  spec.inputs = std::move(node.inputs);
  spec.attrs = std::move(node.attrs);
  ApplyAttrs(context, op->def.name, &spec.attrs);
  SLUICE_ASSIGN_OR_RETURN(Node * added, graph.AddNode(std::move(spec)));
  graph.build().MarkUsed(added->name());

  SLUICE_RETURN_IF_ERROR(EnterControlFlow(context, flow, outside, added));
  for (const auto& scope : context.controls) scope->seen.insert(added);
  SLUICE_RETURN_IF_ERROR(ApplyDevices(context, added));
  ApplyColocation(context, added);
  ApplyContainer(context, added);
  return added;
}

}  // namespace sluice
