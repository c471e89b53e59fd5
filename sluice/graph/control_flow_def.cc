#include "sluice/graph/control_flow_def.h"

#include <algorithm>
#include <set>

#include "sluice/graph/while_context.h"

namespace sluice {

namespace {

// The contexts directly inside of `context`, in the order they were built.
std::vector<const ControlFlowContext*> Inside(const ControlFlowContext& context,
                                              const Graph& graph) {
  std::vector<const ControlFlowContext*> inside;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const ControlFlowContext* c = graph.node(id)->control_flow().get();
    while (c != nullptr && c->outer().get() != &context) c = c->outer().get();
    if (c != nullptr && std::ranges::count(inside, c) == 0) {
      inside.push_back(c);
    }
  }
  return inside;
}

void ValuesToProto(const ControlFlowContext& context, pb::ValuesDef* def) {
  std::set<std::string> names;
  for (const auto& [node, index] : context.values()) {
    names.insert(TensorName({node, index}));
  }
  for (const std::string& name : names) def->add_values(name);
  for (const auto& [outside, inside] : context.external_values()) {
    (*def->mutable_external_values())[TensorName(
        {outside.first, outside.second})] = TensorName(inside);
  }
}

void WhileToProto(const WhileContext& loop, pb::WhileContextDef* def) {
  def->set_context_name(loop.name());
  def->set_parallel_iterations(loop.options().parallel_iterations);
  def->set_back_prop(loop.options().back_prop);
  def->set_swap_memory(loop.options().swap_memory);
  if (loop.options().maximum_iterations) {
    def->set_maximum_iterations_name(
        TensorName(loop.options().maximum_iterations));
  }
  def->set_pivot_name(TensorName(loop.pivot()));
  def->set_pivot_for_pred_name(TensorName(loop.pivot_for_pred()));
  def->set_pivot_for_body_name(TensorName(loop.pivot_for_body()));
  for (const Output& exit : loop.exits()) {
    def->add_loop_exit_names(TensorName(exit));
  }
  for (const Output& enter : loop.enters()) {
    def->add_loop_enter_names(TensorName(enter));
  }
  ValuesToProto(loop, def->mutable_values_def());
}

void CondToProto(const CondContext& cond, pb::CondContextDef* def) {
  def->set_context_name(cond.name());
  def->set_pred_name(TensorName(cond.pred()));
  def->set_pivot_name(TensorName(cond.pivot()));
  def->set_branch(cond.branch());
  ValuesToProto(cond, def->mutable_values_def());
}

// Reads contexts, from the outside in.
class ContextReader {
 public:
  ContextReader(const std::string& scope, Graph* graph)
      : prefix_(scope.empty() ? "" : scope + "/"), graph_(graph) {}

  absl::StatusOr<std::shared_ptr<ControlFlowContext>> Read(
      const pb::ControlFlowContextDef& def,
      const std::shared_ptr<ControlFlowContext>& outer);

 private:
  absl::StatusOr<Output> Find(const std::string& name) const {
    return graph_->FindOutput(prefix_ + name);
  }
  absl::StatusOr<std::shared_ptr<ControlFlowContext>> ReadWhile(
      const pb::WhileContextDef& def,
      const std::shared_ptr<ControlFlowContext>& outer);
  absl::StatusOr<std::shared_ptr<ControlFlowContext>> ReadCond(
      const pb::CondContextDef& def,
      const std::shared_ptr<ControlFlowContext>& outer);
  absl::Status ReadValues(const pb::ValuesDef& def,
                          const std::shared_ptr<ControlFlowContext>& context);

