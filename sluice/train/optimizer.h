// Optimizer: adds to a graph what trains it. Names, slots and order are those
// of TensorFlow's Python optimizers, so that checkpoints and workers of both
// languages agree.
//
//   AdagradOptimizer optimizer(0.1);
//   Node* train = optimizer.Minimize(scope, loss, {.global_step = step});
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/autodiff/gradients.h"
#include "sluice/client/initializers.h"
#include "sluice/client/variable.h"

namespace sluice {

// A hyper-parameter: a number, or a tensor of the graph (a schedule).
class Hyper {
 public:
  Hyper(double number) : number_(number) {}  // NOLINT: 0.1 is one.
  Hyper(Output tensor) : tensor_(tensor) {}  // NOLINT
  // A number becomes a float constant of that name.
  Output In(const Scope& scope, std::string_view name) const;
  double number() const { return number_; }
  // As it was given.
  Input given() const { return tensor_ ? Input(tensor_) : Input(number_); }

 private:
  double number_ = 0;
  Output tensor_;
};

// When gradients may be used: as each is ready, when all of one op are, or when
// all are.
enum class Gate { kNone, kOp, kGraph };

struct GradAndVar {
  Grad grad;  // May be none.
  Variable var;
};

struct MinimizeOptions {
  // Counts the steps; may be none.
  Variable global_step = {};
  // Empty: all trainable variables of the graph.
  std::vector<Variable> variables = {};
  Gate gate = Gate::kOp;
  AggregationMethod aggregation = AggregationMethod::kAddN;
  bool colocate_gradients_with_ops = false;
  // Of the train op; empty: the optimizer's.
  std::string name = {};
  // d(what is minimised)/d(loss); none: ones.
  Output grad_loss = {};
};

// Thread-compatible. Keeps the slots it made, so one object trains any number
// of losses of a graph with the same state. Errors go to the scope.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  const std::string& name() const { return name_; }

  // ComputeGradients, then ApplyGradients. The op to run for one step of
  // training; nullptr after an error.
  Node* Minimize(const Scope& scope, Output loss,
                 const MinimizeOptions& options = {});
  virtual std::vector<GradAndVar> ComputeGradients(
      const Scope& scope, Output loss, const MinimizeOptions& options = {});
  // Pairs without a gradient are left out. `global_step` may be none.
  virtual Node* ApplyGradients(const Scope& scope,
                               const std::vector<GradAndVar>& gradients,
                               const Variable& global_step = {},
                               std::string_view name = "");

  // What the optimizer keeps beside `var` under that name, or none.
  virtual Variable slot(const Variable& var, std::string_view slot) const;
  virtual std::vector<std::string> slot_names() const;
  // All its state, by name.
  virtual std::vector<Variable> variables() const;

 protected:
  Optimizer(std::string name, bool use_locking)
      : name_(std::move(name)), use_locking_(use_locking) {}

  // What a kind of optimizer says. CreateSlots runs outside of its name scope,
  // the others inside.
  virtual void CreateSlots(const Scope& scope,
                           const std::vector<Variable>& variables);
  virtual void Prepare(const Scope& scope) = 0;
  // Slices come with every row once, unless TakesRepeatedRows.
  virtual Node* Update(const Scope& scope, const Variable& var,
                       const Grad& grad) = 0;
  virtual bool TakesRepeatedRows() const { return false; }
  // Groups the updates under `name`.
  virtual Node* Finish(const Scope& scope, const std::vector<Node*>& updates,
                       std::string_view name);

  // Makes a slot of the type and place of `var`, unless it exists. Its variable
  // is called `<var>/<op_name>`.
  void MakeSlot(const Scope& scope, const Variable& var, std::string_view slot,
                std::string_view op_name, const Initializer& initial);
  void MakeZerosSlot(const Scope& scope, const Variable& var,
                     std::string_view slot);
  void MakeOnesSlot(const Scope& scope, const Variable& var,
                    std::string_view slot);
  // All elements `value`.
  void MakeConstantSlot(const Scope& scope, const Variable& var,
                        std::string_view slot, double value);
  // State that belongs to no single variable, placed beside `beside`.
  void MakeNonSlot(const Scope& scope, const Variable& beside,
                   std::string_view name, float initial);
  Variable non_slot(std::string_view name) const;

  bool use_locking() const { return use_locking_; }

  // Fails the scope if there is a number that must be above zero, or must not
  // be below, and is.
  static void RequirePositive(const Scope& scope, std::string_view what,
                              double value);
  static void RequireNotNegative(const Scope& scope, std::string_view what,
                                 double value);

 private:
  void FailForShape(const Scope& scope, const Variable& var) const;
  Node* CountStep(const Scope& scope, const Variable& global_step,
                  std::string_view name) const;

  const std::string name_;
  const bool use_locking_;
  std::map<std::string, std::map<const Node*, Variable>, std::less<>> slots_;
  std::map<std::string, Variable, std::less<>> non_slots_;
};

}  // namespace sluice
