#include "sluice/train/optimizers.h"

#include <algorithm>

#include "sluice/autodiff/gate.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

Initializer Repeated(const Variable& var, double value) {
  return ConstantInitializer(value, var.shape().AsShape(), var.dtype());
}

// Slots that are not zeros need to know how many elements to fill.
bool HasShape(const Scope& scope, const Variable& var) {
  if (var.shape().FullyDefined()) return true;
  scope.Fail(InvalidArgument("variable ", var.name(), " of shape ",
                             var.shape().DebugString(),
                             " needs a known shape to be optimized"));
  return false;
}

}  // namespace

GradientDescentOptimizer::GradientDescentOptimizer(Hyper learning_rate,
                                                   bool use_locking,
                                                   std::string name)
    : Optimizer(std::move(name), use_locking), rate_(learning_rate) {}

void GradientDescentOptimizer::Prepare(const Scope& scope) {
  rate_tensor_ = rate_.In(scope, "learning_rate");
}

Node* GradientDescentOptimizer::Update(const Scope& scope, const Variable& var,
                                       const Grad& grad) {
  return ApplyGradientDescent(scope, var, rate_tensor_, grad, use_locking());
}

MomentumOptimizer::MomentumOptimizer(Hyper learning_rate, Hyper momentum,
                                     bool use_nesterov, bool use_locking,
                                     std::string name)
    : Optimizer(std::move(name), use_locking),
      rate_(learning_rate),
      momentum_(momentum) {
  parameters_.nesterov = use_nesterov;
}

void MomentumOptimizer::CreateSlots(const Scope& scope,
                                    const std::vector<Variable>& variables) {
  for (const Variable& var : variables) MakeZerosSlot(scope, var, "momentum");
}

void MomentumOptimizer::Prepare(const Scope& scope) {
  parameters_.rate = rate_.In(scope, "learning_rate");
  parameters_.momentum = momentum_.In(scope, "momentum");
}

Node* MomentumOptimizer::Update(const Scope& scope, const Variable& var,
                                const Grad& grad) {
  return ApplyMomentum(scope, var, slot(var, "momentum"), parameters_, grad,
                       use_locking());
}

AdagradOptimizer::AdagradOptimizer(Hyper learning_rate,
                                   double initial_accumulator_value,
                                   bool use_locking, std::string name)
    : Optimizer(std::move(name), use_locking),
      rate_(learning_rate),
      initial_(initial_accumulator_value) {}

void AdagradOptimizer::CreateSlots(const Scope& scope,
                                   const std::vector<Variable>& variables) {
  if (!(initial_ > 0)) {
    scope.Fail(InvalidArgument("initial_accumulator_value must be positive: ",
                               initial_));
  }
  for (const Variable& var : variables) {
    if (!scope.ok() || !HasShape(scope, var)) return;
    MakeSlot(scope, var, "accumulator", name(), Repeated(var, initial_));
  }
}

void AdagradOptimizer::Prepare(const Scope& scope) {
  rate_tensor_ = rate_.In(scope, "learning_rate");
}

Node* AdagradOptimizer::Update(const Scope& scope, const Variable& var,
                               const Grad& grad) {
  return ApplyAdagrad(scope, var, slot(var, "accumulator"), rate_tensor_, grad,
                      use_locking());
}

AdadeltaOptimizer::AdadeltaOptimizer(Hyper learning_rate, Hyper rho,
                                     Hyper epsilon, bool use_locking,
                                     std::string name)
    : Optimizer(std::move(name), use_locking),
      rate_(learning_rate),
      rho_(rho),
      epsilon_(epsilon) {}

void AdadeltaOptimizer::CreateSlots(const Scope& scope,
                                    const std::vector<Variable>& variables) {
  for (const Variable& var : variables) {
    MakeZerosSlot(scope, var, "accum");
    MakeZerosSlot(scope, var, "accum_update");
  }
}

void AdadeltaOptimizer::Prepare(const Scope& scope) {
  parameters_.rate = rate_.In(scope, "lr");
  parameters_.rho = rho_.In(scope, "rho");
  parameters_.epsilon = epsilon_.In(scope, "epsilon");
}

Node* AdadeltaOptimizer::Update(const Scope& scope, const Variable& var,
                                const Grad& grad) {
  return ApplyAdadelta(scope, var, slot(var, "accum"),
                       slot(var, "accum_update"), parameters_, grad,
                       use_locking());
}

AdamOptimizer::AdamOptimizer(Hyper learning_rate)
    : AdamOptimizer(AdamOptions{.learning_rate = learning_rate}) {}

AdamOptimizer::AdamOptimizer(AdamOptions options)
    : Optimizer(options.name, options.use_locking),
      options_(std::move(options)) {}

void AdamOptimizer::CreateSlots(const Scope& scope,
                                const std::vector<Variable>& variables) {
  // The same one on all workers, whatever order they build in.
  const Variable& first = *std::ranges::min_element(
      variables, {}, [](const Variable& v) { return v.name() + ":0"; });
  MakeNonSlot(scope, first, "beta1_power",
              static_cast<float>(options_.beta1.number()));
  MakeNonSlot(scope, first, "beta2_power",
              static_cast<float>(options_.beta2.number()));
  for (const Variable& var : variables) {
    MakeZerosSlot(scope, var, "m");
    MakeZerosSlot(scope, var, "v");
  }
}

