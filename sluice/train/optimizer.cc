#include "sluice/train/optimizer.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "sluice/autodiff/gate.h"
#include "sluice/base/status.h"
#include "sluice/client/collections.h"
#include "sluice/train/apply.h"
#include "sluice/train/variable_ops.h"

namespace sluice {
namespace {

bool IsTrainableType(DType dtype) {
  switch (BaseType(dtype)) {
    case DType::kHalf:
    case DType::kBfloat16:
    case DType::kFloat:
    case DType::kDouble:
      return true;
    default:
      return false;
  }
}

absl::Status CheckType(DType dtype, std::string_view what) {
  if (IsTrainableType(dtype)) return absl::OkStatus();
  return InvalidArgument("Invalid type ", DTypeName(BaseType(dtype)), " for ",
                         what, ", expected: half, bfloat16, float or double.");
}

std::string Names(const std::vector<GradAndVar>& pairs) {
  return absl::StrJoin(pairs, ", ", [](std::string* out, const auto& pair) {
    out->append(pair.var ? pair.var.name() : "<none>");
  });
}

bool HasAny(const std::vector<GradAndVar>& pairs) {
  return std::ranges::any_of(pairs, [](const GradAndVar& pair) {
    return static_cast<bool>(pair.grad);
  });
}

}  // namespace

Output Hyper::In(const Scope& scope, std::string_view name) const {
  if (tensor_) return tensor_;
  return scope.Named(name).Scalar(static_cast<float>(number_));
}

Node* Optimizer::Minimize(const Scope& scope, Output loss,
                          const MinimizeOptions& options) {
  const std::vector<GradAndVar> gradients =
      ComputeGradients(scope, loss, options);
  if (!scope.ok()) return nullptr;
  if (!HasAny(gradients)) {
    scope.Fail(InvalidArgument(
        "No gradients provided for any variable, check your graph for ops that "
        "do not support gradients, between variables [",
        Names(gradients), "] and loss ", TensorName(loss), "."));
    return nullptr;
  }
  return ApplyGradients(scope, gradients, options.global_step, options.name);
}

std::vector<GradAndVar> Optimizer::ComputeGradients(
    const Scope& scope, Output loss, const MinimizeOptions& options) {
  if (!scope.ok()) return {};
  const auto fail = [&](absl::Status status) {
    scope.Fail(std::move(status));
    return std::vector<GradAndVar>();
  };
  if (!loss) return fail(InvalidArgument("There is no loss to minimize."));
  if (absl::Status s = CheckType(TypeOf(loss), TensorName(loss)); !s.ok()) {
    return fail(std::move(s));
  }
  const std::vector<Variable> variables =
      options.variables.empty() ? TrainableVariables(scope.graph())
                                : options.variables;
  if (variables.empty())
    return fail(InvalidArgument("No variables to optimize."));
  std::vector<Output> xs;
  xs.reserve(variables.size());
  for (const Variable& variable : variables) {
    if (!variable) {
      return fail(InvalidArgument("One of the variables to optimize is none."));
    }
    xs.push_back(variable.ref());
  }
  GradientOptions gradient_options;
  gradient_options.gate = options.gate == Gate::kOp;
  gradient_options.aggregation = options.aggregation;
  gradient_options.colocate_with_ops = options.colocate_gradients_with_ops;
  std::vector<Grad> grad_ys;
  if (options.grad_loss) grad_ys.push_back(options.grad_loss);
  absl::StatusOr<std::vector<Grad>> grads =
      AddGradients(scope, std::vector{loss}, xs, grad_ys, gradient_options);
  if (!grads.ok()) return fail(grads.status());
  if (options.gate == Gate::kGraph) *grads = Tuple(scope, *grads);
  std::vector<GradAndVar> result;
  for (size_t i = 0; i < variables.size(); ++i) {
    result.push_back({(*grads)[i], variables[i]});
    if (!(*grads)[i]) continue;
    if (absl::Status s = CheckType(variables[i].dtype(), variables[i].name());
        !s.ok()) {
      return fail(std::move(s));
    }
  }
  return result;
}

Node* Optimizer::ApplyGradients(const Scope& outer,
                                const std::vector<GradAndVar>& gradients,
                                const Variable& global_step,
                                std::string_view name) {
  if (!outer.ok()) return nullptr;
  if (gradients.empty()) {
    outer.Fail(InvalidArgument("No variables provided."));
    return nullptr;
  }
  if (!HasAny(gradients)) {
    outer.Fail(InvalidArgument("No gradients provided for any variable: [",
                               Names(gradients), "]."));
    return nullptr;
  }
  std::vector<Variable> variables;
  for (const GradAndVar& pair : gradients) {
    if (pair.grad && !pair.var) {
      outer.Fail(InvalidArgument("There is a gradient without a variable: ",
                                 TensorName(pair.grad.values)));
      return nullptr;
    }
    if (pair.grad) variables.push_back(pair.var);
  }
  CreateSlots(outer.NoControl(), variables);

  const Scope scope = outer.NameScope(name.empty() ? name_ : name);
  Prepare(scope);
  std::vector<Node*> updates;
  for (const GradAndVar& pair : gradients) {
    if (!pair.grad || !scope.ok()) continue;
    const Scope beside = scope.NameScope(StrCat("update_", pair.var.name()))
                             .Colocate(pair.var.node());
    const bool sum = pair.grad.is_slices() && !TakesRepeatedRows();
    const Grad grad = sum ? SumRepeatedRows(beside, pair.grad) : pair.grad;
    if (grad) updates.push_back(Update(beside, pair.var, grad));
  }
  if (!scope.ok()) return nullptr;
  const std::string own_name = scope.context().name_scope;
  Node* train = nullptr;
  if (!global_step) {
    train = Finish(scope, updates, own_name);
  } else {
    Node* updated = Finish(scope, updates, "update");
    train = CountStep(
        scope.Control(std::vector<Node*>{updated}).Colocate(global_step.node()),
        global_step, own_name);
  }
  if (train == nullptr) return nullptr;
  Collections& collections = Collections::Of(outer.graph());
  const std::vector<Node*> known = collections.nodes(keys::kTrainOp);
  if (std::ranges::find(known, train) == known.end()) {
    collections.Add(keys::kTrainOp, train);
  }
  return train;
}

Node* Optimizer::CountStep(const Scope& scope, const Variable& global_step,
                           std::string_view name) const {
  // The constant waits for the updates, and the count for the constant.
  const Output one = scope.Named(global_step.resource() ? "Const" : "value")
                         .Const(ScalarOfType(global_step.dtype(), 1));
  return scope.Named(name).AddNode(
      global_step.resource() ? "AssignAddVariableOp" : "AssignAdd",
      {global_step.ref(), one});
}

void Optimizer::CreateSlots(const Scope&, const std::vector<Variable>&) {}

Node* Optimizer::Finish(const Scope& scope, const std::vector<Node*>& updates,
                        std::string_view name) {
  return scope.ok() ? Group(scope, updates, name) : nullptr;
}

Variable Optimizer::slot(const Variable& var, std::string_view slot) const {
  const auto of_name = slots_.find(slot);
  if (of_name == slots_.end()) return Variable();
  const auto it = of_name->second.find(var.node());
  return it == of_name->second.end() ? Variable() : it->second;
}

std::vector<std::string> Optimizer::slot_names() const {
  std::vector<std::string> names;
  names.reserve(slots_.size());
  for (const auto& [name, slots] : slots_) names.push_back(name);
  return names;
}

std::vector<Variable> Optimizer::variables() const {
  std::vector<Variable> all;
  for (const auto& [name, variable] : non_slots_) all.push_back(variable);
  for (const auto& [name, slots] : slots_) {
    for (const auto& [node, variable] : slots) all.push_back(variable);
  }
  std::ranges::sort(all, {}, &Variable::name);
  return all;
}

void Optimizer::MakeSlot(const Scope& scope, const Variable& var,
                         std::string_view slot, std::string_view op_name,
                         const Initializer& initial) {
  Variable& made = slots_[std::string(slot)][var.node()];
  if (made) return;
  // Named after the variable wherever it is made.
  const std::string name = StrCat(var.name(), "/", op_name);
  const std::string unique =
      scope.graph().build().UniqueName(name, /*mark_as_used=*/false);
  made = Variable(scope.NameScope("").Colocate(var.node()).Named(name), initial,
                  {.trainable = false,
                   .resource = var.resource(),
                   .slice = SliceOfSlot(var, unique)});
}

void Optimizer::MakeZerosSlot(const Scope& scope, const Variable& var,
                              std::string_view slot) {
  if (!var.shape().FullyDefined()) return FailForShape(scope, var);
  MakeSlot(scope, var, slot, name_,
           ZerosInitializer(var.shape().AsShape(), var.dtype()));
}

void Optimizer::MakeOnesSlot(const Scope& scope, const Variable& var,
                             std::string_view slot) {
  if (!var.shape().FullyDefined()) return FailForShape(scope, var);
  MakeSlot(scope, var, slot, name_,
           OnesInitializer(var.shape().AsShape(), var.dtype()));
}

void Optimizer::MakeConstantSlot(const Scope& scope, const Variable& var,
                                 std::string_view slot, double value) {
  if (!var.shape().FullyDefined()) return FailForShape(scope, var);
  MakeSlot(scope, var, slot, name_,
           ConstantInitializer(value, var.shape().AsShape(), var.dtype()));
}

void Optimizer::FailForShape(const Scope& scope, const Variable& var) const {
  scope.Fail(InvalidArgument(
      "variable ", var.name(), " of shape ", var.shape().DebugString(),
      " needs a known shape to be optimized by ", name_));
}

void Optimizer::MakeNonSlot(const Scope& scope, const Variable& beside,
                            std::string_view name, float initial) {
  Variable& made = non_slots_[std::string(name)];
  if (made) return;
  made = Variable(scope.Colocate(beside.node()).Named(name),
                  Tensor::Scalar(initial),
                  {.trainable = false, .resource = beside.resource()});
}

void Optimizer::RequirePositive(const Scope& scope, std::string_view what,
                                double value) {
  if (value > 0) return;
  scope.Fail(InvalidArgument(what, " must be positive: ", value));
}

void Optimizer::RequireNotNegative(const Scope& scope, std::string_view what,
                                   double value) {
  if (value >= 0) return;
  scope.Fail(
      InvalidArgument(what, " ", value, " needs to be positive or zero"));
}

Variable Optimizer::non_slot(std::string_view name) const {
  const auto it = non_slots_.find(name);
  return it == non_slots_.end() ? Variable() : it->second;
}

}  // namespace sluice
