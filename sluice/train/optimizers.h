// The optimizers. Update formulas and names of slots: docs of each class;
// they are TensorFlow's.
#pragma once

#include "sluice/train/adam_optimizers.h"
#include "sluice/train/apply.h"
#include "sluice/train/optimizer.h"
#include "sluice/train/proximal_optimizers.h"
#include "sluice/train/sign_optimizers.h"

namespace sluice {

// var -= rate * gradient.
class GradientDescentOptimizer : public Optimizer {
 public:
  explicit GradientDescentOptimizer(Hyper learning_rate,
                                    bool use_locking = false,
                                    std::string name = "GradientDescent");

 protected:
  void Prepare(const Scope& scope) override;
  Node* Update(const Scope& scope, const Variable& var,
               const Grad& grad) override;
  bool TakesRepeatedRows() const override { return true; }

 private:
  const Hyper rate_;
  DescentParameters parameters_;
};

// accumulator = momentum * accumulator + gradient; var -= rate * accumulator.
// Slot "momentum". Nesterov looks ahead along the accumulator.
class MomentumOptimizer : public Optimizer {
 public:
  MomentumOptimizer(Hyper learning_rate, Hyper momentum,
                    bool use_nesterov = false, bool use_locking = false,
                    std::string name = "Momentum");

 protected:
  void CreateSlots(const Scope& scope,
                   const std::vector<Variable>& variables) override;
  void Prepare(const Scope& scope) override;
  Node* Update(const Scope& scope, const Variable& var,
               const Grad& grad) override;

 private:
  const Hyper rate_, momentum_;
  MomentumParameters parameters_;
};

// accumulator += gradient²; var -= rate * gradient / sqrt(accumulator).
// Slot "accumulator".
class AdagradOptimizer : public Optimizer {
 public:
  // `initial_accumulator_value` must be positive.
  explicit AdagradOptimizer(Hyper learning_rate,
                            double initial_accumulator_value = 0.1,
                            bool use_locking = false,
                            std::string name = "Adagrad");

 protected:
  void CreateSlots(const Scope& scope,
                   const std::vector<Variable>& variables) override;
  void Prepare(const Scope& scope) override;
  Node* Update(const Scope& scope, const Variable& var,
               const Grad& grad) override;

 private:
  const Hyper rate_;
  const double initial_;
  Output rate_tensor_;
};

// Steps in the ratio of the means of updates and gradients. Slots "accum",
// "accum_update".
class AdadeltaOptimizer : public Optimizer {
 public:
  explicit AdadeltaOptimizer(Hyper learning_rate = 0.001, Hyper rho = 0.95,
                             Hyper epsilon = 1e-8, bool use_locking = false,
                             std::string name = "Adadelta");

 protected:
  void CreateSlots(const Scope& scope,
                   const std::vector<Variable>& variables) override;
  void Prepare(const Scope& scope) override;
  Node* Update(const Scope& scope, const Variable& var,
               const Grad& grad) override;

 private:
  const Hyper rate_, rho_, epsilon_;
  AdadeltaParameters parameters_;
};

struct RmsPropOptions {
  Hyper decay = 0.9;
  Hyper momentum = 0.0;
  Hyper epsilon = 1e-10;
  bool centered = false;
  bool use_locking = false;
  std::string name = "RMSProp";
};

// Gradients are divided by the root of the mean of their squares. Slots "rms",
// "momentum", and "mg" when centered.
class RmsPropOptimizer : public Optimizer {
 public:
  explicit RmsPropOptimizer(Hyper learning_rate, RmsPropOptions options = {});

 protected:
  void CreateSlots(const Scope& scope,
                   const std::vector<Variable>& variables) override;
  void Prepare(const Scope& scope) override;
  Node* Update(const Scope& scope, const Variable& var,
               const Grad& grad) override;

 private:
  const Hyper rate_;
  const RmsPropOptions options_;
  RmsPropParameters parameters_;
};

struct FtrlOptions {
  double learning_rate_power = -0.5;       // At most 0.
  double initial_accumulator_value = 0.1;  // This and the next: at least 0.
  double l1 = 0;
  double l2 = 0;
  double l2_shrinkage = 0;
  bool use_locking = false;
  std::string name = "Ftrl";
};

// Follow the regularized leader. Slots "accum", "linear".
class FtrlOptimizer : public Optimizer {
 public:
  explicit FtrlOptimizer(Hyper learning_rate, FtrlOptions options = {});

 protected:
  void CreateSlots(const Scope& scope,
                   const std::vector<Variable>& variables) override;
  void Prepare(const Scope& scope) override;
  Node* Update(const Scope& scope, const Variable& var,
               const Grad& grad) override;

 private:
  const Hyper rate_;
  const FtrlOptions options_;
  FtrlParameters parameters_;
};

}  // namespace sluice
