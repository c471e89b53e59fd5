#include "sluice/graph/while_loop.h"

#include "sluice/graph/python_text.h"

namespace sluice {

namespace {

// Whether all that `wide` says of a shape is true of `narrow`.
bool IsNarrower(const PartialShape& narrow, const PartialShape& wide) {
  if (!wide.known_rank()) return true;
  if (!narrow.known_rank() || narrow.rank() != wide.rank()) return false;
  for (int i = 0; i < wide.rank(); ++i) {
    if (wide.dim(i) >= 0 && wide.dim(i) != narrow.dim(i)) return false;
  }
  return true;
}

// One loop under construction.
class WhileBuilder {
 public:
  WhileBuilder(const Scope& scope, const WhileLoop& loop)
      : loop_(loop), inside_(scope) {
    context_ =
        WhileContext::Create(scope.graph().build().UniqueName(StrCat(
                                 scope.context().name_scope, "while_context")),
                             loop.options, scope.context().control_flow);
    inside_.context().control_flow = context_;
  }

  absl::StatusOr<WhileResult> Build() {
    SLUICE_RETURN_IF_ERROR(EnterVariables());
    SLUICE_RETURN_IF_ERROR(BuildCondition());
    SLUICE_RETURN_IF_ERROR(BuildBody());
    WhileResult result{context_, {}};
    for (const Node* branch : switches_) {
      const bool ref = IsRef(branch->output_type(0));
      const Output exit =
          inside_.Add(ref ? "RefExit" : "Exit", {branch->output(0)});
      SLUICE_RETURN_IF_ERROR(inside_.status());
      result.values.push_back(exit);
    }
    for (const Output& exit : result.values) context_->MarkExit(exit);
    return result;
  }

 private:
  absl::Status EnterVariables();
  absl::Status BuildCondition();
  absl::Status BuildBody();
  absl::Status CloseLoop(const Output& merge, const Output& next);

  const WhileLoop& loop_;
  std::shared_ptr<WhileContext> context_;
  Scope inside_;
  std::vector<Output> merges_;
  std::vector<Node*> switches_;
};

absl::Status WhileBuilder::EnterVariables() {
  context_->ResetValues(loop_.variables);
  const auto& outer = context_->outer();
  std::vector<Output> real = loop_.variables;
  if (outer != nullptr) {
    for (Output& value : real) {
      SLUICE_ASSIGN_OR_RETURN(value, outer->AddValue(value, inside_.context()));
    }
  }
  std::vector<Output> enters;
  for (const Output& value : real) {
    SLUICE_ASSIGN_OR_RETURN(
        const Output enter,
        context_->EnterVariable(value, "", inside_.context()));
    enters.push_back(enter);
  }
  for (size_t i = 0; i < enters.size(); ++i) {
    const PartialShape invariant = loop_.shape_invariants.empty()
                                       ? ShapeOf(loop_.variables[i])
                                       : loop_.shape_invariants[i];
    if (!IsNarrower(ShapeOf(real[i]), invariant)) {
      return InvalidArgument(
          "The shape invariant specified for ", TensorName(real[i]),
          " is not compatible with the initial shape of the loop variable. It "
          "enters the loop with shape ",
          PythonText(ShapeOf(real[i])),
          ", but the specified shape invariant is ", PythonText(invariant),
          ".");
    }
    SLUICE_RETURN_IF_ERROR(enters[i].node->RefineOutputShape(0, invariant));
  }
  context_->ResetValues(enters);
  for (const Output& enter : enters) {
    const bool ref = IsRef(TypeOf(enter));
    // The second input comes when the body is there.
    merges_.push_back(inside_.Add(ref ? "RefMerge" : "Merge", {enter, enter}));
    SLUICE_RETURN_IF_ERROR(inside_.status());
  }
  context_->set_pivot_for_pred(merges_[0]);
  return absl::OkStatus();
}

absl::Status WhileBuilder::BuildCondition() {
  const With current(inside_);
  SLUICE_ASSIGN_OR_RETURN(const std::vector<Output> condition,
                          loop_.condition(inside_, merges_));
  if (condition.size() != 1) {
    return InvalidArgument("The condition of a loop gives one value, not ",
                           condition.size());
  }
  context_->set_pivot(inside_.Named("LoopCond").Add("LoopCond", condition));
  SLUICE_RETURN_IF_ERROR(inside_.status());
  for (const Output& merge : merges_) {
    SLUICE_ASSIGN_OR_RETURN(Node * branch, BuildSwitch(inside_.context(), merge,
                                                       context_->pivot()));
    switches_.push_back(branch);
  }
  return absl::OkStatus();
}

absl::Status WhileBuilder::BuildBody() {
  std::vector<Output> variables;
  for (const Node* branch : switches_) {
    const bool ref = IsRef(branch->output_type(1));
    variables.push_back(
        inside_.Add(ref ? "RefIdentity" : "Identity", {branch->output(1)}));
    SLUICE_RETURN_IF_ERROR(inside_.status());
  }
  context_->set_pivot_for_body(variables[0]);
  const With current(inside_);
  SLUICE_ASSIGN_OR_RETURN(const std::vector<Output> next,
                          loop_.body(inside_, variables));
  if (next.size() != merges_.size()) {
    return InvalidArgument("The body of a loop of ", merges_.size(),
                           " variables gave ", next.size(), " values");
  }
  for (size_t i = 0; i < next.size(); ++i) {
    SLUICE_RETURN_IF_ERROR(CloseLoop(merges_[i], next[i]));
  }
  return absl::OkStatus();
}

absl::Status WhileBuilder::CloseLoop(const Output& merge, const Output& next) {
  const bool ref = IsRef(TypeOf(next));
  const Output back =
      inside_.Add(ref ? "RefNextIteration" : "NextIteration", {next});
  SLUICE_RETURN_IF_ERROR(inside_.status());
  if (!IsNarrower(ShapeOf(back), ShapeOf(merge))) {
    const Output start = merge.node->input(0).node->input(0);
    return InvalidArgument(
        "Input tensor '", TensorName(start), "' enters the loop with shape ",
        PythonText(ShapeOf(start)), ", but has shape ",
        PythonText(ShapeOf(back)),
        " after one iteration. To allow the shape to vary across iterations, "
        "use the `shape_invariants` argument of tf.while_loop to specify a "
        "less-specific shape.");
  }
  return inside_.graph().SetInput(merge.node, 1, back);
}

}  // namespace

absl::StatusOr<WhileResult> While(const Scope& scope, const WhileLoop& loop) {
  SLUICE_RETURN_IF_ERROR(scope.status());
  if (loop.variables.empty()) {
    return InvalidArgument("No loop variables provided");
  }
  if (loop.options.parallel_iterations < 1) {
    return InvalidArgument("parallel_iterations must be a positive integer.");
  }
  if (!loop.shape_invariants.empty() &&
      loop.shape_invariants.size() != loop.variables.size()) {
    return InvalidArgument("A loop of ", loop.variables.size(),
                           " variables has ", loop.shape_invariants.size(),
                           " shape invariants");
  }
  return WhileBuilder(scope, loop).Build();
}

}  // namespace sluice
