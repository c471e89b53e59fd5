#include "sluice/train/proximal_optimizers.h"

#include "sluice/base/status.h"
#include "sluice/train/arithmetic.h"
#include "sluice/train/variable_ops.h"

namespace sluice {
namespace {

std::string NameOr(const ProximalOptions& options, const char* name) {
  return options.name.empty() ? name : options.name;
}

ProximalParameters Prepared(const Scope& scope, const Hyper& rate,
                            const ProximalOptions& options) {
  ProximalParameters p;
  p.rate = rate.In(scope, "learning_rate");
  p.l1 = options.l1.In(scope, "l1_regularization_strength");
  p.l2 = options.l2.In(scope, "l2_regularization_strength");
  return p;
}

}  // namespace

ProximalGradientDescentOptimizer::ProximalGradientDescentOptimizer(
    Hyper learning_rate, ProximalOptions options)
    : Optimizer(NameOr(options, "ProximalGradientDescent"),
                options.use_locking),
      rate_(learning_rate),
      options_(std::move(options)) {}

void ProximalGradientDescentOptimizer::Prepare(const Scope& scope) {
  parameters_ = Prepared(scope, rate_, options_);
}

Node* ProximalGradientDescentOptimizer::Update(const Scope& scope,
                                               const Variable& var,
                                               const Grad& grad) {
  return ApplyProximalGradientDescent(scope, var, parameters_, grad,
                                      use_locking());
}

ProximalAdagradOptimizer::ProximalAdagradOptimizer(Hyper learning_rate,
                                                   ProximalOptions options)
    : Optimizer(NameOr(options, "ProximalAdagrad"), options.use_locking),
      rate_(learning_rate),
      options_(std::move(options)) {}

void ProximalAdagradOptimizer::CreateSlots(
    const Scope& scope, const std::vector<Variable>& variables) {
  RequirePositive(scope, "initial_accumulator_value",
                  options_.initial_accumulator_value);
  for (const Variable& var : variables) {
    MakeConstantSlot(scope, var, "accumulator",
                     options_.initial_accumulator_value);
  }
}

void ProximalAdagradOptimizer::Prepare(const Scope& scope) {
  parameters_ = Prepared(scope, rate_, options_);
}

Node* ProximalAdagradOptimizer::Update(const Scope& scope, const Variable& var,
                                       const Grad& grad) {
  return ApplyProximalAdagrad(scope, var, slot(var, "accumulator"), parameters_,
                              grad, use_locking());
}

AdagradDAOptimizer::AdagradDAOptimizer(Hyper learning_rate,
                                       Variable global_step,
                                       ProximalOptions options)
    : Optimizer(NameOr(options, "AdagradDA"), options.use_locking),
      rate_(learning_rate),
      global_step_(std::move(global_step)),
      options_(std::move(options)) {}

void AdagradDAOptimizer::CreateSlots(const Scope& scope,
                                     const std::vector<Variable>& variables) {
  RequirePositive(scope, "initial_gradient_squared_accumulator_value",
                  options_.initial_accumulator_value);
  if (!global_step_ || global_step_.dtype() != DType::kInt64) {
    scope.Fail(InvalidArgument(
        "AdagradDA needs a global step of type int64, got ",
        global_step_ ? DTypeName(global_step_.dtype()) : "none"));
  }
  for (const Variable& var : variables) {
    MakeConstantSlot(scope, var, "gradient_accumulator", 0);
    MakeConstantSlot(scope, var, "gradient_squared_accumulator",
                     options_.initial_accumulator_value);
  }
}

void AdagradDAOptimizer::Prepare(const Scope& scope) {
  const Output rate = rate_.In(scope, "learning_rate");
  if (!rate) return;
  // A copy of the step beside the rate, so that variables need not ask the task
  // that holds the step.
  const Scope beside = scope.Colocate(rate.node);
  const Output step = beside.Add("Identity", {ReadValue(beside, global_step_)});
  parameters_ = {rate, options_.l1.given(), options_.l2.given(),
                 Plus(beside, step, 1)};
}

Node* AdagradDAOptimizer::Update(const Scope& scope, const Variable& var,
                                 const Grad& grad) {
  return ApplyAdagradDa(scope, var, slot(var, "gradient_accumulator"),
                        slot(var, "gradient_squared_accumulator"), parameters_,
                        grad, use_locking());
}

}  // namespace sluice
