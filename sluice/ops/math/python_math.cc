#include "sluice/ops/math/python_math.h"

#include <numeric>

#include "sluice/ops/array/gradient_pieces.h"

namespace sluice::python {
namespace {

Output Binary(const Scope& scope, std::string_view name, std::string_view op,
              const Operand& x, const Operand& y) {
  if (x.tensor && y.tensor) {
    return scope.Named(name).Add(op, {x.tensor, y.tensor});
  }
  if (!x.tensor && !y.tensor) {  // An earlier error.
    return scope.Named(name).Add(op, {x.tensor, y.tensor});
  }
  const DType dtype = DTypeOfOutput(x.tensor ? x.tensor : y.tensor);
  const Scope inner = scope.NameScope(name);
  const auto value = [&](const Operand& operand, std::string_view argument) {
    if (operand.tensor) return operand.tensor;
    return inner.Named(argument).Const(ScalarOfType(dtype, operand.number));
  };
  const Output left = value(x, "x");
  const Output right = value(y, "y");
  return AddAs(inner, op, {left, right});
}

}  // namespace

DType DTypeOfOutput(Output x) {
  return x ? BaseType(TypeOf(x)) : DType::kInvalid;
}

Output Add(const Scope& scope, Operand x, Operand y) {
  return Binary(scope, "add", "AddV2", x, y);
}
Output Sub(const Scope& scope, Operand x, Operand y) {
  return Binary(scope, "sub", "Sub", x, y);
}
Output Mul(const Scope& scope, Operand x, Operand y) {
  return Binary(scope, "mul", "Mul", x, y);
}
Output TrueDiv(const Scope& scope, Operand x, Operand y) {
  return Binary(scope, "truediv", "RealDiv", x, y);
}
Output FloorDiv(const Scope& scope, Operand x, Operand y) {
  return Binary(scope, "floordiv", "FloorDiv", x, y);
}
Output Mod(const Scope& scope, Operand x, Operand y) {
  return Binary(scope, "mod", "FloorMod", x, y);
}
Output Power(const Scope& scope, Operand x, Operand y) {
  return Binary(scope, "pow", "Pow", x, y);
}
Output And(const Scope& scope, Output x, Output y) {
  return Binary(scope, "and", "LogicalAnd", x, y);
}
Output Call(const Scope& scope, std::string_view op, Operand x, Operand y) {
  return Binary(scope, op, op, x, y);
}

Output Cast(const Scope& scope, Output x, DType dtype) {
  if (x && DTypeOfOutput(x) == dtype) return x;
  return scope.Add("Cast", {x}, {{"DstT", dtype}});
}

Output CastNumber(const Scope& scope, float number, DType dtype) {
  const Scope inner = scope.NameScope("Cast");
  const Output x = inner.Named("x").Scalar(number);
  if (dtype == DType::kFloat) return x;
  return AddAs(inner, "Cast", {x}, {{"DstT", dtype}});
}

Output Zeros(const Scope& scope, Output shape, DType dtype) {
  const Scope inner = scope.NameScope("zeros");
  return AddAs(inner, "Fill", {shape, inner.Const(ScalarOfType(dtype, 0))});
}

Output OnesLike(const Scope& scope, Output x, DType dtype) {
  const Scope inner = scope.NameScope("ones_like");
  const Output shape = ShapeTensor(inner, x);
  return AddAs(inner, "Fill", {shape, inner.Const(ScalarOfType(dtype, 1))});
}

Output ExpandDims(const Scope& scope, Output x, int32_t dim) {
  const Scope inner = scope.NameScope("ExpandDims");
  return AddAs(inner, "ExpandDims", {x, inner.Named("dim").Scalar(dim)});
}

Output FillOne(const Scope& scope, Output dims) {
  const Scope inner = scope.NameScope("Fill");
  return AddAs(inner, "Fill", {dims, inner.Named("value").Scalar<int32_t>(1)});
}

Output SumKeepingDims(const Scope& scope, Output x, int32_t axis) {
  const Scope inner = scope.NameScope("Sum");
  return AddAs(inner, "Sum", {x, inner.Named("reduction_indices").Scalar(axis)},
               {{"keep_dims", true}});
}

Output ProdAll(const Scope& scope, Output x) {
  Output axes;
  if (x && ShapeOf(x).known_rank()) {
    std::vector<int32_t> all(ShapeOf(x).rank());
    std::iota(all.begin(), all.end(), 0);
    axes = scope.Ints(std::move(all));
  } else {
    axes = RangeOf(scope, 0, RankTensor(scope, x), 1);
  }
  return scope.Add("Prod", {x, axes});
}

Output Constant(const Scope& scope, double value, DType dtype) {
  return scope.Const(ScalarOfType(dtype, value));
}

Output Where(const Scope& scope, Output condition, Output x, Output y) {
  return scope.Add("Select", {condition, x, y});
}

Output MatMul(const Scope& scope, Output a, Output b, bool adjoint_a,
              bool adjoint_b) {
  const auto is_matrix = [](Output x) {
    return x && ShapeOf(x).known_rank() && ShapeOf(x).rank() == 2;
  };
  if (is_matrix(a) && is_matrix(b)) {
    return scope.Add("MatMul", {a, b},
                     {{"transpose_a", adjoint_a}, {"transpose_b", adjoint_b}});
  }
  return scope.Named("MatMul").Add(
      "BatchMatMulV2", {a, b}, {{"adj_x", adjoint_a}, {"adj_y", adjoint_b}});
}

}  // namespace sluice::python
