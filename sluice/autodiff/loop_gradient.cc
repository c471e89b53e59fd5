#include "sluice/autodiff/loop_gradient.h"

#include "sluice/autodiff/zeros.h"
#include "sluice/graph/shape_inference.h"

namespace sluice {

namespace {

std::pair<int, int> KeyOf(Output value) {
  return {value.node->id(), value.index};
}

Scope ScopeWith(Graph& graph, const BuildContext& context) {
  Scope scope = Scope::Detached(graph);
  scope.context() = context;
  return scope;
}

// The constant Enter that `value` is passed on from; nullptr if it is not.
const Node* ConstantEnterOf(Output value) {
  const Node* node = value.node;
  while (node->type() == "Identity" || node->type() == "RefIdentity" ||
         IsSwitch(*node)) {
    node = node->input(0).node;
  }
  return IsConstantEnter(*node) ? node : nullptr;
}

// One plus or minus: an op with its small constant below its name.
Output AddOne(const Scope& scope, Output value) {
  const Scope inner = scope.NameScope("Add");
  const Output one = inner.Named("y").Scalar<int32_t>(1);
  return inner.Named(inner.context().name_scope).Add("Add", {value, one});
}

}  // namespace

Scope InContext(const Scope& scope, std::shared_ptr<ControlFlowContext> flow) {
  Scope other = scope;
  other.context().control_flow = std::move(flow);
  return other;
}

absl::StatusOr<Output> AddEnter(const Scope& scope, WhileContext& loop,
                                Output start, const PartialShape& shape,
                                std::string_view name) {
  loop.MarkInside(start);
  const Output enter = scope.Named(name).Add(
      "Enter", {start},
      {{"frame_name", loop.name()},
       {"is_constant", false},
       {"parallel_iterations",
        static_cast<int64_t>(loop.options().parallel_iterations)}});
  SLUICE_RETURN_IF_ERROR(scope.status());
  SLUICE_RETURN_IF_ERROR(enter.node->RefineOutputShape(0, shape));
  loop.enters().push_back(enter);
  return enter;
}

absl::StatusOr<Node*> AddNextIteration(const Scope& scope, Output merge,
                                       Output next, std::string_view name) {
  Node* back = scope.Named(name).AddNode("NextIteration", {next});
  SLUICE_RETURN_IF_ERROR(scope.status());
  SLUICE_RETURN_IF_ERROR(
      scope.graph().SetInput(merge.node, 1, back->output(0)));
  return back;
}

absl::StatusOr<Output> AddExit(const Scope& scope, WhileContext& loop,
                               Output value, std::string_view name) {
  const Output exit = scope.Named(name).Add("Exit", {value});
  SLUICE_RETURN_IF_ERROR(scope.status());
  loop.MarkExit(exit);
  return exit;
}

LoopGradient::~LoopGradient() {
  if (backward_ != nullptr) backward_->set_history(nullptr);
}

LoopGradient::LoopGradient(std::shared_ptr<ControlFlowContext> around,
                           std::shared_ptr<WhileContext> forward,
                           LoopGradient* outer)
    : pending_exits(static_cast<int>(forward->exits().size())),
      around_(std::move(around)),
      forward_(std::move(forward)),
      outer_(outer),
      exits_(forward_->exits()) {}

absl::StatusOr<std::unique_ptr<LoopGradient>> LoopGradient::Create(
    const Scope& scope, std::shared_ptr<WhileContext> forward,
    LoopGradient* outer) {
  std::unique_ptr<LoopGradient> made(new LoopGradient(
      scope.context().control_flow, std::move(forward), outer));
  const auto& outer_forward = made->forward_->outer();
  const Scope beside =
      outer_forward == nullptr ? scope : InContext(scope, outer_forward);
  made->backward_ = nullptr;
  SLUICE_ASSIGN_OR_RETURN(Output count, made->AddForwardCounter(beside));
  const Scope back_around =
      outer == nullptr ? beside : InContext(scope, outer->backward());
  Output stack;
  if (outer != nullptr) {
    // How often an inner loop ran is remembered for every iteration of the
    // outer one.
    outer_forward->MarkInside(count);
    SLUICE_ASSIGN_OR_RETURN(stack, outer->Push(count, scope.context()));
  }
  made->backward_ = WhileContext::Create(
      scope.graph().build().UniqueName(
          StrCat(scope.context().name_scope, made->forward_->name())),
      made->forward_->options(), back_around.context().control_flow);
  made->backward_->set_history(made.get());
  if (outer != nullptr) {
    SLUICE_ASSIGN_OR_RETURN(count,
                            outer->Pop(stack, count, back_around.context()));
  }
  SLUICE_RETURN_IF_ERROR(made->AddBackwardCounter(back_around, count));
  return made;
}

absl::StatusOr<Output> LoopGradient::AddForwardCounter(const Scope& scope) {
  const Output zero = scope.Named("f_count").Scalar<int32_t>(0);
  SLUICE_RETURN_IF_ERROR(scope.status());
  if (outer_ != nullptr) {
    // The pushes of one run of an inner loop come before those of the next.
    scope.graph().AddControlEdge(outer_->forward_next_->input(0).node,
                                 zero.node);
  }
  const Scope inside = InContext(scope, forward_);
  SLUICE_ASSIGN_OR_RETURN(
      const Output enter,
      AddEnter(inside, *forward_, zero, PartialShape::Scalar(), "f_count"));
  const Output merge = inside.Add("Merge", {enter, enter});
  const std::vector<Output> sides =
      inside.AddMulti("Switch", {merge, forward_->pivot()});
  SLUICE_RETURN_IF_ERROR(inside.status());
  SLUICE_ASSIGN_OR_RETURN(
      forward_next_, AddNextIteration(inside, merge, AddOne(inside, sides[1])));
  return AddExit(inside, *forward_, sides[0], "f_count");
}

absl::Status LoopGradient::AddBackwardCounter(const Scope& scope,
                                              Output count) {
  const Output one = scope.Named("b_count").Scalar<int32_t>(1);
  SLUICE_RETURN_IF_ERROR(scope.status());
  const Scope inside = InContext(scope, backward_);
  SLUICE_ASSIGN_OR_RETURN(
      const Output enter,
      AddEnter(inside, *backward_, count, PartialShape::Scalar(), "b_count"));
  const Output merge = inside.Add("Merge", {enter, enter});
  SLUICE_RETURN_IF_ERROR(inside.status());
  backward_->set_pivot_for_pred(merge);
  const Output more = inside.Add("GreaterEqual", {merge, one});
  backward_->set_pivot(inside.Named("b_count").Add("LoopCond", {more}));
  const std::vector<Output> sides =
      inside.AddMulti("Switch", {merge, backward_->pivot()});
  SLUICE_RETURN_IF_ERROR(inside.status());
  const Output less = inside.Add("Sub", {sides[1], one});
  SLUICE_RETURN_IF_ERROR(inside.status());
  backward_->set_pivot_for_body(less);
  SLUICE_ASSIGN_OR_RETURN(backward_next_,
                          AddNextIteration(inside, merge, less));
  SLUICE_ASSIGN_OR_RETURN(const Output zero,
                          AddExit(inside, *backward_, sides[0], "b_count"));
  if (outer_ != nullptr) {
    SLUICE_ASSIGN_OR_RETURN(Node * sync, outer_->BackwardSync(scope.context()));
    scope.graph().AddControlEdge(zero.node, sync);
  }
  return absl::OkStatus();
}

namespace {

absl::StatusOr<Node*> Sync(Graph& graph, const BuildContext& context,
                           std::string_view name,
                           const std::shared_ptr<WhileContext>& loop,
                           Node* next) {
  BuildContext outside = context;
  outside.ClearControl();
  SLUICE_ASSIGN_OR_RETURN(
      Node * sync,
      BuildNode(graph, outside,
                {"ControlTrigger", std::string(name), {}, {}, {}}));
  sync->set_control_flow(loop);
  graph.AddControlEdge(sync, next);
  return sync;
}

}  // namespace

absl::StatusOr<Node*> LoopGradient::ForwardSync(const BuildContext& context) {
  if (forward_sync_ == nullptr) {
    SLUICE_ASSIGN_OR_RETURN(
        forward_sync_, Sync(forward_next_->graph(), context, "f_sync", forward_,
                            forward_next_));
  }
  return forward_sync_;
}

absl::StatusOr<Node*> LoopGradient::BackwardSync(const BuildContext& context) {
  if (backward_sync_ == nullptr) {
    SLUICE_ASSIGN_OR_RETURN(backward_sync_,
                            Sync(backward_next_->graph(), context, "b_sync",
                                 backward_, backward_next_));
  }
  return backward_sync_;
}

absl::StatusOr<Output> LoopGradient::Push(Output value,
                                          const BuildContext& context,
                                          bool dead_branch) {
  Graph& graph = value.node->graph();
  BuildContext outside = context;
  outside.ClearControl();
  Scope beside = ScopeWith(graph, outside);
  beside.context().control_flow = around_;
  beside.context().PushColocation(value.node);
  const Output size = beside.Scalar<int32_t>(-1);
  const Output stack = beside.Named("f_acc").Add(
      "StackV2", {size}, {{"elem_type", BaseType(TypeOf(value))}});
  SLUICE_RETURN_IF_ERROR(beside.status());
  SLUICE_ASSIGN_OR_RETURN(const Output entered,
                          forward_->AddValue(stack, outside));

  ControlFlowContext* flow = OutputContext(*value.node);
  const bool nested = flow != forward_.get();
  auto* cond = dynamic_cast<CondContext*>(flow);
  if (nested && cond == nullptr) {
    return Internal("'", value.node->name(), "' is not in the loop ",
                    forward_->name(), " or a cond of it");
  }
  Scope inside = ScopeWith(graph, outside);
  inside.context().control_flow =
      nested && dead_branch ? flow->outer() : flow->shared_from_this();
  Node* push =
      inside.AddNode("StackPushV2", {entered, value},
                     {{"swap_memory", forward_->options().swap_memory}});
  SLUICE_RETURN_IF_ERROR(inside.status());
  if (nested) {
    if (dead_branch) push->set_control_flow(flow->shared_from_this());
    SLUICE_ASSIGN_OR_RETURN(Node * sync, ForwardSync(context));
    graph.AddControlEdge(push, sync);
  } else {
    graph.AddControlEdge(push, forward_next_);
  }
  graph.AddControlEdge(forward_next_->input(0).node, push);
  return stack;
}

absl::StatusOr<Output> LoopGradient::Pop(Output stack, Output value,
                                         const BuildContext& context,
                                         bool dead_branch) {
  // A value of a branch was pushed only if the branch was taken.
  const CondContext* cond = nullptr;
  const ControlFlowContext* stack_flow = stack.node->control_flow().get();
  for (const ControlFlowContext* c = value.node->control_flow().get();
       c != nullptr && c != stack_flow && cond == nullptr;
       c = c->outer().get()) {
    cond = dynamic_cast<const CondContext*>(c);
  }
  Scope inside = ScopeWith(value.node->graph(), context);
  inside.context().ClearControl();
  inside.context().control_flow = backward_;
  if (cond != nullptr) {
    Output pred;
    for (const LoopGradient* loop = this; loop != nullptr && !pred;
         loop = loop->outer_) {
      pred = loop->KnownPast(cond->pred());
    }
    if (!pred) pred = cond->pred();
    SLUICE_ASSIGN_OR_RETURN(Node * branch,
                            BuildSwitch(inside.context(), stack, pred));
    stack = branch->output(dead_branch ? 1 - cond->branch() : cond->branch());
  }
  const Output popped = inside.Add("StackPopV2", {stack},
                                   {{"elem_type", BaseType(TypeOf(value))}});
  SLUICE_RETURN_IF_ERROR(inside.status());
  SLUICE_RETURN_IF_ERROR(
      popped.node->RefineOutputShape(popped.index, ShapeOf(value)));
  if (backward_->options().parallel_iterations > 1) {
    SLUICE_ASSIGN_OR_RETURN(Node * sync, BackwardSync(context));
    inside.graph().AddControlEdge(popped.node, sync);
  }
  return popped;
}

Output LoopGradient::KnownPast(Output value) const {
  const auto it = past_.find(KeyOf(value));
  return it == past_.end() ? Output() : it->second;
}

absl::StatusOr<Output> LoopGradient::PastPredicate(
    Output pred, const BuildContext& context) {
  Output& past = past_[KeyOf(pred)];
  if (past) return past;
  SLUICE_ASSIGN_OR_RETURN(const Output stack, Push(pred, context));
  SLUICE_ASSIGN_OR_RETURN(past, Pop(stack, pred, context));
  return past;
}

absl::StatusOr<Output> LoopGradient::PastValue(Output value,
                                               const BuildContext& context) {
  if (const Output known = KnownPast(value)) return known;
  Output past;
  LoopGradient* loop = this;
  Output current = value;
  while (true) {
    const Node* enter = ConstantEnterOf(current);
    if (enter != nullptr) {
      current = enter->input(0);
      loop = loop->outer_;
      if (loop != nullptr) continue;
      // The same in all iterations of all loops: nothing to remember.
      SLUICE_ASSIGN_OR_RETURN(past, backward_->AddValue(current, context));
    } else if (current.node->type() == "Const") {
      const Scope here = ScopeWith(value.node->graph(), context);
      past = here.Const(current.node->attr<Tensor>("value"));
      SLUICE_RETURN_IF_ERROR(here.status());
    } else {
      SLUICE_ASSIGN_OR_RETURN(const Output stack, loop->Push(current, context));
      SLUICE_ASSIGN_OR_RETURN(past, loop->Pop(stack, current, context));
      if (loop != this) {
        SLUICE_ASSIGN_OR_RETURN(past, backward_->AddValue(past, context));
      }
    }
    break;
  }
  past_[KeyOf(value)] = past;
  return past;
}

Scope LoopGradient::Outside(const Scope& scope) const {
  return InContext(
      scope, backward_->outer() == nullptr ? around_ : backward_->outer());
}

absl::StatusOr<Output> LoopGradient::FirstSum(const Scope& scope, Output value,
                                              Output grad) {
  const DType type = BaseType(TypeOf(grad));
  const Scope outside = Outside(scope);
  if (ShapeOf(grad).FullyDefined()) {
    return ConstZeros(outside.Named("b_acc"), ShapeOf(grad), type);
  }
  if (outer_ == nullptr) {
    return Zeros(outside, outside.Add("Shape", {value}), type);
  }
  const Scope forward = InContext(scope, forward_->outer());
  const Output shape = forward.Add("Shape", {value});
  SLUICE_RETURN_IF_ERROR(forward.status());
  SLUICE_ASSIGN_OR_RETURN(const Output stack,
                          outer_->Push(shape, scope.context()));
  SLUICE_ASSIGN_OR_RETURN(const Output past,
                          outer_->Pop(stack, shape, outside.context()));
  return Zeros(outside, past, type);
}

absl::StatusOr<Grad> LoopGradient::SumOverIterations(const Scope& scope,
                                                     const Node& enter,
                                                     const Grad& grad) {
  if (grad.is_slices()) return SumSlices(scope, enter, grad);
  SLUICE_ASSIGN_OR_RETURN(const Output zeros,
                          FirstSum(scope, enter.input(0), grad.values));
  SLUICE_RETURN_IF_ERROR(scope.status());
  const Scope inside = InContext(scope, backward_);
  SLUICE_ASSIGN_OR_RETURN(
      const Output entered,
      AddEnter(inside, *backward_, zeros, ShapeOf(zeros), "b_acc"));
  const Output merge = inside.Named("b_acc").Add("Merge", {entered, entered});
  const std::vector<Output> sides =
      inside.AddMulti("Switch", {merge, backward_->pivot()});
  SLUICE_RETURN_IF_ERROR(inside.status());
  const Output next = inside.Add("Add", {sides[1], grad.values});
  SLUICE_RETURN_IF_ERROR(inside.status());
  SLUICE_RETURN_IF_ERROR(AddNextIteration(inside, merge, next).status());
  SLUICE_ASSIGN_OR_RETURN(const Output total,
                          AddExit(inside, *backward_, sides[0], "b_acc"));
  return Grad(total);
}

namespace {

// The shape of one row of `value`, where it is not known before a run.
Output OneRowShape(const Scope& scope, Output value) {
  const Output shape = scope.Add("Shape", {value});
  const Output rest =
      scope.Add("StridedSlice",
                {shape, scope.Ints({1}), scope.Ints({0}), scope.Ints({1})},
                {{"end_mask", int64_t{1}}});
  return scope.Add("ConcatV2",
                   {scope.Ints({1}), rest, scope.Scalar<int32_t>(0)});
}

Output Concat(const Scope& scope, Output first, Output second) {
  const Scope inner = scope.NameScope("concat");
  const Output axis = inner.Named("axis").Scalar<int32_t>(0);
  return inner.Named(inner.context().name_scope)
      .Add("ConcatV2", {first, second, axis});
}

// A part of a gradient that is summed: what it starts with, its shape in all
// iterations, and what comes in each.
struct SlicesPart {
  Output start;
  PartialShape shape;
  Output grad;
};

// The sum starts as one row of zeros for row 0, so that it has a shape also if
// the loop never runs.
std::vector<SlicesPart> SlicesParts(const Scope& scope, Output value,
                                    const Grad& grad) {
  const DType type = BaseType(TypeOf(grad.values));
  const PartialShape& known = ShapeOf(grad.values);
  SlicesPart values{{}, {}, grad.values};
  if (known.FullyDefined()) {
    std::vector<int64_t> dims(known.dims().begin(), known.dims().end());
    dims[0] = 1;
    values.start = ConstZeros(scope.Named("b_acc"), PartialShape(dims), type);
    dims[0] = -1;
    values.shape = PartialShape(dims);
  } else {
    values.start = Zeros(scope, OneRowShape(scope, value), type);
  }
  const Output zero = scope.Const(TypeOf(grad.indices) == DType::kInt64
                                      ? Tensor::Vector<int64_t>({0})
                                      : Tensor::Vector<int32_t>({0}));
  std::vector<SlicesPart> parts = {{zero, PartialShape({-1}), grad.indices},
                                   values};
  if (!grad.dense_shape) return parts;
  const PartialShape& shape = ShapeOf(grad.dense_shape);
  const DType shape_type = TypeOf(grad.dense_shape);
  const Output start =
      shape.FullyDefined()
          ? ConstZeros(scope, shape, shape_type)
          : scope.Named("zeros_like")
                .Add("ZerosLike",
                     {scope.Add("Shape", {value}, {{"out_type", shape_type}})});
  parts.push_back({start, shape, grad.dense_shape});
  return parts;
}

}  // namespace

absl::StatusOr<Grad> LoopGradient::SumSlices(const Scope& scope,
                                             const Node& enter,
                                             const Grad& grad) {
  const std::vector<SlicesPart> parts =
      SlicesParts(Outside(scope), enter.input(0), grad);
  SLUICE_RETURN_IF_ERROR(scope.status());
  const Scope inside = InContext(scope, backward_);
  std::vector<Output> entered, merges, nexts, totals;
  for (const SlicesPart& part : parts) {
    SLUICE_ASSIGN_OR_RETURN(
        const Output one,
        AddEnter(inside, *backward_, part.start, part.shape, "b_acc"));
    entered.push_back(one);
  }
  for (const Output& one : entered) {
    merges.push_back(inside.Named("b_acc").Add("Merge", {one, one}));
  }
  std::vector<std::vector<Output>> sides;
  for (const Output& merge : merges) {
    sides.push_back(inside.AddMulti("Switch", {merge, backward_->pivot()}));
  }
  SLUICE_RETURN_IF_ERROR(inside.status());
  for (size_t i = 0; i < parts.size(); ++i) {
    // Rows are appended; of the shapes the largest is kept.
    nexts.push_back(i < 2
                        ? Concat(inside, sides[i][1], parts[i].grad)
                        : inside.Add("Maximum", {parts[i].grad, sides[i][1]}));
  }
  SLUICE_RETURN_IF_ERROR(inside.status());
  for (size_t i = 0; i < parts.size(); ++i) {
    SLUICE_RETURN_IF_ERROR(
        AddNextIteration(inside, merges[i], nexts[i]).status());
  }
  for (const std::vector<Output>& side : sides) {
    SLUICE_ASSIGN_OR_RETURN(const Output total,
                            AddExit(inside, *backward_, side[0], "b_acc"));
    totals.push_back(total);
  }
  return Grad::Slices(totals[1], totals[0],
                      totals.size() > 2 ? totals[2] : Output());
}

}  // namespace sluice
