#include "sluice/autodiff/control_flow_gradient.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "sluice/autodiff/slices.h"
#include "sluice/graph/control_flow.h"
#include "sluice/graph/python_text.h"

namespace sluice {

namespace {

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

// A part of a gradient and the name of its node, where slices have several.
struct GradPart {
  Output Grad::*part;
  std::string_view name;
};
std::vector<GradPart> PartsOf(const Grad& grad, std::string_view name) {
  std::vector<GradPart> parts = {{&Grad::values, name}};
  if (grad.indices) parts.push_back({&Grad::indices, "indices"});
  if (grad.dense_shape) parts.push_back({&Grad::dense_shape, "dense_shape"});
  return parts;
}

// Visited twice: with what comes from the Exit, and with what comes from the
// body, which is the gradient of the iteration before.
Grads LoopSwitchGradient(const Scope& scope, const Node& op,
                         std::span<const Grad> dy, LoopGradient& loop) {
  std::vector<Grad> dx(2);
  for (const auto& [visited, merge] : loop.switch_merges) {
    if (visited != &op) continue;
    if (!dy[1]) return dx;
    const Grad next = merge.is_slices() ? AsSlices(scope, dy[1])
                                        : Grad(Densify(scope, dy[1]));
    for (const auto& [part, name] : PartsOf(merge, "")) {
      SLUICE_RETURN_IF_ERROR(
          AddNextIteration(scope, merge.*part, next.*part, name).status());
    }
    return dx;
  }
  if (!dy[0]) return dx;
  const Grad both[] = {dy[0], dy[0]};
  dx[0] = MergeSides(scope, both, "b_switch");
  SLUICE_RETURN_IF_ERROR(scope.status());
  loop.switch_merges.emplace_back(&op, dx[0]);
  return dx;
}

Grads ExitGradient(const Scope& scope, const Node& op, std::span<const Grad> dy,
                   LoopGradient& loop) {
  if (!loop.backward()->options().back_prop) return std::vector<Grad>(1);
  if (static_cast<WhileContext&>(*op.control_flow()).is_backward()) {
    return PythonTypeError(
        "Second-order gradient for while loops not supported.");
  }
  Grad dx;
  for (const auto& [part, name] : PartsOf(dy[0], "b_exit")) {
    const Output grad = dy[0].*part;
    SLUICE_ASSIGN_OR_RETURN(
        dx.*part, AddEnter(scope, *loop.backward(), grad, ShapeOf(grad), name));
  }
  return std::vector<Grad>{dx};
}

Grads EnterGradient(const Scope& scope, const Node& op,
                    std::span<const Grad> dy, LoopGradient* loop) {
  if (loop == nullptr || !loop->backward()->options().back_prop) {
    return std::vector<Grad>{dy[0]};
  }
  if (IsConstantEnter(op)) {
    SLUICE_ASSIGN_OR_RETURN(const Grad sum,
                            loop->SumOverIterations(scope, op, dy[0]));
    return std::vector<Grad>{sum};
  }
  Grad dx;
  for (const auto& [part, name] : PartsOf(dy[0], "")) {
    SLUICE_ASSIGN_OR_RETURN(
        dx.*part, AddExit(scope, *loop->backward(), dy[0].*part, name));
  }
  return std::vector<Grad>{dx};
}

Grads SwitchGradient(const Scope& scope, const Node& op,
                     std::span<const Grad> dy, LoopGradient* loop) {
  std::vector<Grad> dx(2);
  if (dynamic_cast<const WhileContext*>(op.control_flow().get()) != nullptr &&
      loop != nullptr) {
    return LoopSwitchGradient(scope, op, dy, *loop);
  }
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
                    std::span<const Grad> dy, LoopGradient* loop) {
  if (!dy[0]) return std::vector<Grad>(op.num_inputs());
  const ControlFlowContext* from = OutputContext(*op.input(0).node);
  if (loop != nullptr && dynamic_cast<const WhileContext*>(from) != nullptr) {
    const BothSides sides =
        SwitchBeside(scope, dy[0], loop->backward()->pivot(), "Switch");
    return std::vector<Grad>{sides.when_false, sides.when_true};
  }
  if (const auto* cond = dynamic_cast<const CondContext*>(from);
      cond != nullptr && op.num_inputs() == 2) {
    Output pred = cond->pred();
    if (loop != nullptr) {
      SLUICE_ASSIGN_OR_RETURN(pred, loop->PastPredicate(pred, scope.context()));
    }
    const BothSides sides = SwitchBeside(scope, dy[0], pred, "cond_grad");
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
  for (std::string_view type :
       {"Switch", "RefSwitch", "Merge", "RefMerge", "Enter", "RefEnter", "Exit",
        "RefExit", "NextIteration", "RefNextIteration"}) {
    if (op_type == type) return true;
  }
  return false;
}

Grads ControlFlowGradient(const Scope& scope, const Node& op,
                          std::span<const Grad> dy, LoopGradient* loop) {
  if (IsMerge(op)) return MergeGradient(scope, op, dy, loop);
  if (IsSwitch(op)) return SwitchGradient(scope, op, dy, loop);
  if (IsExit(op) && loop != nullptr) {
    return ExitGradient(scope, op, dy, *loop);
  }
  if (op.type().ends_with("Enter")) return EnterGradient(scope, op, dy, loop);
  return std::vector<Grad>{dy[0]};
}

}  // namespace sluice
