#include "sluice/train/sign_optimizers.h"

#include <cmath>

namespace sluice {

AddSignOptimizer::AddSignOptimizer(SignOptions options)
    : Optimizer(options.name.empty() ? "AddSignOptimizer" : options.name,
                options.use_locking),
      options_(std::move(options)) {}

void AddSignOptimizer::CreateSlots(const Scope& scope,
                                   const std::vector<Variable>& variables) {
  for (const Variable& var : variables) MakeZerosSlot(scope, var, "m");
}

void AddSignOptimizer::Prepare(const Scope& scope) {
  parameters_.rate = options_.learning_rate.In(scope, "learning_rate");
  parameters_.beta = options_.beta.In(scope, "beta");
  parameters_.alpha = options_.alpha.In(scope, "alpha");
  parameters_.sign_decay = options_.sign_decay.In(scope, "sign_decay");
}

Node* AddSignOptimizer::Update(const Scope& scope, const Variable& var,
                               const Grad& grad) {
  return ApplyAddSign(scope, var, slot(var, "m"), parameters_, grad,
                      use_locking());
}

PowerSignOptimizer::PowerSignOptimizer(SignOptions options)
    : Optimizer(options.name.empty() ? "PowerSignOptimizer" : options.name,
                options.use_locking),
      options_(std::move(options)) {}

void PowerSignOptimizer::CreateSlots(const Scope& scope,
                                     const std::vector<Variable>& variables) {
  for (const Variable& var : variables) MakeZerosSlot(scope, var, "m");
}

void PowerSignOptimizer::Prepare(const Scope& scope) {
  parameters_.rate = options_.learning_rate.In(scope, "learning_rate");
  parameters_.beta = options_.beta.In(scope, "beta");
  parameters_.log_base = Hyper(std::log(options_.base)).In(scope, "logbase");
  parameters_.sign_decay = options_.sign_decay.In(scope, "sign_decay");
}

Node* PowerSignOptimizer::Update(const Scope& scope, const Variable& var,
                                 const Grad& grad) {
  return ApplyPowerSign(scope, var, slot(var, "m"), parameters_, grad,
                        use_locking());
}

}  // namespace sluice
