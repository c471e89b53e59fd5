#include "sluice/train/apply_rows.h"

#include <numbers>

#include "sluice/autodiff/gate.h"
#include "sluice/base/status.h"
#include "sluice/client/op_call.h"
#include "sluice/train/arithmetic.h"
#include "sluice/train/variable_ops.h"

namespace sluice {
namespace {

Scope After(const Scope& scope, Node* node) {
  return node == nullptr ? scope : scope.Control(std::vector<Node*>{node});
}

Node* Grouped(const Scope& scope, std::vector<Node*> nodes) {
  return scope.ok() ? Group(scope, nodes) : nullptr;
}

// 1 - power
Output Rest(const Scope& scope, const BetaPower& power) {
  const Output now =
      power.value ? power.value : ReadValue(scope, power.variable);
  return Minus(scope, 1, now);
}

// The rate, corrected for means that started at zero.
Output CorrectedRate(const Scope& scope, const AdamTerms& terms) {
  const Output rest2 = Rest(scope, terms.power2);
  const Output root = scope.Add("Sqrt", {rest2});
  const Output scaled = Times(scope, terms.rate, root);
  const Output rest1 = Rest(scope, terms.power1);
  return Over(scope, scaled, rest1);
}

struct Moved {
  Output mean;
  Scope after;  // Waits for the decay.
};

// mean = beta * mean, then `rows` are added to it.
Moved DecayAndAdd(const Scope& scope, const Variable& mean, Output beta,
                  Output indices, Output rows, bool use_locking) {
  const Output decayed = Times(scope, ReadValue(scope, mean), beta);
  Node* assign =
      UpdateVariable(scope, "Assign", mean, decayed, use_locking).node;
  const Scope after = After(scope, assign);
  Node* add =
      ScatterRows(after, "ScatterAdd", mean, indices, rows, use_locking);
  return {ReadAfter(after, mean, add), after};
}

Output Gather(const Scope& scope, Output params, Output indices) {
  return OpCall(scope, "GatherV2").In(params).In(indices).In(0).One();
}

// `grad`, with zeros for the rows it does not have, times a number.
Output DenseTimes(const Scope& outer, const Grad& grad, Output factor) {
  if (!grad.dense_shape) {
    outer.Fail(InvalidArgument("The rows of ", TensorName(grad.values),
                               " need a dense_shape to become a tensor."));
    return Output();
  }
  const Scope scope = outer.NameScope("mul");
  const Output rows = First(scope, grad.dense_shape);
  const Output dense = scope.Named("x").Add("UnsortedSegmentSum",
                                            {grad.values, grad.indices, rows});
  return Times(scope.Named(scope.context().name_scope), dense, factor);
}

Output MoveSquares(const Scope& scope, const AdamSlots& slots,
                   const AdamTerms& terms, const Grad& grad, bool use_locking) {
  const Output squares = Times(scope, grad.values, grad.values);
  const Output rest = Minus(scope, 1, terms.beta2);
  const Output rows = Times(scope, squares, rest);
  return DecayAndAdd(scope, slots.v, terms.beta2, grad.indices, rows,
                     use_locking)
      .mean;
}

// beta * mean[indices] + (1 - beta) * rows.
Output MovedRows(const Scope& scope, const Variable& mean, Output beta,
                 Output indices, Output rows) {
  const Output old = GatherRows(scope, mean, indices);
  const Output kept = Times(scope, beta, old);
  const Output rest = Minus(scope, 1, beta);
  const Output added = Times(scope, rest, rows);
  return Plus(scope, kept, added);
}

}  // namespace

Node* ApplyAdamRows(const Scope& scope, const Variable& var,
                    const AdamSlots& slots, const AdamTerms& terms,
                    const Grad& grad, bool use_locking) {
  const Output rate = CorrectedRate(scope, terms);
  const Output rest = Minus(scope, 1, terms.beta1);
  const Output m_rows = Times(scope, grad.values, rest);
  const Output m = DecayAndAdd(scope, slots.m, terms.beta1, grad.indices,
                               m_rows, use_locking)
                       .mean;
  const Output v = MoveSquares(scope, slots, terms, grad, use_locking);
  const Output root = scope.Add("Sqrt", {v});
  const Output step = Times(scope, rate, m);
  const Output divisor = Plus(scope, root, terms.epsilon);
  const Output delta = Over(scope, step, divisor);
  Node* update =
      UpdateVariable(scope, "AssignSub", var, delta, use_locking).node;
  return Grouped(scope, {update, m.node, v.node});
}

Node* ApplyLazyAdamRows(const Scope& scope, const Variable& var,
                        const AdamSlots& slots, const AdamTerms& terms,
                        const Grad& grad, bool use_locking) {
  const Output rate = CorrectedRate(scope, terms);
  const auto moved = [&](const Variable& mean, Output rows) {
    return ScatterRows(scope, "ScatterUpdate", mean, grad.indices, rows,
                       use_locking);
  };
  Output m = MovedRows(scope, slots.m, terms.beta1, grad.indices, grad.values);
  Node* m_update = moved(slots.m, m);
  const Output old_v = GatherRows(scope, slots.v, grad.indices);
  const Output kept = Times(scope, terms.beta2, old_v);
  const Output rest = Minus(scope, 1, terms.beta2);
  const Output squares = scope.Add("Square", {grad.values});
  const Output added = Times(scope, rest, squares);
  Output v = Plus(scope, kept, added);
  Node* v_update = moved(slots.v, v);
  if (!scope.ok()) return nullptr;
  Output step;
  if (var.resource()) {
    step = Times(scope, rate, m);
  } else {
    // TensorFlow reads back what it stored.
    m = Gather(scope, m_update->output(0), grad.indices);
    v = Gather(scope, v_update->output(0), grad.indices);
  }
  const Output root = scope.Add("Sqrt", {v});
  const Output divisor = Plus(scope, root, terms.epsilon);
  if (!step) step = Times(scope, rate, m);
  const Output delta = Over(scope, step, divisor);
  Node* update =
      ScatterRows(scope, "ScatterSub", var, grad.indices, delta, use_locking);
  return Grouped(scope, {update, m_update, v_update});
}

Node* ApplyNadamRows(const Scope& scope, const Variable& var,
                     const AdamSlots& slots, const AdamTerms& terms,
                     const Grad& grad, bool use_locking) {
  const Output rate = CorrectedRate(scope, terms);
  const Output rest = Minus(scope, 1, terms.beta1);
  const Output m_rows = Times(scope, grad.values, rest);
  const Moved m = DecayAndAdd(scope, slots.m, terms.beta1, grad.indices, m_rows,
                              use_locking);
  const Output m_now = Gather(m.after, m.mean, grad.indices);
  const Output ahead = Times(m.after, terms.beta1, m_now);
  const Output m_bar = Plus(m.after, m_rows, ahead);
  const Output v = MoveSquares(scope, slots, terms, grad, use_locking);
  const Output root = scope.Add("Sqrt", {Gather(scope, v, grad.indices)});
  const Output down = scope.Add("Neg", {rate});
  const Output step = Times(scope, down, m_bar);
  const Output divisor = Plus(scope, root, terms.epsilon);
  const Output delta = Over(scope, step, divisor);
  Node* add =
      ScatterRows(scope, "ScatterAdd", var, grad.indices, delta, use_locking);
  const Output update = ReadAfter(scope, var, add);
  return Grouped(scope, {update.node, m_bar.node, v.node});
}

Node* ApplyAdaMaxRows(const Scope& scope, const Variable& var,
                      const AdamSlots& slots, const AdamTerms& terms,
                      const Grad& grad, bool use_locking) {
  const auto stored = [&](std::string_view op, const Variable& to,
                          Output rows) {
    const Scope after = After(scope, rows.node);
    Node* update = ScatterRows(after, op, to, grad.indices, rows, use_locking);
    return ReadAfter(after, to, update).node;
  };
  const Output old_m = GatherRows(scope, slots.m, grad.indices);
  const Output kept = Times(scope, old_m, terms.beta1);
  const Output rest = Minus(scope, 1, terms.beta1);
  const Output added = Times(scope, grad.values, rest);
  const Output m = Plus(scope, kept, added);
  Node* m_update = stored("ScatterUpdate", slots.m, m);
  const Output old_v = GatherRows(scope, slots.v, grad.indices);
  const Output decayed = Times(scope, old_v, terms.beta2);
  const Output size = scope.Add("Abs", {grad.values});
  const Output v = scope.Add("Maximum", {decayed, size});
  Node* v_update = stored("ScatterUpdate", slots.v, v);
  const Output down = scope.Add("Neg", {terms.rate});
  const Output start = Rest(scope, terms.power1);
  const Output rate = Over(scope, down, start);
  const Output divisor = Plus(scope, v, terms.epsilon);
  const Output direction = Over(scope, m, divisor);
  const Output delta = Times(scope, rate, direction);
  Node* update = stored("ScatterAdd", var, delta);
  return Grouped(scope, {update, m_update, v_update});
}

Node* ApplySignRows(const Scope& scope, const Variable& var, const Variable& m,
                    const SignParameters& p, const Grad& grad,
                    bool use_locking) {
  if (var.resource()) {
    scope.Fail(Unimplemented(
        "AddSign and PowerSign cannot update rows of the resource variable ",
        var.name(), "; use a ref variable, or a dense gradient"));
    return nullptr;
  }
  const DType dtype = var.dtype();
  const Output rate = CastTo(scope, p.rate, dtype);
  Output alpha, beta, log_base, e;
  if (p.log_base) {
    beta = CastTo(scope, p.beta, dtype);
    log_base = CastTo(scope, p.log_base, dtype);
    e = CastTo(scope, std::numbers::e, dtype);
  } else {
    alpha = CastTo(scope, p.alpha, dtype);
    beta = CastTo(scope, p.beta, dtype);
  }
  const Output kept = Times(scope, ReadValue(scope, m), beta);
  const Output rest = Minus(scope, 1, beta);
  const Output added = DenseTimes(scope, grad, rest);
  const Output sum = Plus(scope, kept, added);
  const Output mean =
      UpdateVariable(scope, "Assign", m, sum, use_locking).value;
  const Output sign = scope.Add("Sign", {grad.values});
  const Output mean_sign = scope.Add("Sign", {mean});
  const Output agreement =
      Times(scope, Gather(scope, mean_sign, grad.indices), sign);
  const Output decay = CastTo(scope, p.sign_decay, dtype);
  Output factor;
  if (p.log_base) {
    const Output scaled = Times(scope, log_base, decay);
    factor = scope.Add("Pow", {e, Times(scope, scaled, agreement)});
  } else {
    factor = Plus(scope, alpha, Times(scope, decay, agreement));
  }
  const Output scaled = Times(scope, rate, factor);
  const Output delta = Times(scope, scaled, grad.values);
  Node* update =
      ScatterRows(scope, "ScatterSub", var, grad.indices, delta, use_locking);
  if (!scope.ok()) return nullptr;
  return Grouped(scope, {update, mean.node});
}

}  // namespace sluice
