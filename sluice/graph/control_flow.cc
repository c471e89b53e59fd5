#include "sluice/graph/control_flow.h"

#include <algorithm>

#include "sluice/graph/build_context.h"
#include "sluice/graph/while_context.h"

namespace sluice {

ControlFlowContext* OutputContext(const Node& node) {
  ControlFlowContext* context = node.control_flow().get();
  if (context != nullptr && IsExit(node)) return context->outer().get();
  return context;
}

WhileContext* LoopOf(const Node& node) {
  ControlFlowContext* context = node.control_flow().get();
  return context == nullptr ? nullptr : context->loop();
}

namespace {

// Whether `inner` is `outer` or in it; everything is in no loop.
bool IsInLoop(const WhileContext* inner, const WhileContext* outer) {
  while (inner != outer) {
    if (inner == nullptr) return false;
    const auto& around = inner->outer();
    inner = around == nullptr ? nullptr : around->loop();
  }
  return true;
}

// Whether `loop` is the backward loop of `forward`.
bool IsBackwardOf(const WhileContext* loop, const WhileContext* forward) {
  return loop != nullptr && loop->history() != nullptr &&
         loop->history()->forward() == forward;
}

}  // namespace

absl::Status CheckInputContext(const Node& node, const Node& input) {
  ControlFlowContext* from = OutputContext(input);
  if (from == nullptr || from == node.control_flow().get()) {
    return absl::OkStatus();
  }
  const WhileContext* theirs = from->loop();
  const WhileContext* ours = LoopOf(node);
  if (IsInLoop(ours, theirs)) return absl::OkStatus();
  if (ours == nullptr) {
    // These are built first and get their context later.
    if (IsEnter(node) || IsSwitch(node)) return absl::OkStatus();
    return InvalidArgument("Cannot use '", input.name(), "' as input to '",
                           node.name(), "' because '", input.name(),
                           "' is in a while loop. See info log for more "
                           "details.");
  }
  if (ours->history() != nullptr &&
      IsInLoop(ours->history()->forward(), theirs)) {
    return absl::OkStatus();
  }
  if (theirs->outer() != nullptr &&
      IsBackwardOf(ours, theirs->outer()->loop())) {
    return absl::OkStatus();
  }
  if (IsBackwardOf(theirs, ours)) return absl::OkStatus();
  return InvalidArgument("Cannot use '", node.name(), "' as input to '",
                         input.name(),
                         "' because they are in different while loops. See "
                         "info log for more details.");
}

absl::StatusOr<Node*> BuildSwitch(BuildContext context, Output data,
                                  Output pred) {
  context.PushColocation(data.node, /*replace=*/true);
  const bool ref = IsRef(TypeOf(data));
  return BuildNode(
      data.node->graph(), context,
      {ref ? "RefSwitch" : "Switch", "Switch", {data, pred}, {}, {}});
}

std::vector<Node*> ControlFlowContext::TakeOutsideControls(
    std::vector<Node*>* controls) {
  const WhileContext* loop = this->loop();
  if (loop == nullptr) return {};
  const auto is_outside = [&](const Node* control) {
    ControlFlowContext* context = OutputContext(*control);
    return context == nullptr || context->loop() != loop;
  };
  std::vector<Node*> outside;
  std::ranges::copy_if(*controls, std::back_inserter(outside), is_outside);
  std::erase_if(*controls, is_outside);
  return outside;
}

Output ControlFlowContext::Seen(Output value) const {
  const auto it = external_.find(Key(value));
  return it == external_.end() ? value : it->second;
}

absl::Status ControlFlowContext::AddInputs(Node* node,
                                           const BuildContext& context) {
  for (int i = 0; i < node->num_inputs(); ++i) {
    const Output input = node->input(i);
    // The back edge of a loop is of the same context.
    if (!input || (IsMerge(*node) && input.node->type() == "NextIteration")) {
      continue;
    }
    SLUICE_ASSIGN_OR_RETURN(const Output inside, AddValue(input, context));
    if (inside != input) {
      SLUICE_RETURN_IF_ERROR(node->graph().SetInput(node, i, inside));
    }
  }
  return absl::OkStatus();
}

CondContext::CondContext(std::string name, Output pred, Output pivot,
                         int branch, std::shared_ptr<ControlFlowContext> outer)
    : ControlFlowContext(std::move(name), std::move(outer)),
      pred_(pred),
      pivot_(pivot),
      branch_(branch) {
  MarkInside(pred);
  external_[Key(pred)] = pred;
  MarkInside(pivot);
}

std::shared_ptr<CondContext> CondContext::Create(
    std::string name, Output pred, Output pivot, int branch,
    std::shared_ptr<ControlFlowContext> outer) {
  std::shared_ptr<CondContext> context(
      new CondContext(std::move(name), pred, pivot, branch, std::move(outer)));
  pivot.node->set_control_flow(context);
  return context;
}

absl::StatusOr<Output> CondContext::AddResult(Output value,
                                              const BuildContext& context) {
  if (Contains(value)) return Seen(value);
  Output seen = value;
  MarkInside(value);
  if (outer_ != nullptr) {
    SLUICE_ASSIGN_OR_RETURN(seen, outer_->AddValue(value, context));
    MarkInside(seen);
    external_[Key(seen)] = seen;
  }
  SLUICE_ASSIGN_OR_RETURN(Node * node, BuildSwitch(context, seen, pred_));
  const Output inside = node->output(branch_);
  external_[Key(value)] = inside;
  return inside;
}

absl::StatusOr<Output> CondContext::AddValue(Output value,
                                             const BuildContext& context) {
  if (Contains(value)) return Seen(value);
  Output seen = value;
  MarkInside(value);
  if (outer_ != nullptr) {
    SLUICE_ASSIGN_OR_RETURN(seen, outer_->AddValue(value, context));
    MarkInside(seen);
    external_[Key(seen)] = seen;
  }
  BuildContext outside = context;
  outside.ClearControl();
  SLUICE_ASSIGN_OR_RETURN(Node * node, BuildSwitch(outside, seen, pred_));
  node->set_control_flow(shared_from_this());
  const Output inside = node->output(branch_);
  for (ControlFlowContext* c = this; c != nullptr; c = c->outer().get()) {
    c->MarkInside(inside);
  }
  external_[Key(value)] = inside;
  return inside;
}

absl::Status CondContext::AddNode(Node* node, const BuildContext& context) {
  if (node->num_inputs() == 0) {
    bool anchored = false;
    for (Node* control : node->control_inputs()) {
      for (ControlFlowContext* c = control->control_flow().get(); c != nullptr;
           c = c->outer().get()) {
        anchored |= c == this;
      }
    }
    if (!anchored) node->graph().AddControlEdge(pivot_.node, node);
  }
  SLUICE_RETURN_IF_ERROR(AddInputs(node, context));
  for (int i = 0; i < node->num_outputs(); ++i) {
    for (ControlFlowContext* c = this; c != nullptr; c = c->outer().get()) {
      c->MarkInside(node->output(i));
    }
  }
  return absl::OkStatus();
}

}  // namespace sluice
