#include "sluice/autodiff/gradients.h"

#include <algorithm>
#include <deque>

#include "absl/container/flat_hash_set.h"
#include "sluice/autodiff/aggregate.h"
#include "sluice/autodiff/between.h"
#include "sluice/autodiff/control_flow_gradient.h"
#include "sluice/autodiff/gate.h"
#include "sluice/autodiff/python_text.h"
#include "sluice/autodiff/seed.h"
#include "sluice/autodiff/slices.h"
#include "sluice/autodiff/zeros.h"

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
        between_(scope.graph(), ys, xs),
        received_(between_.nodes().size()) {}

  Grads Run(std::span<const Grad> grad_ys);

 private:
  // Per output of an op the gradients that came in. The visit of the op leaves
  // at most one of each. Empty until the first one comes.
  using Received = std::vector<std::vector<Grad>>;

  void Send(Output tensor, const Grad& grad);
  absl::Status Visit(Node* op);
  // The gradients of the outputs as one each; zeros are not yet filled in.
  absl::Status Sum(const Scope& scope, const Node& op, Received* received);
  absl::Status PropagateThrough(const Scope& scope, const Node& op,
                                Received* received);
  Grads CallGradient(Scope& scope, const Node& op, const OpInfo* info,
                     std::span<const Grad> dy);
  absl::Status RefineShapes(const Node& op, std::span<const Grad> dx);
  absl::StatusOr<Grad> Result(Output x);
  Scope ScopeOf(Node* op) const {
    return options_.colocate_with_ops ? scope_.Colocate(op) : scope_;
  }

  const Scope& outer_;
  const Scope scope_;
  const std::span<const Output> ys_;
  const std::span<const Output> xs_;
  const GradientOptions& options_;
  BetweenOps between_;
  std::vector<Received> received_;  // By BetweenOps::index.
  std::vector<bool> stops_;         // By BetweenOps::index.
};

absl::Status CheckLoops(const BetweenOps& between) {
  for (const Node* node : between.nodes()) {
    if (IsLoopOp(node->type())) {
      return Unimplemented("Gradients of while loops are not supported: '",
                           node->name(), "' (op type: ", node->type(), ")");
    }
  }
  return absl::OkStatus();
}

Grads GradientWalk::Run(std::span<const Grad> grad_ys) {
  SLUICE_RETURN_IF_ERROR(CheckLoops(between_));
  // TensorFlow takes this name for a cluster id; later names depend on it.
  scope_.graph().build().UniqueName(StrCat(scope_.context().name_scope, "uid"));
  for (size_t i = 0; i < ys_.size(); ++i) {
    SLUICE_ASSIGN_OR_RETURN(
        Grad seed, SeedGradient(ScopeOf(ys_[i].node), ys_[i],
                                grad_ys.empty() ? Grad() : grad_ys[i], i));
    Send(ys_[i], seed);
  }
  stops_ = between_.StopSet(xs_, options_.stop_gradients);

  std::deque<Node*> queue;
  absl::flat_hash_set<const Node*> queued;
  for (const Output& y : ys_) {
    // A y that another y depends on waits for that one's gradient.
    if (between_.Contains(y.node) && between_.pending(y.node) == 0 &&
        queued.insert(y.node).second) {
      queue.push_back(y.node);
    }
  }
  while (!queue.empty()) {
    Node* op = queue.front();
    queue.pop_front();
    SLUICE_RETURN_IF_ERROR(Visit(op));
    for (const Output& input : op->inputs()) {
      if (between_.FinishEdge(input.node)) queue.push_back(input.node);
    }
  }
  std::vector<Grad> results;
  for (const Output& x : xs_) {
    SLUICE_ASSIGN_OR_RETURN(Grad result, Result(x));
    results.push_back(result);
  }
  return results;
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
  SLUICE_RETURN_IF_ERROR(Sum(scope, *op, &received));
  // An op that was reached has an entry, and so a gradient to pass on.
  if (received.empty() || stops_[index] || op->num_inputs() == 0) {
    return absl::OkStatus();
  }
  return PropagateThrough(scope, *op, &received);
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
      // Kept, because this output may be an x as well.
      parts = {ZerosForOutput(scope, op, i)};
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
    return ControlFlowGradient(scope, op, dy);
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
