#include "sluice/train/optimizers.h"

#include "sluice/base/status.h"

namespace sluice {
GradientDescentOptimizer::GradientDescentOptimizer(Hyper learning_rate,
                                                   bool use_locking,
                                                   std::string name)
    : Optimizer(std::move(name), use_locking),
      rate_(learning_rate),
      parameters_{{}, learning_rate.given()} {}

void GradientDescentOptimizer::Prepare(const Scope& scope) {
  parameters_.rate = rate_.In(scope, "learning_rate");
}

Node* GradientDescentOptimizer::Update(const Scope& scope, const Variable& var,
                                       const Grad& grad) {
  return ApplyGradientDescent(scope, var, parameters_, grad, use_locking());
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
  RequirePositive(scope, "initial_accumulator_value", initial_);
  for (const Variable& var : variables) {
    MakeConstantSlot(scope, var, "accumulator", initial_);
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

RmsPropOptimizer::RmsPropOptimizer(Hyper learning_rate, RmsPropOptions options)
    : Optimizer(options.name, options.use_locking),
      rate_(learning_rate),
      options_(std::move(options)) {}

void RmsPropOptimizer::CreateSlots(const Scope& scope,
                                   const std::vector<Variable>& variables) {
  for (const Variable& var : variables) {
    MakeOnesSlot(scope, var, "rms");
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
  RequireNotNegative(scope, "initial_accumulator_value",
                     options_.initial_accumulator_value);
  RequireNotNegative(scope, "l1_regularization_strength", options_.l1);
  RequireNotNegative(scope, "l2_regularization_strength", options_.l2);
  RequireNotNegative(scope, "l2_shrinkage_regularization_strength",
                     options_.l2_shrinkage);
  if (options_.learning_rate_power > 0) {
    scope.Fail(InvalidArgument("learning_rate_power ",
                               options_.learning_rate_power,
                               " needs to be negative or zero"));
  }
  for (const Variable& var : variables) {
    MakeConstantSlot(scope, var, "accum", options_.initial_accumulator_value);
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
