#include "sluice/graph/control_flow.h"

#include "sluice/graph/build_context.h"

namespace sluice {

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

namespace {

absl::StatusOr<Node*> BuildSwitch(BuildContext context, Output value,
                                  Output pred) {
  // The Switch stands beside its data, whatever the branch is placed on.
  context.PushColocation(value.node, /*replace=*/true);
  const bool ref = IsRef(TypeOf(value));
  return BuildNode(
      value.node->graph(), context,
      {ref ? "RefSwitch" : "Switch", "Switch", {value, pred}, {}, {}});
}

}  // namespace

absl::StatusOr<Output> CondContext::AddResult(Output value,
                                              const BuildContext& context) {
  if (Contains(value)) {
    auto it = external_.find(Key(value));
    return it == external_.end() ? value : it->second;
  }
  Output seen = value;
  MarkInside(value);
  if (outer_ != nullptr) {
    SLUICE_ASSIGN_OR_RETURN(seen, outer_->AddValue(value, context.name_scope));
    MarkInside(seen);
    external_[Key(seen)] = seen;
  }
  SLUICE_ASSIGN_OR_RETURN(Node * node, BuildSwitch(context, seen, pred_));
  const Output inside = node->output(branch_);
  external_[Key(value)] = inside;
  return inside;
}

absl::StatusOr<Output> CondContext::AddValue(Output value,
                                             const std::string& name_scope) {
  if (Contains(value)) {
    auto it = external_.find(Key(value));
    return it == external_.end() ? value : it->second;
  }
  Output seen = value;
  MarkInside(value);
  if (outer_ != nullptr) {
    SLUICE_ASSIGN_OR_RETURN(seen, outer_->AddValue(value, name_scope));
    MarkInside(seen);
    external_[Key(seen)] = seen;
  }
  BuildContext context;
  context.name_scope = name_scope;
  SLUICE_ASSIGN_OR_RETURN(Node * node, BuildSwitch(context, seen, pred_));
  node->set_control_flow(shared_from_this());
  const Output inside = node->output(branch_);
  for (ControlFlowContext* c = this; c != nullptr; c = c->outer().get()) {
    c->MarkInside(inside);
  }
  external_[Key(value)] = inside;
  return inside;
}

absl::Status CondContext::AddNode(Node* node) {
  Graph& graph = node->graph();
  if (node->num_inputs() == 0) {
    bool anchored = false;
    for (Node* control : node->control_inputs()) {
      for (ControlFlowContext* c = control->control_flow().get(); c != nullptr;
           c = c->outer().get()) {
        anchored |= c == this;
      }
    }
    if (!anchored) graph.AddControlEdge(pivot_.node, node);
  }
  const std::string name_scope = node->name() + "/";
  for (int i = 0; i < node->num_inputs(); ++i) {
    const Output input = node->input(i);
    if (!input) continue;
    if (node->type() == "Merge" && input.node->type() == "NextIteration") {
      continue;
    }
    SLUICE_ASSIGN_OR_RETURN(Output inside, AddValue(input, name_scope));
    if (inside != input) {
      SLUICE_RETURN_IF_ERROR(graph.SetInput(node, i, inside));
    }
  }
  for (int i = 0; i < node->num_outputs(); ++i) {
    for (ControlFlowContext* c = this; c != nullptr; c = c->outer().get()) {
      c->MarkInside(node->output(i));
    }
  }
  return absl::OkStatus();
}

}  // namespace sluice
