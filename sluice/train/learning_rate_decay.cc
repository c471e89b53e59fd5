#include "sluice/train/learning_rate_decay.h"

#include <cmath>
#include <numbers>

#include "sluice/base/status.h"
#include "sluice/client/op_call.h"
#include "sluice/train/arithmetic.h"

namespace sluice {
namespace {

// What every schedule starts from.
struct Start {
  Start(const Scope& outer, const char* name, const Input& learning_rate)
      : scope(outer.NameScope(outer.next_name().empty() ? name
                                                        : outer.next_name())),
        rate(AsOutput(scope, learning_rate, "initial_learning_rate",
                      DType::kFloat)),
        dtype(rate ? BaseType(TypeOf(rate)) : DType::kFloat) {}

  Output In(const Input& value) const { return CastTo(scope, value, dtype); }
  // The scope that the result is named after.
  Scope Result() const { return scope.Named(scope.context().name_scope); }

  const Scope scope;
  const Output rate;
  const DType dtype;
};

// step / decay_steps, rounded down for a staircase.
Output Periods(const Start& start, const Input& global_step, Output decay_steps,
               bool staircase) {
  const Output step = start.In(global_step);
  const Output periods = Over(start.scope, step, decay_steps);
  return staircase ? start.scope.Add("Floor", {periods}) : periods;
}

// (1 + cos(pi * x)) / 2, times `factor` if there is one.
Output HalfCosine(const Scope& scope, Output x, Output factor = {}) {
  const Output pi =
      scope.Const(ScalarOfType(BaseType(TypeOf(x)), std::numbers::pi));
  const Output angle = Times(scope, pi, x);
  const Output cosine = scope.Add("Cos", {angle});
  const Output raised = Plus(scope, 1.0f, cosine);
  if (!factor) return Times(scope, 0.5f, raised);
  const Output half = Times(scope, 0.5f, factor);
  return Times(scope, half, raised);
}

Output Power(const Scope& scope, const Input& base, const Input& exponent) {
  return OpCall(scope.Named("pow"), "Pow").In(base).In(exponent).One();
}

// rate * ((1 - alpha) * part + alpha)
Output Between(const Start& start, Output part, double alpha) {
  const Output scaled = Times(start.scope, 1 - alpha, part);
  const Output raised = Plus(start.scope, scaled, alpha);
  return Times(start.Result(), start.rate, raised);
}

Output LinearCosine(const Start& start, const Input& global_step,
                    const Input& decay_steps, const LinearCosineOptions& o,
                    const NoisyLinearCosineOptions* noise) {
  const Scope& scope = start.scope;
  const Output all = start.In(decay_steps);
  const Output given = start.In(global_step);
  const Output step = scope.Add("Minimum", {given, all});
  const Output left = Minus(scope, all, step);
  Output linear = Over(scope, left, all);
  if (noise != nullptr) {
    const Output after = Plus(scope, 1.0f, step);
    const Output decay = Power(scope, after, noise->variance_decay);
    const Output variance = Over(scope, noise->initial_variance, decay);
    const Output deviation = scope.Add("Sqrt", {variance});
    const Output normal = scope.Add("RandomStandardNormal", {scope.Ints({})},
                                    {{"dtype", start.dtype}});
    linear = Plus(scope, linear, Times(scope, normal, deviation));
  }
  const Output part = Over(scope, step, all);
  const Output angle = Times(scope, 2.0f * o.num_periods, part);
  const Output cosine = HalfCosine(scope, angle);
  const Output offset = Plus(scope, o.alpha, linear);
  const Output scaled = Times(scope, offset, cosine);
  const Output raised = Plus(scope, scaled, o.beta);
  return Times(start.Result(), start.rate, raised);
}

}  // namespace

Output ExponentialDecay(const Scope& outer, const Input& learning_rate,
                        const Input& global_step, const Input& decay_steps,
                        const Input& decay_rate, DecayOptions options) {
  const Start start(outer, "ExponentialDecay", learning_rate);
  const Output steps = start.In(decay_steps);
  const Output rate = start.In(decay_rate);
  const Output p = Periods(start, global_step, steps, options.staircase);
  const Output decay = start.scope.Add("Pow", {rate, p});
  return Times(start.Result(), start.rate, decay);
}

Output NaturalExpDecay(const Scope& outer, const Input& learning_rate,
                       const Input& global_step, const Input& decay_steps,
                       const Input& decay_rate, DecayOptions options) {
  const Scope plain = outer.Named("");
  const Output falling = OpCall(plain, "Neg").In(decay_rate).One();
  const Output natural = plain.Add("Exp", {falling});
  return ExponentialDecay(outer, learning_rate, global_step, decay_steps,
                          natural, options);
}

Output InverseTimeDecay(const Scope& outer, const Input& learning_rate,
                        const Input& global_step, const Input& decay_steps,
                        const Input& decay_rate, DecayOptions options) {
  const Start start(outer, "InverseTimeDecay", learning_rate);
  const Output steps = start.In(decay_steps);
  const Output rate = start.In(decay_rate);
  const Output p = Periods(start, global_step, steps, options.staircase);
  const Output growth = Times(start.scope, rate, p);
  const Output divisor = Plus(start.scope, 1.0f, growth);
  return Over(start.Result(), start.rate, divisor);
}

Output PiecewiseConstant(const Scope& outer, const Input& global_step,
                         const std::vector<int64_t>& boundaries,
                         const std::vector<float>& values) {
  if (boundaries.size() + 1 != values.size()) {
    outer.Fail(InvalidArgument(
        "The length of boundaries should be 1 less than the length of values, "
        "got ",
        boundaries.size(), " and ", values.size()));
    return Output();
  }
  const Scope scope = outer.NameScope("PiecewiseConstant");
  const Output step = AsOutput(scope, global_step, "x");
  Output result = scope.Scalar(values.back());
  // From the last boundary back: the first one that holds wins.
  for (size_t i = boundaries.size(); i-- > 0;) {
    const Output below =
        OpCall(scope, "LessEqual").In(step).In(boundaries[i]).One();
    result = OpCall(scope, "Select").In(below).In(values[i]).In(result).One();
  }
  return result;
}

Output PolynomialDecay(const Scope& outer, const Input& learning_rate,
                       const Input& global_step, const Input& decay_steps,
                       PolynomialDecayOptions options) {
  const Start start(outer, "PolynomialDecay", learning_rate);
  const Scope& scope = start.scope;
  const Output end = start.In(options.end_learning_rate);
  const Output power = start.In(options.power);
  Output step = start.In(global_step);
  Output all = start.In(decay_steps);
  if (options.cycle) {
    // The first period starts at step 0, too.
    const Output periods = scope.Add("Ceil", {Over(scope, step, all)});
    const Output one = scope.Const(ScalarOfType(start.dtype, 1));
    all = Times(scope, all, scope.Add("Maximum", {periods, one}));
  } else {
    step = scope.Add("Minimum", {step, all});
  }
  const Output part = Over(scope, step, all);
  const Output range = Minus(scope, start.rate, end);
  const Output left = Minus(scope, 1, part);
  const Output decay = scope.Add("Pow", {left, power});
  const Output scaled = Times(scope, range, decay);
  return Plus(start.Result(), scaled, end);
}

Output CosineDecay(const Scope& outer, const Input& learning_rate,
                   const Input& global_step, const Input& decay_steps,
                   float alpha) {
  const Start start(outer, "CosineDecay", learning_rate);
  const Scope& scope = start.scope;
  const Output all = start.In(decay_steps);
  const Output given = start.In(global_step);
  const Output step = scope.Add("Minimum", {given, all});
  const Output part = Over(scope, step, all);
  if (!part) return Output();
  return Between(start, HalfCosine(scope, part), alpha);
}

Output CosineDecayRestarts(const Scope& outer, const Input& learning_rate,
                           const Input& global_step,
                           const Input& first_decay_steps,
                           CosineRestartOptions options) {
  const Start start(outer, "SGDRDecay", learning_rate);
  const Scope& scope = start.scope;
  const Output first = start.In(first_decay_steps);
  Output part = Over(scope, start.In(global_step), first);
  Output restarts;
  const float t = options.t_mul;
  if (t == 1) {
    restarts = scope.Add("Floor", {part});
    part = Minus(scope, part, restarts);
  } else {
    // Periods of 1, t, t^2, …: the one that `part` lies in, and where.
    const Output grown = Times(scope, part, 1 - t);
    const Output rest = Minus(scope, 1.0f, grown);
    const Output log = scope.Add("Log", {rest});
    restarts = scope.Add("Floor", {Over(scope, log, std::log(t))});
    const Output length = Power(scope, t, restarts);
    const Output before = Over(scope, Minus(scope, 1.0f, length), 1 - t);
    part = Over(scope, Minus(scope, part, before), length);
  }
  if (!part) return Output();
  const Output factor = Power(scope, options.m_mul, restarts);
  return Between(start, HalfCosine(scope, part, factor), options.alpha);
}

Output LinearCosineDecay(const Scope& outer, const Input& learning_rate,
                         const Input& global_step, const Input& decay_steps,
                         LinearCosineOptions options) {
  const Start start(outer, "LinearCosineDecay", learning_rate);
  return LinearCosine(start, global_step, decay_steps, options, nullptr);
}

Output NoisyLinearCosineDecay(const Scope& outer, const Input& learning_rate,
                              const Input& global_step,
                              const Input& decay_steps,
                              NoisyLinearCosineOptions options) {
  const Start start(outer, "NoisyLinearCosineDecay", learning_rate);
  return LinearCosine(start, global_step, decay_steps, options.cosine,
                      &options);
}

}  // namespace sluice
