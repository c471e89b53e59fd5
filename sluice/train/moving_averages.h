// Moving averages of variables and tensors. An evaluation that restores the
// averages in place of the variables often does better than the last step.
//
//   ExponentialMovingAverage ema(0.999);
//   Node* train = ema.Apply(scope.Control({step}));  // After each step.
//   Saver saver(scope, {.named = ema.variables_to_restore(graph)});
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sluice/client/variable.h"
#include "sluice/train/optimizer.h"

namespace sluice {

// variable -= (1 - decay) * (variable - value). With `zero_debias` it undoes
// that the variable started at zero; two variables beside it keep count. The
// new value.
Output AssignMovingAverage(const Scope& scope, const Variable& variable,
                           Output value, Output decay, bool zero_debias = true);

struct MovingAverageOptions {
  // Counts updates: averages of few of them move faster. May be none.
  Variable num_updates = {};
  // Averages of tensors do not remember that they started at zero.
  bool zero_debias = false;
  std::string name = "ExponentialMovingAverage";
};

// Keeps a shadow `<name>/ExponentialMovingAverage` of each variable, which
// starts as the variable did, and of each tensor, which starts at zero.
// Thread-compatible. Errors go to the scope.
class ExponentialMovingAverage {
 public:
  explicit ExponentialMovingAverage(Hyper decay,
                                    MovingAverageOptions options = {});

  // The op that moves the averages; empty: of all trainable variables.
  Node* Apply(const Scope& scope, std::vector<Variable> variables = {});
  Node* ApplyToTensors(const Scope& scope, const std::vector<Output>& tensors);

  // The shadow, or none.
  Variable average(const Variable& variable) const;
  Variable average(Output tensor) const;
  // What it is called, whether it exists or not.
  std::string average_name(const Variable& variable) const;
  // Name in a checkpoint -> variable to restore from it: averages for trainable
  // and averaged variables, all others as they are. Parts of a variable have
  // the same name.
  std::multimap<std::string, Variable> variables_to_restore(Graph& graph) const;

 private:
  struct Average {
    Output value;  // What is averaged.
    Variable shadow;
    bool zero_debias = false;
  };
  Node* Update(const Scope& scope, const std::vector<Average>& averages) const;

  const Hyper decay_;
  const MovingAverageOptions options_;
  // By the variable's ref or the tensor.
  std::vector<std::pair<Output, Average>> averages_;
};

}  // namespace sluice
