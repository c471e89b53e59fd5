#include "sluice/train/adam_optimizers.h"

#include <algorithm>

namespace sluice {

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
  if (HasSecondPower()) {
    MakeNonSlot(scope, first, "beta2_power",
                static_cast<float>(options_.beta2.number()));
  }
  for (const Variable& var : variables) {
    MakeZerosSlot(scope, var, "m");
    MakeZerosSlot(scope, var, "v");
  }
}

void AdamOptimizer::Prepare(const Scope& scope) {
  parameters_.beta1_power = non_slot("beta1_power");
  parameters_.beta2_power = non_slot("beta2_power");
  parameters_.rate = options_.learning_rate.In(scope, "learning_rate");
  parameters_.beta1 = options_.beta1.In(scope, "beta1");
  parameters_.beta2 = options_.beta2.In(scope, "beta2");
  parameters_.epsilon = options_.epsilon.In(scope, "epsilon");
}

AdamSlots AdamOptimizer::slots(const Variable& var) const {
  return {slot(var, "m"), slot(var, "v")};
}

Node* AdamOptimizer::Update(const Scope& scope, const Variable& var,
                            const Grad& grad) {
  return ApplyAdam(scope, var, slots(var), parameters_, grad, use_locking());
}

Node* AdamOptimizer::Finish(const Scope& scope,
                            const std::vector<Node*>& updates,
                            std::string_view name) {
  std::vector<Node*> all = updates;
  for (Node* node : AdvancePowers(scope, updates, parameters_, use_locking())) {
    all.push_back(node);
  }
  return Optimizer::Finish(scope, all, name);
}

Node* LazyAdamOptimizer::Update(const Scope& scope, const Variable& var,
                                const Grad& grad) {
  return ApplyLazyAdam(scope, var, slots(var), parameters(), grad,
                       use_locking());
}

Node* NadamOptimizer::Update(const Scope& scope, const Variable& var,
                             const Grad& grad) {
  return ApplyNadam(scope, var, slots(var), parameters(), grad, use_locking());
}

AdaMaxOptimizer::AdaMaxOptimizer(Hyper learning_rate)
    : AdaMaxOptimizer(
          AdamOptions{.learning_rate = learning_rate, .name = "AdaMax"}) {}

Node* AdaMaxOptimizer::Update(const Scope& scope, const Variable& var,
                              const Grad& grad) {
  return ApplyAdaMax(scope, var, slots(var), parameters(), grad, use_locking());
}

}  // namespace sluice
