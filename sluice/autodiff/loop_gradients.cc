#include "sluice/autodiff/loop_gradients.h"

#include <algorithm>

#include "sluice/autodiff/zeros.h"

namespace sluice {

namespace {

// A Switch stands in the context around its cond, so those who use it tell.
bool IsCondSwitch(const Node& node) {
  return std::ranges::all_of(node.out_edges(), [](const OutEdge& edge) {
    if (edge.src_output < 0) return true;
    ControlFlowContext* context = edge.dst->control_flow().get();
    if (context != nullptr &&
        (edge.dst->type() == "Enter" || edge.dst->type() == "RefEnter")) {
      context = context->outer().get();
    }
    return dynamic_cast<CondContext*>(context) != nullptr;
  });
}

}  // namespace

bool IsLoopSwitch(const Node& node) {
  return IsSwitch(node) &&
         dynamic_cast<WhileContext*>(node.control_flow().get()) != nullptr &&
         !IsCondSwitch(node);
}

LoopGradient* LoopGradients::Find(const WhileContext* forward) const {
  if (forward == nullptr) return nullptr;
  for (const auto& loop : loops_) {
    if (loop->forward() == forward) return loop.get();
  }
  return nullptr;
}

LoopGradient* LoopGradients::Of(const Node& op) const {
  return Find(LoopOf(op));
}

LoopGradient* LoopGradients::OfOutput(const Node& op) const {
  ControlFlowContext* context = OutputContext(op);
  return context == nullptr ? nullptr : Find(context->loop());
}

absl::Status LoopGradients::AddLoops(
    const std::function<Scope(Node*)>& scope_of, BetweenOps* between) {
  for (size_t i = 0; i < between->nodes().size(); ++i) {
    Node* op = between->nodes()[i];
    if (!IsExit(*op)) continue;
    WhileContext* forward = LoopOf(*op);
    if (forward == nullptr) {
      return InvalidArgument("'", op->name(),
                             "' is of a while loop whose context is not known; "
                             "import it from a meta graph to have its "
                             "gradient");
    }
    if (Find(forward) != nullptr) continue;
    LoopGradient* outer =
        forward->outer() == nullptr ? nullptr : Find(forward->outer()->loop());
    const Scope scope = scope_of(op);
    const std::vector<Output> enters = forward->enters();  // No counters yet.
    SLUICE_ASSIGN_OR_RETURN(
        std::unique_ptr<LoopGradient> loop,
        LoopGradient::Create(
            scope,
            std::static_pointer_cast<WhileContext>(forward->shared_from_this()),
            outer));
    // All variables have a gradient as soon as one has, but only those that
    // matter pass it on to where they began.
    for (const Output& exit : loop->exits()) between->Add(exit.node);
    for (const Output& enter : enters) {
      const auto used = [&](const OutEdge& edge) {
        return between->Contains(edge.dst);
      };
      if (std::ranges::any_of(enter.node->out_edges(), used)) {
        between->Add(enter.node);
      }
    }
    loops_.push_back(std::move(loop));
  }
  return absl::OkStatus();
}

std::vector<Output> LoopGradients::UnusedExits(const std::vector<bool>& queued,
                                               const BetweenOps& between) {
  std::vector<Output> result;
  for (const auto& loop : loops_) {
    for (const Output& exit : loop->exits()) {
      if (between.pending(exit.node) != 0) continue;
      --loop->pending_exits;
      if (!queued[between.index(exit.node)]) {
        loop->unused_exits.push_back(exit);
      }
      if (loop->pending_exits == 0) {
        result.insert(result.end(), loop->unused_exits.begin(),
                      loop->unused_exits.end());
      }
    }
  }
  return result;
}

absl::StatusOr<Output> LoopGradients::ZerosForExit(const Scope& scope,
                                                   Output exit) const {
  const DType type = BaseType(TypeOf(exit));
  const auto& around = exit.node->control_flow()->outer();
  LoopGradient* outer = around == nullptr ? nullptr : Find(around->loop());
  const bool known = ShapeOf(exit).FullyDefined();
  if (outer == nullptr) {
    return known ? ZerosOfKnownShape(scope, ShapeOf(exit), type)
                 : scope.Named("zeros_like").Add("ZerosLike", {exit});
  }
  const Scope inside = InContext(scope, outer->backward());
  if (known) return ZerosOfKnownShape(inside, ShapeOf(exit), type);
  const Scope forward = InContext(scope, around);
  const Output shape = forward.Add("Shape", {exit});
  SLUICE_RETURN_IF_ERROR(forward.status());
  SLUICE_ASSIGN_OR_RETURN(const Output stack,
                          outer->Push(shape, scope.context()));
  SLUICE_ASSIGN_OR_RETURN(const Output past,
                          outer->Pop(stack, shape, inside.context()));
  return Zeros(inside, past, type);
}

absl::StatusOr<Output> LoopGradients::ZerosForOutput(const Scope& scope,
                                                     const Node& op,
                                                     int index) const {
  if (empty()) return sluice::ZerosForOutput(scope, op, index);
  if (IsLoopSwitch(op)) return Output();
  LoopGradient* loop = Of(op);
  if (loop == nullptr) return sluice::ZerosForOutput(scope, op, index);
  return ZerosInLoop(scope, *loop, op, index);
}

absl::StatusOr<Output> LoopGradients::ZerosInLoop(const Scope& scope,
                                                  LoopGradient& loop,
                                                  const Node& op,
                                                  int index) const {
  Output value = op.output(index);
  const DType type = BaseType(TypeOf(value));
  const auto* cond = dynamic_cast<const CondContext*>(op.control_flow().get());
  const bool dead_branch = IsSwitch(op) && cond != nullptr;
  const Scope inside = InContext(scope, loop.backward());
  if (type == DType::kResource) {
    return sluice::ZerosForOutput(inside, op, index);
  }
  if (ShapeOf(value).FullyDefined()) {
    const Output zeros = ConstZeros(inside, ShapeOf(value), type);
    SLUICE_RETURN_IF_ERROR(inside.status());
    if (!dead_branch) return zeros;
    Output pred = loop.KnownPast(cond->pred());
    if (!pred) pred = cond->pred();
    SLUICE_ASSIGN_OR_RETURN(Node * guard,
                            BuildSwitch(inside.context(), zeros, pred));
    return guard->output(1 - cond->branch());
  }
  // Only its shape is remembered.
  Output shape;
  const auto& flow = op.control_flow();
  if (dead_branch) {
    const Scope around = InContext(scope, flow->outer());
    SLUICE_ASSIGN_OR_RETURN(
        Node * guard, BuildSwitch(around.context(), op.input(0), cond->pred()));
    value = guard->output(1 - cond->branch());
    shape = around.Add("Shape", {value});
    SLUICE_RETURN_IF_ERROR(around.status());
    guard->set_control_flow(flow);
    shape.node->set_control_flow(flow);
  } else {
    const Scope there = InContext(scope, flow);
    shape = there.Add("Shape", {value});
    SLUICE_RETURN_IF_ERROR(there.status());
  }
  SLUICE_ASSIGN_OR_RETURN(const Output stack,
                          loop.Push(shape, scope.context(), dead_branch));
  SLUICE_ASSIGN_OR_RETURN(
      const Output past, loop.Pop(stack, shape, inside.context(), dead_branch));
  return Zeros(inside, past, type);
}

absl::Status LoopGradients::CloseOpenMerges(const Scope& scope) {
  for (const auto& loop : loops_) {
    for (const auto& [op, grad] : loop->switch_merges) {
      const Output merge = grad.values;
      const Output first = merge.node->input(0);
      if (merge.node->input(1) != first) continue;
      const Scope inside = InContext(scope, loop->backward());
      Output zeros;
      if (ShapeOf(first).FullyDefined()) {
        zeros = ConstZeros(inside, ShapeOf(first), BaseType(TypeOf(first)));
      } else {
        const Scope outside =
            InContext(scope, loop->backward()->outer() == nullptr
                                 ? scope.context().control_flow
                                 : loop->backward()->outer());
        zeros = Zeros(outside, outside.Add("Shape", {first.node->input(0)}),
                      BaseType(TypeOf(first)));
      }
      SLUICE_RETURN_IF_ERROR(inside.status());
      SLUICE_RETURN_IF_ERROR(AddNextIteration(inside, merge, zeros).status());
    }
  }
  return absl::OkStatus();
}

}  // namespace sluice
