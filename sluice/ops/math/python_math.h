// What Python's operators on tensors add to a graph, under the names they give:
// x * y is a Mul called "mul", 2 * x has its constant at "mul/x", and so on.
// For gradients, which must come out node for node.
#pragma once

#include "sluice/graph/scope.h"

namespace sluice::python {

// An operand: a tensor, or a number that becomes a constant of the other
// operand's type.
struct Operand {
  Operand(Output t) : tensor(t) {}  // NOLINT: written as in Python.
  Operand(double n) : number(n) {}  // NOLINT
  Output tensor;
  double number = 0;
};

Output Add(const Scope& scope, Operand x, Operand y);
Output Sub(const Scope& scope, Operand x, Operand y);
Output Mul(const Scope& scope, Operand x, Operand y);
Output TrueDiv(const Scope& scope, Operand x, Operand y);
Output FloorDiv(const Scope& scope, Operand x, Operand y);
Output Mod(const Scope& scope, Operand x, Operand y);
Output Power(const Scope& scope, Operand x, Operand y);  // x ** y
Output And(const Scope& scope, Output x, Output y);

// A binary op function (tf.maximum(x, 1), tf.greater(x, 0)): named after the
// op, with constants at <op>/x and <op>/y.
Output Call(const Scope& scope, std::string_view op, Operand x, Operand y);

// tf.cast(x, dtype): nothing if it is of that type already.
Output Cast(const Scope& scope, Output x, DType dtype);
// tf.cast(number, dtype): a float32 constant at Cast/x, cast if need be.
Output CastNumber(const Scope& scope, float number, DType dtype);
// tf.zeros(shape, dtype) and tf.ones_like(x, dtype).
Output Zeros(const Scope& scope, Output shape, DType dtype);
Output OnesLike(const Scope& scope, Output x, DType dtype);
// tf.expand_dims(x, dim).
Output ExpandDims(const Scope& scope, Output x, int32_t dim);
// tf.fill(dims, 1).
Output FillOne(const Scope& scope, Output dims);
// tf.reduce_sum(x, axis, keepdims=True).
Output SumKeepingDims(const Scope& scope, Output x, int32_t axis);
// tf.reduce_prod(x).
Output ProdAll(const Scope& scope, Output x);
// tf.constant(value, dtype).
Output Constant(const Scope& scope, double value, DType dtype);
// tf.where(condition, x, y).
Output Where(const Scope& scope, Output condition, Output x, Output y);
// tf.matmul(a, b, adjoint_a, adjoint_b) of matrices or stacks of them.
Output MatMul(const Scope& scope, Output a, Output b, bool adjoint_a,
              bool adjoint_b);

// The element type of x, never a reference.
DType DTypeOfOutput(Output x);

}  // namespace sluice::python
