// Updates of one variable by one gradient: the ops that optimizers are made of,
// for the C++ optimizers and, through the binding, for Python's (D17).
//
// Each function adds the update of its kind, dense or of some rows only, for a
// ref or a resource variable, and returns the node to wait for; nullptr after
// an error of the scope. Rows must not repeat (SumRepeatedRows).
// Hyper-parameters of another type are cast to the variable's. The nodes, their
// names and their order are those of TensorFlow's Python optimizers.
#pragma once

#include <vector>

#include "sluice/client/input.h"
#include "sluice/client/variable.h"
#include "sluice/graph/scope.h"

namespace sluice {

// Slices with every row once, holding the sum of what came for it.
Grad SumRepeatedRows(const Scope& scope, const Grad& grad);

struct DescentParameters {
  Output rate;
  // The rate as the program gave it: rows of resource variables are multiplied
  // by a number that was not rounded to float.
  Input given;
};
// var -= rate * grad. Rows that repeat are subtracted one after the other.
Node* ApplyGradientDescent(const Scope& scope, const Variable& var,
                           const DescentParameters& parameters,
                           const Grad& grad, bool use_locking);

struct MomentumParameters {
  Output rate, momentum;
  bool nesterov = false;
};
Node* ApplyMomentum(const Scope& scope, const Variable& var,
                    const Variable& accumulator,
                    const MomentumParameters& parameters, const Grad& grad,
                    bool use_locking);

Node* ApplyAdagrad(const Scope& scope, const Variable& var,
                   const Variable& accumulator, Output rate, const Grad& grad,
                   bool use_locking);

struct AdagradDaParameters {
  Output rate;
  Input l1, l2;
  Output step;  // int64, counts from 1.
};
Node* ApplyAdagradDa(const Scope& scope, const Variable& var,
                     const Variable& sum, const Variable& sum_of_squares,
                     const AdagradDaParameters& parameters, const Grad& grad,
                     bool use_locking);

struct AdadeltaParameters {
  Output rate, rho, epsilon;
};
Node* ApplyAdadelta(const Scope& scope, const Variable& var,
                    const Variable& accumulator, const Variable& update,
                    const AdadeltaParameters& parameters, const Grad& grad,
                    bool use_locking);

// What Adam keeps of a variable.
struct AdamSlots {
  Variable m, v;
};
struct AdamParameters {
  Variable beta1_power, beta2_power;  // AdaMax has no second one.
  Output rate, beta1, beta2, epsilon;
};
// Of some rows: the means of all rows decay and all rows move, as in
// TensorFlow.
Node* ApplyAdam(const Scope& scope, const Variable& var, const AdamSlots& slots,
                const AdamParameters& parameters, const Grad& grad,
                bool use_locking);
// Of some rows: only these and their means change.
Node* ApplyLazyAdam(const Scope& scope, const Variable& var,
                    const AdamSlots& slots, const AdamParameters& parameters,
                    const Grad& grad, bool use_locking);
// With Nesterov's momentum. Of some rows: the means of all rows decay, the
// given rows move.
Node* ApplyNadam(const Scope& scope, const Variable& var,
                 const AdamSlots& slots, const AdamParameters& parameters,
                 const Grad& grad, bool use_locking);
// By the largest gradient instead of the mean of squares.
Node* ApplyAdaMax(const Scope& scope, const Variable& var,
                  const AdamSlots& slots, const AdamParameters& parameters,
                  const Grad& grad, bool use_locking);
// After `updates`: multiplies each power by its beta. The nodes that do.
std::vector<Node*> AdvancePowers(const Scope& scope,
                                 const std::vector<Node*>& updates,
                                 const AdamParameters& parameters,
                                 bool use_locking);

struct RmsPropParameters {
  Output rate, decay, momentum, epsilon;
};
// `mean` is none, or the running mean of the centered form.
Node* ApplyRmsProp(const Scope& scope, const Variable& var, const Variable& rms,
                   const Variable& momentum, const Variable& mean,
                   const RmsPropParameters& parameters, const Grad& grad,
                   bool use_locking);

struct FtrlParameters {
  Output rate, l1, l2, rate_power;
  Output l2_shrinkage;  // None: without.
};
Node* ApplyFtrl(const Scope& scope, const Variable& var,
                const Variable& accumulator, const Variable& linear,
                const FtrlParameters& parameters, const Grad& grad,
                bool use_locking);

struct ProximalParameters {
  Output rate, l1, l2;
};
Node* ApplyProximalGradientDescent(const Scope& scope, const Variable& var,
                                   const ProximalParameters& parameters,
                                   const Grad& grad, bool use_locking);
Node* ApplyProximalAdagrad(const Scope& scope, const Variable& var,
                           const Variable& accumulator,
                           const ProximalParameters& parameters,
                           const Grad& grad, bool use_locking);

struct SignParameters {
  Output rate, sign_decay, beta;
  Output alpha;     // AddSign: rate * (alpha + agreement).
  Output log_base;  // PowerSign: rate * base ^ agreement.
};
// Rows of resource variables are not implemented, as in TensorFlow.
Node* ApplyAddSign(const Scope& scope, const Variable& var, const Variable& m,
                   const SignParameters& parameters, const Grad& grad,
                   bool use_locking);
Node* ApplyPowerSign(const Scope& scope, const Variable& var, const Variable& m,
                     const SignParameters& parameters, const Grad& grad,
                     bool use_locking);

// var -= decay * var, or the rows of `indices` only: what AdamW and MomentumW
// do before their update.
Node* DecayWeights(const Scope& scope, const Variable& var, double decay,
                   const Grad& grad, bool use_locking);

}  // namespace sluice
