#include "sluice/autodiff/gradients.h"

#include <algorithm>
#include <deque>

#include "absl/container/flat_hash_set.h"
#include "sluice/autodiff/aggregate.h"
#include "sluice/autodiff/between.h"
#include "sluice/autodiff/control_flow_gradient.h"
#include "sluice/autodiff/gate.h"
#include "sluice/autodiff/loop_gradients.h"
#include "sluice/autodiff/seed.h"
#include "sluice/autodiff/slices.h"
#include "sluice/autodiff/zeros.h"
#include "sluice/graph/python_text.h"

namespace sluice {

namespace {

// One call of AddGradients.
class GradientWalk {
 public:
  GradientWalk(const Scope& scope, std::span<const Output> ys,
               std::span<const Output> xs, const GradientOptions& options)
      : outer_(scope),
        scope_(scope.NameScope(options.name)),
        ys_(ys),
        xs_(xs),
        options_(options),
        between_(scope.graph(), ys, xs) {}

  Grads Run(std::span<const Grad> grad_ys);

 private:
  // Per output of an op the gradients that came in. The visit of the op leaves
  // at most one of each. Empty until the first one comes.
  using Received = std::vector<std::vector<Grad>>;

  absl::Status QueueFirst();
  // Queues the ops that only waited for `op`.
  absl::Status QueueInputs(const Node& op);
  absl::Status QueueExit(LoopGradient& loop, Output exit);
  absl::Status SendZerosToExit(Output exit);
  void Send(Output tensor, const Grad& grad);
  absl::Status CheckStartOfLoop(const Node& op) const;
  absl::Status Visit(Node* op);
  // The gradients of the outputs as one each; zeros are not yet filled in.
  absl::Status Sum(const Scope& scope, const Node& op, Received* received);
  absl::Status PropagateThrough(const Scope& scope, const Node& op,
                                Received* received);
  Grads CallGradient(Scope& scope, const Node& op, const OpInfo* info,
                     std::span<const Grad> dy);
  absl::Status RefineShapes(const Node& op, std::span<const Grad> dx);
  absl::StatusOr<Grad> Result(Output x);
  static Scope InLoop(const Scope& scope, const LoopGradient* loop) {
    return loop == nullptr ? scope : InContext(scope, loop->backward());
  }
  Scope ScopeOf(Node* op) const {
    return options_.colocate_with_ops ? scope_.Colocate(op) : scope_;
  }

