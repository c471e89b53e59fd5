// Adam and its relatives. Formulas and names are TensorFlow's.
#pragma once

#include "sluice/train/apply.h"
#include "sluice/train/optimizer.h"

namespace sluice {

struct AdamOptions {
  Hyper learning_rate = 0.001;
  Hyper beta1 = 0.9;
  Hyper beta2 = 0.999;
  Hyper epsilon = 1e-8;
  bool use_locking = false;
  std::string name = "Adam";
};

// Steps by running means of the gradient and of its square. Slots "m", "v".
// Rows of a sparse gradient: all rows of the variable decay and move.
class AdamOptimizer : public Optimizer {
 public:
  explicit AdamOptimizer(Hyper learning_rate);
  explicit AdamOptimizer(AdamOptions options = {});

 protected:
  void CreateSlots(const Scope& scope,
                   const std::vector<Variable>& variables) override;
  void Prepare(const Scope& scope) override;
  Node* Update(const Scope& scope, const Variable& var,
               const Grad& grad) override;
  Node* Finish(const Scope& scope, const std::vector<Node*>& updates,
               std::string_view name) override;

  // AdaMax needs no power of beta2.
  virtual bool HasSecondPower() const { return true; }
  const AdamParameters& parameters() const { return parameters_; }
  AdamSlots slots(const Variable& var) const;

 private:
  const AdamOptions options_;
  AdamParameters parameters_;
};

// As Adam, but a sparse gradient touches its own rows only: as fast as the
// rows are few, and of the same result where every step has every row.
class LazyAdamOptimizer : public AdamOptimizer {
 public:
  using AdamOptimizer::AdamOptimizer;

 protected:
  Node* Update(const Scope& scope, const Variable& var,
               const Grad& grad) override;
};

// Adam with Nesterov's momentum.
class NadamOptimizer : public AdamOptimizer {
 public:
  using AdamOptimizer::AdamOptimizer;

 protected:
  Node* Update(const Scope& scope, const Variable& var,
               const Grad& grad) override;
};

// Divides by the largest recent gradient instead of by a mean of squares.
class AdaMaxOptimizer : public AdamOptimizer {
 public:
  explicit AdaMaxOptimizer(Hyper learning_rate);
  explicit AdaMaxOptimizer(AdamOptions options = {.name = "AdaMax"})
      : AdamOptimizer(std::move(options)) {}

 protected:
  Node* Update(const Scope& scope, const Variable& var,
               const Grad& grad) override;
  bool HasSecondPower() const override { return false; }
};

}  // namespace sluice
