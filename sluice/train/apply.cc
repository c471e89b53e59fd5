#include "sluice/train/apply.h"

#include "sluice/autodiff/gate.h"
#include "sluice/base/strings.h"

namespace sluice {
namespace {

// `value` as `dtype`: itself if it has it.
Output CastTo(const Scope& scope, Output value, DType dtype) {
  if (!value || BaseType(TypeOf(value)) == dtype) return value;
  return scope.Add("Cast", {value}, {{"DstT", dtype}});
}

// The first element of a vector, with the nodes of Python's `x[0]`.
Output First(const Scope& outer, Output vector) {
  const Scope scope = outer.NameScope("strided_slice");
  const Output begin = scope.Named("stack").Ints({0});
  const Output end = scope.Named("stack_1").Ints({1});
  const Output strides = scope.Named("stack_2").Ints({1});
  return scope.Named(scope.context().name_scope)
      .Add("StridedSlice", {vector, begin, end, strides},
           {{"shrink_axis_mask", 1}});
}

// Every row once, with the sum of what came for it.
Grad SumRepeatedRows(const Scope& scope, const Grad& grad) {
  const std::vector<Output> unique = scope.AddMulti("Unique", {grad.indices});
  if (unique.size() != 2) return Grad();
  const Output count = First(scope, scope.Add("Shape", {unique[0]}));
  const Output sums =
      scope.Add("UnsortedSegmentSum", {grad.values, unique[1], count});
  return Grad::Slices(sums, unique[0], grad.dense_shape);
}

// One update op. Its inputs are, in order: the variable and its slots,
// `before`, the gradient (and its indices), `after`.
struct Update {
  std::string op;  // Without "Sparse" and "Resource".
  std::vector<Variable> state;
  std::vector<Output> before;
  std::vector<Output> after;
  AttrMap attrs;
};

Node* AddUpdate(const Scope& scope, Update update, const Grad& grad,
                bool use_locking) {
  std::vector<Output> inputs;
  inputs.reserve(update.state.size() + update.before.size() +
                 update.after.size() + 2);
  for (const Variable& variable : update.state) {
    inputs.push_back(variable.ref());
  }
  inputs.insert(inputs.end(), update.before.begin(), update.before.end());
  inputs.push_back(grad.values);
  if (grad.is_slices()) inputs.push_back(grad.indices);
  inputs.insert(inputs.end(), update.after.begin(), update.after.end());
  update.attrs.Set("use_locking", use_locking);
  return scope.AddNode(StrCat(update.state[0].resource() ? "Resource" : "",
                              grad.is_slices() ? "Sparse" : "", update.op),
                       inputs, std::move(update.attrs));
}

// Slices with repeated rows summed, anything else as it is.
Grad Prepared(const Scope& scope, const Grad& grad) {
  return grad.is_slices() ? SumRepeatedRows(scope, grad) : grad;
}

std::vector<Output> Cast(const Scope& scope, const Variable& var,
                         std::vector<Output> values) {
  for (Output& value : values) value = CastTo(scope, value, var.dtype());
  return values;
}

// Python's `1 - x`: the constant is made after the scope of the operation.
Output OneMinus(const Scope& outer, Output x) {
  const Scope scope = outer.NameScope("sub");
  const Output one =
      scope.Named("x").Const(ScalarOfType(BaseType(TypeOf(x)), 1));
  return scope.Named(scope.context().name_scope).Add("Sub", {one, x});
}

Output Mul(const Scope& scope, Output a, Output b) {
  return scope.Named("mul").Add("Mul", {a, b});
}

Output ReadValue(const Scope& scope, const Variable& var) {
  if (!var.resource()) return var.value();
  return scope.Device(var.device())
      .Add("ReadVariableOp", {var.ref()}, {{"dtype", var.dtype()}});
}

Output AddRows(const Scope& scope, const Variable& var, Output indices,
               Output rows, bool use_locking) {
  if (!var.resource()) {
    return scope.Add("ScatterAdd", {var.ref(), indices, rows},
                     {{"use_locking", use_locking}});
  }
  Node* add = scope.AddNode("ResourceScatterAdd", {var.ref(), indices, rows});
  return ReadValue(scope.Control(std::vector<Node*>{add}), var);
}

Output Assigned(const Scope& scope, std::string_view op, const Variable& var,
                Output value, bool use_locking) {
  if (!var.resource()) {
    return scope.Add(op, {var.ref(), value}, {{"use_locking", use_locking}});
  }
  Node* assign = scope.AddNode(StrCat(op, "VariableOp"), {var.ref(), value});
  return ReadValue(scope.Control(std::vector<Node*>{assign}), var);
}

// mean = mean * beta, then the rows of `scaled` are added to it.
Output DecayAndAdd(const Scope& scope, const Variable& mean, Output beta,
                   Output indices, Output scaled, bool use_locking) {
  const Output decayed =
      Assigned(scope, "Assign", mean, Mul(scope, ReadValue(scope, mean), beta),
               use_locking);
  return AddRows(scope.Control({decayed}), mean, indices, scaled, use_locking);
}

Node* ApplySparseAdam(const Scope& scope, const Variable& var,
                      const Variable& m, const Variable& v,
                      const std::vector<Output>& p, const Grad& grad,
                      bool use_locking) {
  const Output &power1 = p[0], &power2 = p[1], &beta1 = p[3], &beta2 = p[4];
  const Output root = scope.Add("Sqrt", {OneMinus(scope, power2)});
  const Output scaled_rate = Mul(scope, p[2], root);
  const Output rate = scope.Named("truediv").Add(
      "RealDiv", {scaled_rate, OneMinus(scope, power1)});
  const Output m_rows = Mul(scope, grad.values, OneMinus(scope, beta1));
  const Output m_t =
      DecayAndAdd(scope, m, beta1, grad.indices, m_rows, use_locking);
  const Output squares = Mul(scope, grad.values, grad.values);
  const Output v_rows = Mul(scope, squares, OneMinus(scope, beta2));
  const Output v_t =
      DecayAndAdd(scope, v, beta2, grad.indices, v_rows, use_locking);
  const Output v_root = scope.Add("Sqrt", {v_t});
  const Output step = Mul(scope, rate, m_t);
  const Output divisor = scope.Named("add").Add("AddV2", {v_root, p[5]});
  const Output delta = scope.Named("truediv").Add("RealDiv", {step, divisor});
  const Output update = Assigned(scope, "AssignSub", var, delta, use_locking);
  const std::vector<Node*> all = {update.node, m_t.node, v_t.node};
  return scope.ok() ? Group(scope, all) : nullptr;
}

}  // namespace

Node* ApplyGradientDescent(const Scope& scope, const Variable& var, Output rate,
                           const Grad& grad, bool use_locking) {
  if (grad.is_slices() && !var.resource()) {
    const Output step =
        Mul(scope, grad.values, CastTo(scope, rate, var.dtype()));
    return scope.AddNode("ScatterSub", {var.ref(), grad.indices, step},
                         {{"use_locking", use_locking}});
  }
  if (grad.is_slices()) {
    const Output negative = scope.Named("Neg").Add("Neg", {grad.values});
    const Output step = Mul(scope, negative, CastTo(scope, rate, var.dtype()));
    return scope.AddNode("ResourceScatterAdd", {var.ref(), grad.indices, step});
  }
  return AddUpdate(
      scope, {"ApplyGradientDescent", {var}, Cast(scope, var, {rate}), {}, {}},
      grad, use_locking);
}

Node* ApplyMomentum(const Scope& scope, const Variable& var,
                    const Variable& accumulator,
                    const MomentumParameters& parameters, const Grad& grad,
                    bool use_locking) {
  const Grad rows = Prepared(scope, grad);
  const std::vector<Output> p =
      Cast(scope, var, {parameters.rate, parameters.momentum});
  return AddUpdate(scope,
                   {"ApplyMomentum",
                    {var, accumulator},
                    {p[0]},
                    {p[1]},
                    {{"use_nesterov", parameters.nesterov}}},
                   rows, use_locking);
}

Node* ApplyAdagrad(const Scope& scope, const Variable& var,
                   const Variable& accumulator, Output rate, const Grad& grad,
                   bool use_locking) {
  const Grad rows = Prepared(scope, grad);
  return AddUpdate(
      scope,
      {"ApplyAdagrad", {var, accumulator}, Cast(scope, var, {rate}), {}, {}},
      rows, use_locking);
}

Node* ApplyAdadelta(const Scope& scope, const Variable& var,
                    const Variable& accumulator, const Variable& update,
                    const AdadeltaParameters& parameters, const Grad& grad,
                    bool use_locking) {
  const Grad rows = Prepared(scope, grad);
  return AddUpdate(
      scope,
      {"ApplyAdadelta",
       {var, accumulator, update},
       Cast(scope, var, {parameters.rate, parameters.rho, parameters.epsilon}),
       {},
       {}},
      rows, use_locking);
}

Node* ApplyAdam(const Scope& scope, const Variable& var, const Variable& m,
                const Variable& v, const AdamParameters& parameters,
                const Grad& grad, bool use_locking) {
  const Grad rows = Prepared(scope, grad);
  const std::vector<Output> p =
      Cast(scope, var,
           {ReadValue(scope, parameters.beta1_power),
            ReadValue(scope, parameters.beta2_power), parameters.rate,
            parameters.beta1, parameters.beta2, parameters.epsilon});
  if (rows.is_slices()) {
    return ApplySparseAdam(scope, var, m, v, p, rows, use_locking);
  }
  return AddUpdate(scope, {"ApplyAdam", {var, m, v}, p, {}, {}}, rows,
                   use_locking);
}

Node* ApplyRmsProp(const Scope& scope, const Variable& var, const Variable& rms,
                   const Variable& momentum, const Variable& mean,
                   const RmsPropParameters& parameters, const Grad& grad,
                   bool use_locking) {
  const Grad rows = Prepared(scope, grad);
  const std::vector<Output> p = Cast(scope, var,
                                     {parameters.rate, parameters.decay,
                                      parameters.momentum, parameters.epsilon});
  if (mean) {
    return AddUpdate(
        scope, {"ApplyCenteredRMSProp", {var, mean, rms, momentum}, p, {}, {}},
        rows, use_locking);
  }
  return AddUpdate(scope, {"ApplyRMSProp", {var, rms, momentum}, p, {}, {}},
                   rows, use_locking);
}

Node* ApplyFtrl(const Scope& scope, const Variable& var,
                const Variable& accumulator, const Variable& linear,
                const FtrlParameters& parameters, const Grad& grad,
                bool use_locking) {
  const Grad rows = Prepared(scope, grad);
  std::vector<Output> after = {parameters.rate, parameters.l1, parameters.l2};
  if (parameters.l2_shrinkage) after.push_back(parameters.l2_shrinkage);
  after.push_back(parameters.rate_power);
  return AddUpdate(scope,
                   {parameters.l2_shrinkage ? "ApplyFtrlV2" : "ApplyFtrl",
                    {var, accumulator, linear},
                    {},
                    Cast(scope, var, std::move(after)),
                    {}},
                   rows, use_locking);
}

}  // namespace sluice
