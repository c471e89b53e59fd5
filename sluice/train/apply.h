// Updates of one variable by one gradient: the ops that optimizers are made of.
// Each function adds the update op of its kind, dense or for some rows only, in
// its ref or resource form, and returns it; nullptr after an error of the
// scope. Hyper-parameters of another type are cast to the variable's.
#pragma once

#include "sluice/client/variable.h"
#include "sluice/graph/scope.h"

namespace sluice {

// var -= rate * grad. Rows that repeat are subtracted one after the other.
Node* ApplyGradientDescent(const Scope& scope, const Variable& var, Output rate,
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

struct AdadeltaParameters {
  Output rate, rho, epsilon;
};
Node* ApplyAdadelta(const Scope& scope, const Variable& var,
                    const Variable& accumulator, const Variable& update,
                    const AdadeltaParameters& parameters, const Grad& grad,
                    bool use_locking);

struct AdamParameters {
  Variable beta1_power, beta2_power;
  Output rate, beta1, beta2, epsilon;
};
// Of some rows: the means of all rows decay and all rows move, as in
// TensorFlow.
Node* ApplyAdam(const Scope& scope, const Variable& var, const Variable& m,
                const Variable& v, const AdamParameters& parameters,
                const Grad& grad, bool use_locking);

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

}  // namespace sluice