  const std::string prefix_;
  Graph* const graph_;
};

absl::Status ContextReader::ReadValues(
    const pb::ValuesDef& def,
    const std::shared_ptr<ControlFlowContext>& context) {
  std::set<std::string> brought_in;
  for (const auto& [outside, inside] : def.external_values()) {
    brought_in.insert(outside);
    // What stands outside may have been left out of the graph.
    const absl::StatusOr<Output> from = Find(outside);
    SLUICE_ASSIGN_OR_RETURN(const Output to, Find(inside));
    if (from.ok()) context->MarkBroughtIn(*from, to);
  }
  for (const std::string& name : def.values()) {
    const absl::StatusOr<Output> value = Find(name);
    if (!value.ok()) {
      if (brought_in.contains(name)) continue;
      return value.status();
    }
    context->MarkInside(*value);
    // Contexts are read from the outside in, so the innermost one stays.
    if (!brought_in.contains(name)) value->node->set_control_flow(context);
  }
  // A branch has Switches of its own for what comes in.
  for (const auto& [outside, inside] : def.external_values()) {
    SLUICE_ASSIGN_OR_RETURN(const Output to, Find(inside));
    if (outside != inside) to.node->set_control_flow(context);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ControlFlowContext>> ContextReader::ReadWhile(
    const pb::WhileContextDef& def,
    const std::shared_ptr<ControlFlowContext>& outer) {
  WhileOptions options;
  options.parallel_iterations = def.parallel_iterations();
  options.back_prop = def.back_prop();
  options.swap_memory = def.swap_memory();
  if (!def.maximum_iterations_name().empty()) {
    SLUICE_ASSIGN_OR_RETURN(options.maximum_iterations,
                            Find(def.maximum_iterations_name()));
  }
  SLUICE_ASSIGN_OR_RETURN(const Output pivot, Find(def.pivot_name()));
  SLUICE_ASSIGN_OR_RETURN(const Output for_pred,
                          Find(def.pivot_for_pred_name()));
  SLUICE_ASSIGN_OR_RETURN(const Output for_body,
                          Find(def.pivot_for_body_name()));
  auto loop =
      WhileContext::Create(prefix_ + def.context_name(), options, outer);
  loop->set_pivot(pivot);
  loop->set_pivot_for_pred(for_pred);
  loop->set_pivot_for_body(for_body);
  SLUICE_RETURN_IF_ERROR(ReadValues(def.values_def(), loop));
  for (const std::string& name : def.loop_enter_names()) {
    SLUICE_ASSIGN_OR_RETURN(const Output enter, Find(name));
    enter.node->set_control_flow(loop);
    loop->enters().push_back(enter);
  }
  for (const std::string& name : def.loop_exit_names()) {
    SLUICE_ASSIGN_OR_RETURN(const Output exit, Find(name));
    exit.node->set_control_flow(loop);
    loop->MarkExit(exit);
  }
  // These have no value that is listed.
  for (Node* node : {pivot.node, for_pred.node, for_body.node}) {
    node->set_control_flow(loop);
  }
  for (const pb::ControlFlowContextDef& nested : def.nested_contexts()) {
    SLUICE_RETURN_IF_ERROR(Read(nested, loop).status());
  }
  return loop;
}

absl::StatusOr<std::shared_ptr<ControlFlowContext>> ContextReader::ReadCond(
    const pb::CondContextDef& def,
    const std::shared_ptr<ControlFlowContext>& outer) {
  SLUICE_ASSIGN_OR_RETURN(const Output pred, Find(def.pred_name()));
  SLUICE_ASSIGN_OR_RETURN(const Output pivot, Find(def.pivot_name()));
  const auto around = pred.node->control_flow();
  std::shared_ptr<ControlFlowContext> cond = CondContext::Create(
      prefix_ + def.context_name(), pred, pivot, def.branch(), outer);
  SLUICE_RETURN_IF_ERROR(ReadValues(def.values_def(), cond));
  // The predicate is known inside but stands around.
  pred.node->set_control_flow(around);
  for (const pb::ControlFlowContextDef& nested : def.nested_contexts()) {
    SLUICE_RETURN_IF_ERROR(Read(nested, cond).status());
  }
  return cond;
}

absl::StatusOr<std::shared_ptr<ControlFlowContext>> ContextReader::Read(
    const pb::ControlFlowContextDef& def,
    const std::shared_ptr<ControlFlowContext>& outer) {
  if (def.has_while_ctxt()) return ReadWhile(def.while_ctxt(), outer);
  if (def.has_cond_ctxt()) return ReadCond(def.cond_ctxt(), outer);
  return InvalidArgument("A ControlFlowContextDef is neither cond nor while");
}

}  // namespace

void ControlFlowToProto(const ControlFlowContext& context,
                        pb::ControlFlowContextDef* def) {
  const Graph* graph = nullptr;
  for (const auto& [node, index] : context.values()) graph = &node->graph();
  const auto nested = graph == nullptr
                          ? std::vector<const ControlFlowContext*>()
                          : Inside(context, *graph);
  if (auto* loop = dynamic_cast<const WhileContext*>(&context)) {
    WhileToProto(*loop, def->mutable_while_ctxt());
    for (const ControlFlowContext* inner : nested) {
      ControlFlowToProto(*inner,
                         def->mutable_while_ctxt()->add_nested_contexts());
    }
  } else if (auto* cond = dynamic_cast<const CondContext*>(&context)) {
    CondToProto(*cond, def->mutable_cond_ctxt());
    for (const ControlFlowContext* inner : nested) {
      ControlFlowToProto(*inner,
                         def->mutable_cond_ctxt()->add_nested_contexts());
    }
  }
}

absl::StatusOr<std::shared_ptr<ControlFlowContext>> ControlFlowFromProto(
    const pb::ControlFlowContextDef& def, const std::string& scope,
    Graph* graph) {
  return ContextReader(scope, graph).Read(def, nullptr);
}

}  // namespace sluice
