#include "sluice/autodiff/control_flow_gradient.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "sluice/autodiff/slices.h"
#include "sluice/graph/control_flow.h"

namespace sluice {

namespace {

bool IsSwitch(std::string_view type) {
  return type == "Switch" || type == "RefSwitch";
}
bool IsMerge(std::string_view type) {
  return type == "Merge" || type == "RefMerge";
}

struct BothSides {
  Grad when_false;
  Grad when_true;
};

std::pair<Output, Output> SwitchTensor(const Scope& scope, Output data,
                                       Output pred) {
  if (!data) return {};
  Node* node = scope.AddNode("Switch", {data, pred});
  if (node == nullptr) return {};
  return {node->output(0), node->output(1)};
}

BothSides SwitchOn(const Scope& scope, const Grad& grad, Output pred,
                   std::string_view name) {
  BothSides sides;
  if (!grad.is_slices()) {
    std::tie(sides.when_false.values, sides.when_true.values) =
        SwitchTensor(scope.Named(name), grad.values, pred);
    return sides;
  }
  const Scope inner = scope.NameScope(name);
  for (Output Grad::*part :
       {&Grad::values, &Grad::indices, &Grad::dense_shape}) {
    std::tie(sides.when_false.*part, sides.when_true.*part) =
        SwitchTensor(inner, grad.*part, pred);
  }
  return sides;
}

// The Switch stands beside its data and nowhere else.
BothSides SwitchBeside(const Scope& scope, const Grad& grad, Output pred,
                       std::string_view name) {
  Scope beside = scope;
  beside.context().PushColocation(grad.values.node, /*replace=*/true);
  return SwitchOn(beside, grad, pred, name);
}

Grad MergeSides(const Scope& scope, std::span<const Grad> sides,
                std::string_view name) {
  if (std::ranges::none_of(sides, &Grad::is_slices)) {
    std::vector<Output> values;
    for (const Grad& side : sides) values.push_back(side.values);
    return Grad(scope.Named(name).Add("Merge", values));
  }
  const Scope inner = scope.NameScope(name);
  std::vector<Grad> slices;
  for (const Grad& side : sides) slices.push_back(AsSlices(inner, side));
  if (!inner.ok()) return Grad();
  slices = WithSameIndexType(inner, slices);
  Grad merged;
  for (Output Grad::*part :
       {&Grad::values, &Grad::indices, &Grad::dense_shape}) {
    std::vector<Output> parts;
    for (const Grad& side : slices) parts.push_back(side.*part);
    const bool complete = std::ranges::all_of(
        parts, [](const Output& p) { return static_cast<bool>(p); });
    if (complete) merged.*part = inner.Add("Merge", parts);
  }
  return merged;
}

Grads SwitchGradient(const Scope& scope, const Node& op,
                     std::span<const Grad> dy) {
  std::vector<Grad> dx(2);
  if (const auto* cond =
          dynamic_cast<const CondContext*>(op.control_flow().get())) {
    const Grad& taken = dy[cond->branch()];
    const Grad& untaken = dy[1 - cond->branch()];
    if (untaken) {
      dx[0] = MergeSides(scope, dy, "cond_grad");
    } else if (BaseType(TypeOf(op.input(0))) == DType::kResource) {
      const Grad both[] = {taken, taken};
      dx[0] = MergeSides(scope, both, "cond_resource_grad");
    }
    return dx;
  }
  if (!dy[0] || !dy[1]) return dx;
  const Output pred = op.input(1);
  const Grad sides[] = {SwitchOn(scope, dy[0], pred, "Switch").when_false,
                        SwitchOn(scope, dy[1], pred, "Switch").when_true};
  SLUICE_RETURN_IF_ERROR(scope.status());
  dx[0] = MergeSides(scope, sides, "Merge");
  return dx;
}

Grads MergeGradient(const Scope& scope, const Node& op,
                    std::span<const Grad> dy) {
  if (!dy[0]) return std::vector<Grad>(op.num_inputs());
  if (const auto* cond = dynamic_cast<const CondContext*>(
          op.input(0).node->control_flow().get());
      cond != nullptr && op.num_inputs() == 2) {
    const BothSides sides =
        SwitchBeside(scope, dy[0], cond->pred(), "cond_grad");
    return std::vector<Grad>{sides.when_false, sides.when_true};
  }
  // Built by hand or imported without its context: ask which input came.
  std::vector<Output> chosen;
  for (int i = 0; i < op.num_inputs(); ++i) {
    const Scope inner = scope.NameScope("Equal");
    const Output number = inner.Named("y").Scalar<int32_t>(i);
    chosen.push_back(inner.Named(inner.context().name_scope)
                         .Add("Equal", {op.output(1), number}));
  }
  std::vector<Grad> dx;
  for (const Output& is_chosen : chosen) {
    dx.push_back(SwitchBeside(scope, dy[0], is_chosen, "Switch").when_true);
  }
  return dx;
}

}  // namespace

bool IsControlFlowGradient(std::string_view op_type) {
  return IsSwitch(op_type) || IsMerge(op_type);
}

bool IsLoopOp(std::string_view op_type) {
  for (std::string_view type :
       {"Enter", "RefEnter", "Exit", "RefExit", "NextIteration",
        "RefNextIteration", "LoopCond"}) {
    if (op_type == type) return true;
  }
  return false;
}

Grads ControlFlowGradient(const Scope& scope, const Node& op,
                          std::span<const Grad> dy) {
  return IsMerge(op.type()) ? MergeGradient(scope, op, dy)
                            : SwitchGradient(scope, op, dy);
}

}  // namespace sluice
