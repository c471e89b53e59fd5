#include "sluice/autodiff/gate.h"

#include <algorithm>
#include <map>

namespace sluice {

namespace {

Node* GroupOnDevice(const Scope& scope, const std::string& device,
                    const std::vector<Node*>& nodes, std::string_view name) {
  Scope after = scope.Control(nodes).Named(name);
  if (!device.empty()) after = after.Device(device);
  return after.AddNode("NoOp", {});
}

}  // namespace

Node* Group(const Scope& scope, std::span<Node* const> nodes,
            std::string_view name) {
  const Scope inner = scope.NameScope(name);
  const std::string& root = inner.context().name_scope;
  std::map<std::string, std::vector<Node*>> by_device;
  for (Node* node : nodes) by_device[node->device()].push_back(node);
  if (by_device.empty()) return inner.Named(root).AddNode("NoOp", {});
  if (by_device.size() == 1) {
    const auto& [device, group] = *by_device.begin();
    return GroupOnDevice(inner, device, group, root);
  }
  std::vector<Node*> per_device;
  for (const auto& [device, group] : by_device) {
    per_device.push_back(GroupOnDevice(inner, device, group, "NoOp"));
  }
  return GroupOnDevice(inner, "", per_device, root);
}

std::vector<Grad> Tuple(const Scope& scope, std::span<const Grad> grads) {
  const Scope inner = scope.NameScope("tuple");
  std::vector<Node*> nodes;
  for (const Grad& grad : grads) {
    if (grad) nodes.push_back(grad.values.node);
  }
  std::ranges::sort(nodes, {}, &Node::id);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  Node* gate = Group(inner, nodes);
  std::vector<Grad> result(grads.begin(), grads.end());
  if (gate == nullptr) return result;
  const Scope after = inner.Control(std::vector<Node*>{gate});
  for (Grad& grad : result) {
    if (!grad) continue;
    const bool ref = IsRef(TypeOf(grad.values));
    grad.values = after.Colocate(grad.values.node)
                      .Named("control_dependency")
                      .Add(ref ? "RefIdentity" : "Identity", {grad.values});
  }
  return result;
}

}  // namespace sluice
