// Optimizers whose step is larger while the gradient has the sign of its
// running mean. Formulas and names are TensorFlow's.
#pragma once

#include <numbers>

#include "sluice/train/apply.h"
#include "sluice/train/optimizer.h"

namespace sluice {

struct SignOptions {
  Hyper learning_rate = 0.1;
  Hyper alpha = 1.0;              // AddSign's.
  double base = std::numbers::e;  // PowerSign's.
  Hyper beta = 0.9;
  Hyper sign_decay = 1.0;  // May follow the global step.
  bool use_locking = false;
  std::string name = {};  // Empty: the optimizer's own.
};

// var -= rate * (alpha + decay * agreement) * gradient. Slot "m".
class AddSignOptimizer : public Optimizer {
 public:
  explicit AddSignOptimizer(SignOptions options = {});

 protected:
  void CreateSlots(const Scope& scope,
                   const std::vector<Variable>& variables) override;
  void Prepare(const Scope& scope) override;
  Node* Update(const Scope& scope, const Variable& var,
               const Grad& grad) override;

 private:
  const SignOptions options_;
  SignParameters parameters_;
};

// var -= rate * base ^ (decay * agreement) * gradient. Slot "m".
class PowerSignOptimizer : public Optimizer {
 public:
  explicit PowerSignOptimizer(SignOptions options = {});

 protected:
  void CreateSlots(const Scope& scope,
                   const std::vector<Variable>& variables) override;
  void Prepare(const Scope& scope) override;
  Node* Update(const Scope& scope, const Variable& var,
               const Grad& grad) override;

 private:
  const SignOptions options_;
  SignParameters parameters_;
};

}  // namespace sluice
