#include "sluice/train/apply.h"

#include "sluice/base/strings.h"
#include "sluice/train/apply_rows.h"
#include "sluice/train/arithmetic.h"
#include "sluice/train/variable_ops.h"

namespace sluice {
namespace {

// One update op. Its inputs are, in order: the variable and its slots, the
// values of `read`, `before`, the gradient (and its indices), `after`.
struct Update {
  std::string op;  // Without "Sparse" and "Resource".
  std::vector<Variable> state;
  std::vector<Variable> read;
  std::vector<Output> before;
  std::vector<Output> after;
  AttrMap attrs;
};

Node* AddUpdate(const Scope& outer, Update update, const Grad& grad,
                bool use_locking) {
  const std::string op = StrCat(update.state[0].resource() ? "Resource" : "",
                                grad.is_slices() ? "Sparse" : "", update.op);
  Scope scope = outer;
  std::vector<Output> inputs;
  for (const Variable& variable : update.state) {
    inputs.push_back(variable.ref());
  }
  if (!update.read.empty()) {
    // Python turns them into tensors in the scope of the op.
    const Scope inner = outer.NameScope(op);
    for (const Variable& variable : update.read) {
      inputs.push_back(ReadValue(inner, variable));
    }
    scope = outer.Named(inner.context().name_scope);
  }
  inputs.insert(inputs.end(), update.before.begin(), update.before.end());
  inputs.push_back(grad.values);
  if (grad.is_slices()) inputs.push_back(grad.indices);
  inputs.insert(inputs.end(), update.after.begin(), update.after.end());
  update.attrs.Set("use_locking", use_locking);
  return scope.AddNode(op, inputs, std::move(update.attrs));
}

// In the order given, each in the type of `var`.
std::vector<Output> Cast(const Scope& scope, const Variable& var,
                         std::vector<Output> values) {
  for (Output& value : values) value = CastTo(scope, value, var.dtype());
  return values;
}

BetaPower PowerFor(const Scope& scope, const Variable& power, DType dtype) {
  if (power.dtype() == dtype) return {power, {}};
  if (!power.resource()) return {{}, CastTo(scope, power.value(), dtype)};
  const Scope inner = scope.NameScope("Cast");
  return {{},
          inner.Named(inner.context().name_scope)
              .Add("Cast", {ReadValue(inner, power)}, {{"DstT", dtype}})};
}

AdamTerms TermsFor(const Scope& scope, const Variable& var,
                   const AdamParameters& p) {
  const DType dtype = var.dtype();
  AdamTerms terms;
  terms.power1 = PowerFor(scope, p.beta1_power, dtype);
  if (p.beta2_power) terms.power2 = PowerFor(scope, p.beta2_power, dtype);
  terms.rate = CastTo(scope, p.rate, dtype);
  terms.beta1 = CastTo(scope, p.beta1, dtype);
  terms.beta2 = CastTo(scope, p.beta2, dtype);
  terms.epsilon = CastTo(scope, p.epsilon, dtype);
  return terms;
}

// The fused op of the Adam family for a whole variable.
Node* ApplyDense(const Scope& scope, const char* op, const Variable& var,
                 const AdamSlots& slots, const AdamTerms& t, AttrMap attrs,
                 const Grad& grad, bool use_locking) {
  Update update = {op, {var, slots.m, slots.v}, {}, {}, {}, std::move(attrs)};
  for (const BetaPower& power : {t.power1, t.power2}) {
    if (power.variable) update.read.push_back(power.variable);
    if (power.value) update.before.push_back(power.value);
  }
  for (const Output& o : {t.rate, t.beta1, t.beta2, t.epsilon}) {
    update.before.push_back(o);
  }
  return AddUpdate(scope, std::move(update), grad, use_locking);
}

}  // namespace

Grad SumRepeatedRows(const Scope& scope, const Grad& grad) {
  const std::vector<Output> unique = scope.AddMulti("Unique", {grad.indices});
  if (unique.size() != 2) return Grad();
  const Output count = First(scope, scope.Add("Shape", {unique[0]}));
  const Output sums =
      scope.Add("UnsortedSegmentSum", {grad.values, unique[1], count});
  return Grad::Slices(sums, unique[0], grad.dense_shape);
}

Node* ApplyGradientDescent(const Scope& scope, const Variable& var,
                           const DescentParameters& parameters,
                           const Grad& grad, bool use_locking) {
  if (grad.is_slices() && var.resource()) {
    const Output down = scope.Add("Neg", {grad.values});
    const Output delta = Times(scope, down, parameters.given);
    return ScatterRows(scope, "ScatterAdd", var, grad.indices, delta,
                       use_locking);
  }
  const Output rate = CastTo(scope, parameters.rate, var.dtype());
  if (grad.is_slices()) {
    const Output delta = Times(scope, grad.values, rate);
    return ScatterRows(scope, "ScatterSub", var, grad.indices, delta,
                       use_locking);
  }
  return AddUpdate(scope, {"ApplyGradientDescent", {var}, {}, {rate}, {}, {}},
                   grad, use_locking);
}

Node* ApplyMomentum(const Scope& scope, const Variable& var,
                    const Variable& accumulator,
                    const MomentumParameters& parameters, const Grad& grad,
                    bool use_locking) {
  const std::vector<Output> p =
      Cast(scope, var, {parameters.rate, parameters.momentum});
  return AddUpdate(scope,
                   {"ApplyMomentum",
                    {var, accumulator},
                    {},
                    {p[0]},
                    {p[1]},
                    {{"use_nesterov", parameters.nesterov}}},
                   grad, use_locking);
}

Node* ApplyAdagrad(const Scope& scope, const Variable& var,
                   const Variable& accumulator, Output rate, const Grad& grad,
                   bool use_locking) {
  return AddUpdate(scope,
                   {"ApplyAdagrad",
                    {var, accumulator},
                    {},
                    Cast(scope, var, {rate}),
                    {},
                    {}},
                   grad, use_locking);
}

Node* ApplyAdagradDa(const Scope& scope, const Variable& var,
                     const Variable& sum, const Variable& sum_of_squares,
                     const AdagradDaParameters& parameters, const Grad& grad,
                     bool use_locking) {
  std::vector<Output> after(4);
  after[3] = scope.Add("Identity", {parameters.step});
  after[0] = CastTo(scope, parameters.rate, var.dtype());
  after[1] = CastTo(scope, parameters.l1, var.dtype());
  after[2] = CastTo(scope, parameters.l2, var.dtype());
  return AddUpdate(scope,
                   {"ApplyAdagradDA",
                    {var, sum, sum_of_squares},
                    {},
                    {},
                    std::move(after),
                    {}},
                   grad, use_locking);
}

Node* ApplyAdadelta(const Scope& scope, const Variable& var,
                    const Variable& accumulator, const Variable& update,
                    const AdadeltaParameters& parameters, const Grad& grad,
                    bool use_locking) {
  return AddUpdate(
      scope,
      {"ApplyAdadelta",
       {var, accumulator, update},
       {},
       Cast(scope, var, {parameters.rate, parameters.rho, parameters.epsilon}),
       {},
       {}},
      grad, use_locking);
}

Node* ApplyAdam(const Scope& scope, const Variable& var, const AdamSlots& slots,
                const AdamParameters& parameters, const Grad& grad,
                bool use_locking) {
  const AdamTerms terms = TermsFor(scope, var, parameters);
  return grad.is_slices()
             ? ApplyAdamRows(scope, var, slots, terms, grad, use_locking)
             : ApplyDense(scope, "ApplyAdam", var, slots, terms,
                          {{"use_nesterov", false}}, grad, use_locking);
}

Node* ApplyLazyAdam(const Scope& scope, const Variable& var,
                    const AdamSlots& slots, const AdamParameters& parameters,
                    const Grad& grad, bool use_locking) {
  if (!grad.is_slices()) {
    return ApplyAdam(scope, var, slots, parameters, grad, use_locking);
  }
  return ApplyLazyAdamRows(scope, var, slots, TermsFor(scope, var, parameters),
                           grad, use_locking);
}

Node* ApplyNadam(const Scope& scope, const Variable& var,
                 const AdamSlots& slots, const AdamParameters& parameters,
                 const Grad& grad, bool use_locking) {
  const AdamTerms terms = TermsFor(scope, var, parameters);
  return grad.is_slices()
             ? ApplyNadamRows(scope, var, slots, terms, grad, use_locking)
             : ApplyDense(scope, "ApplyAdam", var, slots, terms,
                          {{"use_nesterov", true}}, grad, use_locking);
}

Node* ApplyAdaMax(const Scope& scope, const Variable& var,
                  const AdamSlots& slots, const AdamParameters& parameters,
                  const Grad& grad, bool use_locking) {
  const AdamTerms terms = TermsFor(scope, var, parameters);
  return grad.is_slices()
             ? ApplyAdaMaxRows(scope, var, slots, terms, grad, use_locking)
             : ApplyDense(scope, "ApplyAdaMax", var, slots, terms, {}, grad,
                          use_locking);
}

std::vector<Node*> AdvancePowers(const Scope& scope,
                                 const std::vector<Node*>& updates,
                                 const AdamParameters& parameters,
                                 bool use_locking) {
  const Scope after =
      scope.Control(updates).Colocate(parameters.beta1_power.node());
  std::vector<Node*> advances;
  const auto advance = [&](const Variable& power, Output beta) {
    const Output next = Times(after, ReadValue(after, power), beta);
    advances.push_back(
        UpdateVariable(after, "Assign", power, next, use_locking).node);
  };
  advance(parameters.beta1_power, parameters.beta1);
  if (parameters.beta2_power) advance(parameters.beta2_power, parameters.beta2);
  return advances;
}

Node* ApplyRmsProp(const Scope& scope, const Variable& var, const Variable& rms,
                   const Variable& momentum, const Variable& mean,
                   const RmsPropParameters& parameters, const Grad& grad,
                   bool use_locking) {
  std::vector<Output> p = Cast(scope, var,
                               {parameters.rate, parameters.decay,
                                parameters.momentum, parameters.epsilon});
  if (mean) {
    return AddUpdate(scope,
                     {"ApplyCenteredRMSProp",
                      {var, mean, rms, momentum},
                      {},
                      std::move(p),
                      {},
                      {}},
                     grad, use_locking);
  }
  return AddUpdate(
      scope, {"ApplyRMSProp", {var, rms, momentum}, {}, std::move(p), {}, {}},
      grad, use_locking);
}

Node* ApplyFtrl(const Scope& scope, const Variable& var,
                const Variable& accumulator, const Variable& linear,
                const FtrlParameters& parameters, const Grad& grad,
                bool use_locking) {
  std::vector<Output> after = {parameters.rate, parameters.l1, parameters.l2};
  if (parameters.l2_shrinkage) after.push_back(parameters.l2_shrinkage);
  after.push_back(parameters.rate_power);
  return AddUpdate(scope,
                   {parameters.l2_shrinkage ? "ApplyFtrlV2" : "ApplyFtrl",
                    {var, accumulator, linear},
                    {},
                    {},
                    Cast(scope, var, std::move(after)),
                    {}},
                   grad, use_locking);
}

Node* ApplyProximalGradientDescent(const Scope& scope, const Variable& var,
                                   const ProximalParameters& parameters,
                                   const Grad& grad, bool use_locking) {
  return AddUpdate(
      scope,
      {"ApplyProximalGradientDescent",
       {var},
       {},
       Cast(scope, var, {parameters.rate, parameters.l1, parameters.l2}),
       {},
       {}},
      grad, use_locking);
}

Node* ApplyProximalAdagrad(const Scope& scope, const Variable& var,
                           const Variable& accumulator,
                           const ProximalParameters& parameters,
                           const Grad& grad, bool use_locking) {
  return AddUpdate(
      scope,
      {"ApplyProximalAdagrad",
       {var, accumulator},
       {},
       Cast(scope, var, {parameters.rate, parameters.l1, parameters.l2}),
       {},
       {}},
      grad, use_locking);
}

Node* ApplyAddSign(const Scope& scope, const Variable& var, const Variable& m,
                   const SignParameters& p, const Grad& grad,
                   bool use_locking) {
  if (grad.is_slices()) {
    return ApplySignRows(scope, var, m, p, grad, use_locking);
  }
  return AddUpdate(scope,
                   {"ApplyAddSign",
                    {var, m},
                    {},
                    Cast(scope, var, {p.rate, p.alpha, p.sign_decay, p.beta}),
                    {},
                    {}},
                   grad, use_locking);
}

Node* ApplyPowerSign(const Scope& scope, const Variable& var, const Variable& m,
                     const SignParameters& p, const Grad& grad,
                     bool use_locking) {
  if (grad.is_slices()) {
    return ApplySignRows(scope, var, m, p, grad, use_locking);
  }
  return AddUpdate(
      scope,
      {"ApplyPowerSign",
       {var, m},
       {},
       Cast(scope, var, {p.rate, p.log_base, p.sign_decay, p.beta}),
       {},
       {}},
      grad, use_locking);
}

Node* DecayWeights(const Scope& scope, const Variable& var, double decay,
                   const Grad& grad, bool use_locking) {
  if (!grad.is_slices()) {
    const Output part = Times(scope, decay, ReadValue(scope, var));
    return UpdateVariable(scope, "AssignSub", var, part, use_locking).node;
  }
  const Output rows = GatherRows(scope, var, grad.indices);
  const Output part = Times(scope, -decay, rows);
  Node* update =
      ScatterRows(scope, "ScatterAdd", var, grad.indices, part, use_locking);
  return ReadAfter(scope, var, update).node;
}

}  // namespace sluice
