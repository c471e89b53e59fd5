// Updates of rows for which there is no kernel: built of other ops. Called by
// apply.cc with hyper-parameters that have the variable's type already.
#pragma once

#include "sluice/train/apply.h"

namespace sluice {

// A power of a beta: a variable of the right type, which is read where it is
// used, or its value cast.
struct BetaPower {
  Variable variable;
  Output value;
};

// AdamParameters in the variable's type.
struct AdamTerms {
  BetaPower power1, power2;
  Output rate, beta1, beta2, epsilon;
};

Node* ApplyAdamRows(const Scope& scope, const Variable& var,
                    const AdamSlots& slots, const AdamTerms& terms,
                    const Grad& grad, bool use_locking);
Node* ApplyLazyAdamRows(const Scope& scope, const Variable& var,
                        const AdamSlots& slots, const AdamTerms& terms,
                        const Grad& grad, bool use_locking);
Node* ApplyNadamRows(const Scope& scope, const Variable& var,
                     const AdamSlots& slots, const AdamTerms& terms,
                     const Grad& grad, bool use_locking);
Node* ApplyAdaMaxRows(const Scope& scope, const Variable& var,
                      const AdamSlots& slots, const AdamTerms& terms,
                      const Grad& grad, bool use_locking);
// AddSign, or PowerSign if `parameters` has a base.
Node* ApplySignRows(const Scope& scope, const Variable& var, const Variable& m,
                    const SignParameters& parameters, const Grad& grad,
                    bool use_locking);

}  // namespace sluice