  const Scope& outer_;
  const Scope scope_;
  const std::span<const Output> ys_;
  const std::span<const Output> xs_;
  const GradientOptions& options_;
  BetweenOps between_;
  LoopGradients loops_;
  std::deque<Node*> queue_;
  std::vector<Received> received_;  // By BetweenOps::index.
  std::vector<bool> stops_;         // By BetweenOps::index.
};

Grads GradientWalk::Run(std::span<const Grad> grad_ys) {
  // TensorFlow takes this name for a cluster id; later names depend on it.
  scope_.graph().build().UniqueName(StrCat(scope_.context().name_scope, "uid"));
  std::vector<Grad> seeds;
  for (size_t i = 0; i < ys_.size(); ++i) {
    SLUICE_ASSIGN_OR_RETURN(
        Grad seed, SeedGradient(ScopeOf(ys_[i].node), ys_[i],
                                grad_ys.empty() ? Grad() : grad_ys[i], i));
    seeds.push_back(seed);
  }
  SLUICE_RETURN_IF_ERROR(
      loops_.AddLoops([this](Node* op) { return ScopeOf(op); }, &between_));
  between_.CountUses();
  received_.resize(between_.nodes().size());
  for (size_t i = 0; i < ys_.size(); ++i) Send(ys_[i], seeds[i]);
  SLUICE_RETURN_IF_ERROR(QueueFirst());
  stops_ = between_.StopSet(xs_, options_.stop_gradients);
  while (!queue_.empty()) {
    Node* op = queue_.front();
    queue_.pop_front();
    SLUICE_RETURN_IF_ERROR(Visit(op));
    SLUICE_RETURN_IF_ERROR(QueueInputs(*op));
  }
  SLUICE_RETURN_IF_ERROR(loops_.CloseOpenMerges(scope_));
  std::vector<Grad> results;
  for (const Output& x : xs_) {
    SLUICE_ASSIGN_OR_RETURN(Grad result, Result(x));
    results.push_back(result);
  }
  return results;
}

absl::Status GradientWalk::QueueFirst() {
  std::vector<bool> queued(between_.nodes().size());
  for (const Output& y : ys_) {
    // A y that another y depends on waits for that one's gradient.
    if (!between_.Contains(y.node) || between_.pending(y.node) != 0 ||
        queued[between_.index(y.node)]) {
      continue;
    }
    queued[between_.index(y.node)] = true;
    queue_.push_back(y.node);
  }
  for (const Output& exit : loops_.UnusedExits(queued, between_)) {
    if (!IsTrainable(TypeOf(exit))) continue;
    SLUICE_RETURN_IF_ERROR(SendZerosToExit(exit));
    queue_.push_back(exit.node);
  }
  return absl::OkStatus();
}

absl::Status GradientWalk::SendZerosToExit(Output exit) {
  SLUICE_ASSIGN_OR_RETURN(const Output zeros,
                          loops_.ZerosForExit(scope_, exit));
  SLUICE_RETURN_IF_ERROR(scope_.status());
  Send(exit, zeros);
  return absl::OkStatus();
}

absl::Status GradientWalk::QueueInputs(const Node& op) {
  for (const Output& input : op.inputs()) {
    if (!between_.Contains(input.node)) continue;
    const int left = between_.FinishEdge(input.node);
    // The Switch of a loop variable is visited with what leaves the loop, which
    // starts the way back, and again with what comes back.
    if (left != 0 && !(left > 0 && IsLoopSwitch(*input.node))) continue;
    LoopGradient* loop = IsExit(*input.node) ? loops_.Of(*input.node) : nullptr;
    if (loop == nullptr) {
      queue_.push_back(input.node);
    } else {
      SLUICE_RETURN_IF_ERROR(QueueExit(*loop, input));
    }
  }
  return absl::OkStatus();
}

// The way back through a loop starts when all its results have their gradients.
absl::Status GradientWalk::QueueExit(LoopGradient& loop, Output exit) {
  loop.deferred_exits.push_back(exit);
  if (--loop.pending_exits != 0) return absl::OkStatus();
  bool any = false;
  for (const Output& deferred : loop.deferred_exits) {
    if (received_[between_.index(deferred.node)].empty()) {
      loop.unused_exits.push_back(deferred);
    } else {
      any = true;
      queue_.push_back(deferred.node);
    }
  }
  for (const Output& unused : loop.unused_exits) {
    if (any && IsTrainable(TypeOf(unused))) {
      SLUICE_RETURN_IF_ERROR(SendZerosToExit(unused));
    }
    queue_.push_back(unused.node);
  }
  return absl::OkStatus();
}

void GradientWalk::Send(Output tensor, const Grad& grad) {
  if (!between_.Contains(tensor.node)) return;
  Received& received = received_[between_.index(tensor.node)];
  if (received.empty()) received.resize(tensor.node->num_outputs());
  received[tensor.index].push_back(grad);
}

absl::Status GradientWalk::Sum(const Scope& scope, const Node& op,
                               Received* received) {
  for (std::vector<Grad>& parts : *received) {
    if (parts.size() < 2) continue;
    SLUICE_ASSIGN_OR_RETURN(Grad sum,
                            Aggregate(scope, op, parts, options_.aggregation));
    parts = {sum};
  }
  return absl::OkStatus();
}

absl::Status GradientWalk::Visit(Node* op) {
  const int index = between_.index(op);
  Received& received = received_[index];
  const Scope scope = ScopeOf(op);
  SLUICE_RETURN_IF_ERROR(
      Sum(InLoop(scope, loops_.OfOutput(*op)), *op, &received));
  SLUICE_RETURN_IF_ERROR(CheckStartOfLoop(*op));
  // An op that was reached has an entry, and so a gradient to pass on.
  if (received.empty() || stops_[index] || op->num_inputs() == 0) {
    return absl::OkStatus();
  }
  return PropagateThrough(InLoop(scope, loops_.Of(*op)), *op, &received);
}

// In a loop's body there are gradients of what an iteration computes only.
absl::Status GradientWalk::CheckStartOfLoop(const Node& op) const {
  const ControlFlowContext* current = scope_.context().control_flow.get();
  if (!IsSwitch(op) || current == nullptr ||
      op.control_flow().get() != current ||
      dynamic_cast<const WhileContext*>(current) == nullptr) {
    return absl::OkStatus();
  }
  // The x that the variable starts from says most.
  std::deque<const Node*> search = {&op};
  absl::flat_hash_set<const Node*> seen;
  const Node* target = &op;
  while (!search.empty()) {
    const Node* node = search.front();
    search.pop_front();
    if (!seen.insert(node).second) continue;
    if (std::ranges::any_of(xs_,
                            [&](const Output& x) { return x.node == node; })) {
      target = node;
      break;
    }
    for (const Output& input : node->inputs()) search.push_back(input.node);
  }
  return InvalidArgument(
      "Cannot compute gradient inside while loop with respect to op '",
      target->name(),
      "'. We do not support taking the gradient wrt or through the initial "
      "value of a loop variable. Gradients can be computed through loop "
      "invariants or wrt the input parameters to the loop body.");
}

// The registration whose gradient stands for `op`; nullptr if there is none.
const OpInfo* GradientInfo(const Node& op) {
  const std::string* key = op.attrs().Find<std::string>("_gradient_op_type");
  return key == nullptr ? &op.op() : OpRegistry::Global().Find(*key);
}

bool HasGradient(const OpInfo& info) {
  return info.gradient != nullptr || info.slices_gradient != nullptr ||
         IsControlFlowGradient(info.def.name);
}

absl::Status NoGradientError(const Node& op) {
  return NotFound("No gradient defined for operation '", op.name(),
                  "' (op type: ", op.type(), ")");
}

absl::Status GradientWalk::PropagateThrough(const Scope& scope, const Node& op,
                                            Received* received) {
  const OpInfo* info = GradientInfo(op);
  if (info != nullptr && info->not_differentiable) return absl::OkStatus();
  if (options_.not_differentiable && options_.not_differentiable(op)) {
    return absl::OkStatus();
  }
  if (!options_.callback && (info == nullptr || !HasGradient(*info))) {
    return NoGradientError(op);
  }
  std::vector<Grad> dy(op.num_outputs());
  for (int i = 0; i < op.num_outputs(); ++i) {
    std::vector<Grad>& parts = (*received)[i];
    if (parts.empty() && IsTrainable(op.output_type(i))) {
      SLUICE_ASSIGN_OR_RETURN(const Output zeros,
                              loops_.ZerosForOutput(scope, op, i));
      // Kept, because this output may be an x as well.
      if (zeros) parts = {zeros};
    }
    if (!parts.empty()) dy[i] = parts[0];
  }
  Scope inner = scope.NameScope(op.name() + "_grad");
  SLUICE_ASSIGN_OR_RETURN(std::vector<Grad> dx,
                          CallGradient(inner, op, info, dy));
  SLUICE_RETURN_IF_ERROR(scope.status());
  if (static_cast<int>(dx.size()) != op.num_inputs()) {
    return InvalidArgument("Num gradients ", dx.size(), " generated for op ",
                           op.name(), " do not match num inputs ",
                           op.num_inputs());
  }
  if (options_.gate && std::ranges::count_if(dx, [](const Grad& grad) {
                         return static_cast<bool>(grad);
                       }) > 1) {
    inner.context().PushColocation(nullptr, /*replace=*/true);
    dx = Tuple(inner, dx);
    SLUICE_RETURN_IF_ERROR(scope.status());
  }
  SLUICE_RETURN_IF_ERROR(RefineShapes(op, dx));
  for (int i = 0; i < op.num_inputs(); ++i) {
    if (dx[i]) Send(op.input(i), dx[i]);
  }
  return absl::OkStatus();
}

Grads GradientWalk::CallGradient(Scope& scope, const Node& op,
                                 const OpInfo* info, std::span<const Grad> dy) {
  SLUICE_RETURN_IF_ERROR(scope.status());
  if (options_.callback) {
    const With current(scope);
    if (auto result = options_.callback(op, dy, scope)) return *result;
  }
  if (info == nullptr || !HasGradient(*info)) return NoGradientError(op);
  if (IsControlFlowGradient(info->def.name)) {
    return ControlFlowGradient(scope, op, dy, loops_.Of(op));
  }
  const bool any_slices = std::ranges::any_of(dy, &Grad::is_slices);
  if (info->slices_gradient != nullptr &&
      (any_slices || info->gradient == nullptr)) {
    return info->slices_gradient(scope, op, dy);
  }
  std::vector<Output> dense;
  for (const Grad& grad : dy) dense.push_back(Densify(scope, grad));
  SLUICE_RETURN_IF_ERROR(scope.status());
  return info->gradient(scope, op, dense);
}

absl::Status GradientWalk::RefineShapes(const Node& op,
                                        std::span<const Grad> dx) {
  for (int i = 0; i < op.num_inputs(); ++i) {
    const Output input = op.input(i);
    if (!dx[i] || dx[i].is_slices()) continue;
    if (BaseType(TypeOf(input)) == DType::kResource) continue;
    const Output grad = dx[i].values;
    if (!grad.node->RefineOutputShape(grad.index, ShapeOf(input)).ok()) {
      return InvalidArgument(
          "Incompatible shapes between op input and calculated input "
          "gradient.  Forward operation: ",
          op.name(), ".  Input index: ", i,
          ". Original input shape: ", PythonText(ShapeOf(input)),
          ".  Calculated input gradient shape: ", PythonText(ShapeOf(grad)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Grad> GradientWalk::Result(Output x) {
  const Received none;
  const Received& received =
      between_.Contains(x.node) ? received_[between_.index(x.node)] : none;
  if (!received.empty()) {
    const std::vector<Grad>& parts = received[x.index];
    return parts.empty() ? Grad() : parts[0];
  }
  if (!options_.zero_for_unconnected) return Grad();
  const Output zeros = ZerosForUnconnected(outer_, x);
  SLUICE_RETURN_IF_ERROR(outer_.status());
  return Grad(zeros);
}

absl::Status CheckTensors(const Graph& graph, std::span<const Output> tensors,
                          std::string_view what) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i]) return InvalidArgument(what, "[", i, "] is missing");
    if (&tensors[i].node->graph() != &graph) {
      return InvalidArgument("Tensor ", TensorName(tensors[i]), " in ", what,
                             " is not an element of this graph.");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Grad>> AddGradients(const Scope& scope,
                                               std::span<const Output> ys,
                                               std::span<const Output> xs,
                                               std::span<const Grad> grad_ys,
                                               const GradientOptions& options) {
  SLUICE_RETURN_IF_ERROR(scope.status());
  SLUICE_RETURN_IF_ERROR(CheckTensors(scope.graph(), ys, "ys"));
  SLUICE_RETURN_IF_ERROR(CheckTensors(scope.graph(), xs, "xs"));
  SLUICE_RETURN_IF_ERROR(
      CheckTensors(scope.graph(), options.stop_gradients, "stop_gradients"));
  SLUICE_RETURN_IF_ERROR(CheckAggregationMethod(options.aggregation));
  if (!grad_ys.empty() && grad_ys.size() != ys.size()) {
    return InvalidArgument("Passed ", grad_ys.size(), " grad_ys for ",
                           ys.size(), " ys");
  }
  GradientWalk walk(scope, ys, xs, options);
  return walk.Run(grad_ys);
}

}  // namespace sluice
