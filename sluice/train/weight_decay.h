// Decoupled weight decay: before its update every weight loses a part of
// itself, whatever the gradient. Names are TensorFlow's.
#pragma once

#include <utility>

#include "sluice/train/optimizers.h"

namespace sluice {

// `Base` with weight decay. A sparse gradient decays its own rows only.
template <typename Base>
class DecoupledWeightDecay : public Base {
 public:
  template <typename... Args>
  explicit DecoupledWeightDecay(double weight_decay, Args&&... args)
      : Base(std::forward<Args>(args)...), weight_decay_(weight_decay) {}

 protected:
  void Prepare(const Scope& scope) override {
    // TensorFlow adds this constant, and multiplies by another one.
    Hyper(weight_decay_).In(scope, "weight_decay");
    Base::Prepare(scope);
  }
  Node* Update(const Scope& scope, const Variable& var,
               const Grad& grad) override {
    Node* decay =
        DecayWeights(scope, var, weight_decay_, grad, this->use_locking());
    if (decay == nullptr) return nullptr;
    return Base::Update(scope.Control(std::vector<Node*>{decay}), var, grad);
  }

 private:
  const double weight_decay_;
};

class AdamWOptimizer : public DecoupledWeightDecay<AdamOptimizer> {
 public:
  explicit AdamWOptimizer(double weight_decay,
                          AdamOptions options = {.name = "AdamW"})
      : DecoupledWeightDecay(weight_decay, std::move(options)) {}
};

class MomentumWOptimizer : public DecoupledWeightDecay<MomentumOptimizer> {
 public:
  MomentumWOptimizer(double weight_decay, Hyper learning_rate, Hyper momentum,
                     bool use_nesterov = false, bool use_locking = false,
                     std::string name = "MomentumW")
      : DecoupledWeightDecay(weight_decay, learning_rate, momentum,
                             use_nesterov, use_locking, std::move(name)) {}
};

}  // namespace sluice
