// The update rules of optimizers. Each is applied to `n` elements of a variable
// and its slots, at[0] and at[1], at[2], …, and of the gradient. Arrays may be
// the same only as a whole.
#pragma once

#include <cstdint>

namespace sluice::numeric {

// var -= rate * g
template <typename T>
struct GradientDescentRule {
  static constexpr int kVariables = 1;
  T rate;
  void Apply(T* const* at, const T* grad, int64_t n) const;
};

// Slot: accum.
template <typename T>
struct MomentumRule {
  static constexpr int kVariables = 2;
  T rate, momentum;
  bool nesterov;
  void Apply(T* const* at, const T* grad, int64_t n) const;
};

// As MomentumRule, with the rate inside the accumulator. Slot: accum.
template <typename T>
struct KerasMomentumRule {
  static constexpr int kVariables = 2;
  T rate, momentum;
  bool nesterov;
  void Apply(T* const* at, const T* grad, int64_t n) const;
};

// Slot: accum.
template <typename T>
struct AdagradRule {
  static constexpr int kVariables = 2;
  T rate;
  bool update_slots;
  void Apply(T* const* at, const T* grad, int64_t n) const;
};

// As AdagradRule, with epsilon added to the root. Slot: accum.
template <typename T>
struct AdagradV2Rule {
  static constexpr int kVariables = 2;
  T rate, epsilon;
  bool update_slots;
  void Apply(T* const* at, const T* grad, int64_t n) const;
};

// Slots: sum of gradients, sum of their squares. `step` counts from 1.
template <typename T>
struct AdagradDaRule {
  static constexpr int kVariables = 3;
  T rate, l1, l2, step;
  void Apply(T* const* at, const T* grad, int64_t n) const;
};

// Slots: accum, accum_update.
template <typename T>
struct AdadeltaRule {
  static constexpr int kVariables = 3;
  T rate, rho, epsilon;
  void Apply(T* const* at, const T* grad, int64_t n) const;
};

// Slots: m, v. `rate` includes the correction for the first steps.
template <typename T>
struct AdamRule {
  static constexpr int kVariables = 3;
  T rate, beta1, beta2, epsilon;
  bool nesterov;
  void Apply(T* const* at, const T* grad, int64_t n) const;
};

// Slots: m, v, largest v so far.
template <typename T>
struct AmsgradRule {
  static constexpr int kVariables = 4;
  T rate, beta1, beta2, epsilon;
  void Apply(T* const* at, const T* grad, int64_t n) const;
};

// Slots: m, v. `rate` includes the correction for the first steps.
template <typename T>
struct AdaMaxRule {
  static constexpr int kVariables = 3;
  T rate, beta1, beta2, epsilon;
  void Apply(T* const* at, const T* grad, int64_t n) const;
};

// Slots: ms, mom. TensorFlow rounds differently for rows than for whole
// variables.
template <typename T>
struct RmsPropRule {
  static constexpr int kVariables = 3;
  T rate, rho, momentum, epsilon;
  bool sparse;
  void Apply(T* const* at, const T* grad, int64_t n) const;
};

// Slots: mg, ms, mom.
template <typename T>
struct CenteredRmsPropRule {
  static constexpr int kVariables = 4;
  T rate, rho, momentum, epsilon;
  bool sparse;
  void Apply(T* const* at, const T* grad, int64_t n) const;
};

// Slots: accum, linear.
template <typename T>
struct FtrlRule {
  static constexpr int kVariables = 3;
  T rate, l1, l2, l2_shrinkage, rate_power;
  void Apply(T* const* at, const T* grad, int64_t n) const;
};

template <typename T>
struct ProximalGradientDescentRule {
  static constexpr int kVariables = 1;
  T rate, l1, l2;
  void Apply(T* const* at, const T* grad, int64_t n) const;
};

// Slot: accum.
template <typename T>
struct ProximalAdagradRule {
  static constexpr int kVariables = 2;
  T rate, l1, l2;
  void Apply(T* const* at, const T* grad, int64_t n) const;
};

// Slot: m.
template <typename T>
struct AddSignRule {
  static constexpr int kVariables = 2;
  T rate, alpha, sign_decay, beta;
  void Apply(T* const* at, const T* grad, int64_t n) const;
};

// Slot: m.
template <typename T>
struct PowerSignRule {
  static constexpr int kVariables = 2;
  T rate, log_base, sign_decay, beta;
  void Apply(T* const* at, const T* grad, int64_t n) const;
};

}  // namespace sluice::numeric
