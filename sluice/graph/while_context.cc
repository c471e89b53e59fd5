#include "sluice/graph/while_context.h"

#include <algorithm>

#include "sluice/graph/build_context.h"

namespace sluice {

std::shared_ptr<WhileContext> WhileContext::Create(
    std::string name, const WhileOptions& options,
    std::shared_ptr<ControlFlowContext> outer) {
  return std::shared_ptr<WhileContext>(
      new WhileContext(std::move(name), options, std::move(outer)));
}

void WhileContext::ResetValues(const std::vector<Output>& values) {
  values_.clear();
  for (const Output& value : values) MarkInside(value);
}

bool IsConstantEnter(const Node& node) {
  return (node.type() == "Enter" || node.type() == "RefEnter") &&
         node.attr<bool>("is_constant");
}

std::shared_ptr<ControlFlowContext> ContextOfNewNode(
    const BuildContext& context, std::string_view op,
    const std::vector<Output>& inputs) {
  auto* loop = dynamic_cast<WhileContext*>(context.control_flow.get());
  if (loop == nullptr || loop->history() == nullptr || inputs.empty() ||
      (op != "Shape" && op != "Size" && op != "Rank")) {
    return context.control_flow;
  }
  const Node& input = *inputs[0].node;
  return LoopOf(input) == loop->history()->forward() ? input.control_flow()
                                                     : context.control_flow;
}

absl::StatusOr<Node*> WhileContext::BuildEnter(Output value,
                                               std::string_view name,
                                               bool is_constant,
                                               const BuildContext& context) {
  BuildContext outside = context;
  outside.ClearControl();
  NewNode enter;
  enter.op = IsRef(TypeOf(value)) ? "RefEnter" : "Enter";
  enter.name = std::string(name);
  enter.inputs = {value};
  enter.attrs.Set("frame_name", name_);
  enter.attrs.Set("is_constant", is_constant);
  enter.attrs.Set("parallel_iterations",
                  static_cast<int64_t>(options_.parallel_iterations));
  return BuildNode(value.node->graph(), outside, std::move(enter));
}

void WhileContext::AdoptEnter(Node* enter, const BuildContext& context) {
  const WhileContext* around = outer_ == nullptr ? nullptr : outer_->loop();
  for (Node* control : ControlsFor(context, enter->inputs())) {
    // Kept if it stands in the context around the loop, or in one around that
    // which is in the same iteration.
    const ControlFlowContext* theirs = OutputContext(*control);
    const ControlFlowContext* ours = outer_.get();
    while (ours != theirs && ours != nullptr && ours != around) {
      ours = ours->outer().get();
    }
    if (ours == theirs) enter->graph().AddControlEdge(control, enter);
  }
  enter->set_control_flow(shared_from_this());
  for (const auto& scope : context.controls) scope->seen.insert(enter);
}

absl::StatusOr<Output> WhileContext::EnterVariable(
    Output value, std::string_view name, const BuildContext& context) {
  SLUICE_ASSIGN_OR_RETURN(
      Node * enter, BuildEnter(value, name, /*is_constant=*/false, context));
  Node* pivot = nullptr;
  for (auto* c = outer_.get(); c != nullptr && pivot == nullptr;
       c = c->outer().get()) {
    pivot = c->control_pivot();
  }
  if (pivot != nullptr && IsConstantEnter(*value.node)) {
    enter->graph().AddControlEdge(pivot, enter);
  }
  AdoptEnter(enter, context);
  enters_.push_back(enter->output(0));
  return enter->output(0);
}

void WhileContext::MarkExit(Output exit) {
  exits_.push_back(exit);
  // All of them, as a branch of a cond may return it to a loop further out.
  for (auto* c = outer_.get(); c != nullptr; c = c->outer().get()) {
    c->MarkInside(exit);
  }
}

absl::StatusOr<Output> WhileContext::AddValue(Output value,
                                              const BuildContext& context) {
  if (Contains(value) || value.node->control_flow().get() == this) {
    return Seen(value);
  }
  MarkInside(value);
  WhileContext* current =
      context.control_flow == nullptr ? nullptr : context.control_flow->loop();
  if (current != nullptr && current->history() != nullptr) {
    ControlFlowContext* from = OutputContext(*value.node);
    if (from != nullptr && from->loop() == current->history()->forward()) {
      SLUICE_ASSIGN_OR_RETURN(const Output past,
                              current->history()->PastValue(value, context));
      external_[Key(value)] = past;
      return past;
    }
  }
  Output seen = value;
  if (outer_ != nullptr) {
    SLUICE_ASSIGN_OR_RETURN(seen, outer_->AddValue(value, context));
  }
  SLUICE_ASSIGN_OR_RETURN(Node * enter,
                          BuildEnter(seen, "", /*is_constant=*/true, context));
  AdoptEnter(enter, context);
  const Output inside = enter->output(0);
  MarkInside(inside);
  external_[Key(value)] = inside;
  return inside;
}

absl::Status WhileContext::AddNode(Node* node, const BuildContext& context) {
  SLUICE_RETURN_IF_ERROR(AddInputs(node, context));
  // What depends on constants of the loop only would run before its iteration
  // begins, and also after the last one.
  const bool is_free =
      node->control_inputs().empty() &&
      std::ranges::all_of(node->inputs(), [](const Output& input) {
        return input && IsConstantEnter(*input.node);
      });
  if (is_free) node->graph().AddControlEdge(control_pivot(), node);
  for (int i = 0; i < node->num_outputs(); ++i) MarkInside(node->output(i));
  return absl::OkStatus();
}

absl::Status WhileContext::AddOutsideControls(
    Node* node, const std::vector<Node*>& controls,
    const BuildContext& context) {
  BuildContext inside = context;
  inside.ClearControl();
  inside.control_flow = shared_from_this();
  for (Node* control : controls) {
    if (control->num_outputs() == 0) continue;
    const Output value = control->output(0);
    SLUICE_ASSIGN_OR_RETURN(
        Node * identity,
        BuildNode(node->graph(), inside, {"Identity", "", {value}, {}, {}}));
    node->graph().AddControlEdge(identity, node);
  }
  return absl::OkStatus();
}

}  // namespace sluice
