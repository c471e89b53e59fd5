// Learning rates that follow the global step: tensors to give to an optimizer.
//
//   Output rate = ExponentialDecay(scope, 0.1f, step, 1000, 0.96f);
//   AdamOptimizer optimizer(rate);
//
// A rate written as a number is a float; steps may be any integer tensor.
// Formulas are TensorFlow's (tf.train.exponential_decay and so on).
#pragma once

#include <vector>

#include "sluice/client/input.h"
#include "sluice/graph/scope.h"

namespace sluice {

struct DecayOptions {
  // Whole periods only: the rate falls in steps.
  bool staircase = false;
};
// rate * decay_rate ^ (step / decay_steps)
Output ExponentialDecay(const Scope& scope, const Input& learning_rate,
                        const Input& global_step, const Input& decay_steps,
                        const Input& decay_rate, DecayOptions options = {});
// rate * e ^ (-decay_rate * step / decay_steps)
Output NaturalExpDecay(const Scope& scope, const Input& learning_rate,
                       const Input& global_step, const Input& decay_steps,
                       const Input& decay_rate, DecayOptions options = {});
// rate / (1 + decay_rate * step / decay_steps)
Output InverseTimeDecay(const Scope& scope, const Input& learning_rate,
                        const Input& global_step, const Input& decay_steps,
                        const Input& decay_rate, DecayOptions options = {});

// values[i] up to and including step boundaries[i], then the last value. There
// is one value more than boundaries, which rise.
Output PiecewiseConstant(const Scope& scope, const Input& global_step,
                         const std::vector<int64_t>& boundaries,
                         const std::vector<float>& values);

struct PolynomialDecayOptions {
  float end_learning_rate = 0.0001f;
  float power = 1;
  // Starts again at a longer period instead of staying at the end.
  bool cycle = false;
};
Output PolynomialDecay(const Scope& scope, const Input& learning_rate,
                       const Input& global_step, const Input& decay_steps,
                       PolynomialDecayOptions options = {});

// Half a cosine from the rate to alpha * rate.
Output CosineDecay(const Scope& scope, const Input& learning_rate,
                   const Input& global_step, const Input& decay_steps,
                   float alpha = 0);

struct CosineRestartOptions {
  float t_mul = 2;  // Each period is so many times as long as the one before,
  float m_mul = 1;  // and starts at so many times its rate.
  float alpha = 0;
};
Output CosineDecayRestarts(const Scope& scope, const Input& learning_rate,
                           const Input& global_step,
                           const Input& first_decay_steps,
                           CosineRestartOptions options = {});

struct LinearCosineOptions {
  float num_periods = 0.5f;
  float alpha = 0;
  float beta = 0.001f;
};
Output LinearCosineDecay(const Scope& scope, const Input& learning_rate,
                         const Input& global_step, const Input& decay_steps,
                         LinearCosineOptions options = {});

struct NoisyLinearCosineOptions {
  float initial_variance = 1;
  float variance_decay = 0.55f;
  LinearCosineOptions cosine = {};
};
Output NoisyLinearCosineDecay(const Scope& scope, const Input& learning_rate,
                              const Input& global_step,
                              const Input& decay_steps,
                              NoisyLinearCosineOptions options = {});

}  // namespace sluice