void AdamOptimizer::Prepare(const Scope& scope) {
  parameters_ = {non_slot("beta1_power"),
                 non_slot("beta2_power"),
                 options_.learning_rate.In(scope, "learning_rate"),
                 options_.beta1.In(scope, "beta1"),
                 options_.beta2.In(scope, "beta2"),
                 options_.epsilon.In(scope, "epsilon")};
}

Node* AdamOptimizer::Update(const Scope& scope, const Variable& var,
                            const Grad& grad) {
  return ApplyAdam(scope, var, slot(var, "m"), slot(var, "v"), parameters_,
                   grad, use_locking());
}

Node* AdamOptimizer::Finish(const Scope& scope,
                            const std::vector<Node*>& updates,
                            std::string_view name) {
  const Scope after =
      scope.Control(updates).Colocate(parameters_.beta1_power.node());
  std::vector<Node*> all = updates;
  const std::pair<Variable, Output> powers[] = {
      {parameters_.beta1_power, parameters_.beta1},
      {parameters_.beta2_power, parameters_.beta2}};
  for (const auto& [power, beta] : powers) {
    const Output now = power.resource()
                           ? after.Add("ReadVariableOp", {power.ref()},
                                       {{"dtype", power.dtype()}})
                           : power.value();
    const Output next = after.Named("mul").Add("Mul", {now, beta});
    AttrMap attrs;
    if (!power.resource()) attrs.Set("use_locking", use_locking());
    all.push_back(
        after.AddNode(power.resource() ? "AssignVariableOp" : "Assign",
                      {power.ref(), next}, std::move(attrs)));
  }
  return Optimizer::Finish(scope, all, name);
}

RmsPropOptimizer::RmsPropOptimizer(Hyper learning_rate, RmsPropOptions options)
    : Optimizer(options.name, options.use_locking),
      rate_(learning_rate),
      options_(std::move(options)) {}

void RmsPropOptimizer::CreateSlots(const Scope& scope,
                                   const std::vector<Variable>& variables) {
  for (const Variable& var : variables) {
    if (!scope.ok() || !HasShape(scope, var)) return;
    MakeSlot(scope, var, "rms", name(),
             OnesInitializer(var.shape().AsShape(), var.dtype()));
    if (options_.centered) MakeZerosSlot(scope, var, "mg");
    MakeZerosSlot(scope, var, "momentum");
  }
}

void RmsPropOptimizer::Prepare(const Scope& scope) {
  parameters_ = {rate_.In(scope, "learning_rate"),
                 options_.decay.In(scope, "decay"),
                 options_.momentum.In(scope, "momentum"),
                 options_.epsilon.In(scope, "epsilon")};
}

Node* RmsPropOptimizer::Update(const Scope& scope, const Variable& var,
                               const Grad& grad) {
  return ApplyRmsProp(scope, var, slot(var, "rms"), slot(var, "momentum"),
                      slot(var, "mg"), parameters_, grad, use_locking());
}

FtrlOptimizer::FtrlOptimizer(Hyper learning_rate, FtrlOptions options)
    : Optimizer(options.name, options.use_locking),
      rate_(learning_rate),
      options_(std::move(options)) {}

void FtrlOptimizer::CreateSlots(const Scope& scope,
                                const std::vector<Variable>& variables) {
  const std::pair<const char*, double> at_least_zero[] = {
      {"initial_accumulator_value", options_.initial_accumulator_value},
      {"l1_regularization_strength", options_.l1},
      {"l2_regularization_strength", options_.l2},
      {"l2_shrinkage_regularization_strength", options_.l2_shrinkage}};
  for (const auto& [what, value] : at_least_zero) {
    if (value < 0) {
      scope.Fail(
          InvalidArgument(what, " ", value, " needs to be positive or zero"));
    }
  }
  if (options_.learning_rate_power > 0) {
    scope.Fail(InvalidArgument("learning_rate_power ",
                               options_.learning_rate_power,
                               " needs to be negative or zero"));
  }
  for (const Variable& var : variables) {
    if (!scope.ok() || !HasShape(scope, var)) return;
    MakeSlot(scope, var, "accum", name(),
             Repeated(var, options_.initial_accumulator_value));
    MakeZerosSlot(scope, var, "linear");
  }
}

void FtrlOptimizer::Prepare(const Scope& scope) {
  const auto constant = [&](const char* name, double value) {
    return scope.Named(name).Scalar(static_cast<float>(value));
  };
  parameters_.rate = rate_.In(scope, "learning_rate");
  parameters_.l1 = constant("l1_regularization_strength", options_.l1);
  parameters_.l2 = constant("l2_regularization_strength", options_.l2);
  const Output shrinkage =
      constant("l2_shrinkage_regularization_strength", options_.l2_shrinkage);
  parameters_.l2_shrinkage = options_.l2_shrinkage > 0 ? shrinkage : Output();
  parameters_.rate_power =
      constant("learning_rate_power", options_.learning_rate_power);
}

Node* FtrlOptimizer::Update(const Scope& scope, const Variable& var,
                            const Grad& grad) {
  return ApplyFtrl(scope, var, slot(var, "accum"), slot(var, "linear"),
                   parameters_, grad, use_locking());
}

}  // namespace sluice
