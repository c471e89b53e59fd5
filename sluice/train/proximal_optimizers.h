// Optimizers that pull weights to zero by L1 and L2 terms of their own.
// Formulas and names are TensorFlow's.
#pragma once

#include "sluice/train/apply.h"
#include "sluice/train/optimizer.h"

namespace sluice {

struct ProximalOptions {
  double initial_accumulator_value = 0.1;  // Positive; not for descent.
  Hyper l1 = 0.0;
  Hyper l2 = 0.0;
  bool use_locking = false;
  std::string name = {};  // Empty: the optimizer's own.
};

// Gradient descent, then each weight shrinks towards zero. No slots.
class ProximalGradientDescentOptimizer : public Optimizer {
 public:
  explicit ProximalGradientDescentOptimizer(Hyper learning_rate,
                                            ProximalOptions options = {});

 protected:
  void Prepare(const Scope& scope) override;
  Node* Update(const Scope& scope, const Variable& var,
               const Grad& grad) override;

 private:
  const Hyper rate_;
  const ProximalOptions options_;
  ProximalParameters parameters_;
};

// The same with Adagrad's step. Slot "accumulator".
class ProximalAdagradOptimizer : public Optimizer {
 public:
  explicit ProximalAdagradOptimizer(Hyper learning_rate,
                                    ProximalOptions options = {});

 protected:
  void CreateSlots(const Scope& scope,
                   const std::vector<Variable>& variables) override;
  void Prepare(const Scope& scope) override;
  Node* Update(const Scope& scope, const Variable& var,
               const Grad& grad) override;

 private:
  const Hyper rate_;
  const ProximalOptions options_;
  ProximalParameters parameters_;
};

// Adagrad by dual averaging: a weight follows from the sums of its gradients
// and of their squares and from the number of steps, so it is often exactly
// zero. Slots "gradient_accumulator", "gradient_squared_accumulator".
class AdagradDAOptimizer : public Optimizer {
 public:
  // `global_step` is int64 and counted by whoever applies the gradients.
  // `options.initial_accumulator_value` is of the squares.
  AdagradDAOptimizer(Hyper learning_rate, Variable global_step,
                     ProximalOptions options = {});

 protected:
  void CreateSlots(const Scope& scope,
                   const std::vector<Variable>& variables) override;
  void Prepare(const Scope& scope) override;
  Node* Update(const Scope& scope, const Variable& var,
               const Grad& grad) override;

 private:
  const Hyper rate_;
  const Variable global_step_;
  const ProximalOptions options_;
  AdagradDaParameters parameters_ = {{}, 0.0f, 0.0f, {}};
};

}  // namespace sluice
