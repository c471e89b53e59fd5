// Sin, Cos, Tan and their inverses.

#include "sluice/graph/shape_inference.h"
#include "sluice/ops/math/broadcast_gradient.h"
#include "sluice/ops/math/elementwise.h"
#include "sluice/ops/math/python_math.h"

namespace sluice {
namespace {
namespace trigonometry {

Grads SinGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Scope after = scope.Control({dy[0]});
  const Output cos = after.Add("Cos", {op.input(0)});
  return std::vector<Grad>{python::Mul(after, dy[0], cos)};
}

Grads CosGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Scope after = scope.Control({dy[0]});
  const Output negative = after.Add("Neg", {dy[0]});
  const Output sin = after.Add("Sin", {op.input(0)});
  return std::vector<Grad>{python::Mul(after, negative, sin)};
}

Grads TanGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Scope after = scope.Control({dy[0]});
  const Output secant =
      after.Add("Reciprocal", {after.Add("Cos", {op.input(0)})});
  const Output square = after.Add("Square", {secant});
  return std::vector<Grad>{python::Mul(after, square, dy[0])};
}

// 1 / sqrt(1 - x^2).
Output InverseRoot(const Scope& after, Output x, Output grad) {
  const Output square = after.Add("Square", {x});
  const Output one = python::Constant(after, 1, python::DTypeOfOutput(grad));
  const Output root = after.Add("Sqrt", {after.Add("Sub", {one, square})});
  return after.Add("Reciprocal", {root});
}

Grads AsinGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Scope after = scope.Control({dy[0]});
  const Output inverse = InverseRoot(after, op.input(0), dy[0]);
  return std::vector<Grad>{python::Mul(after, dy[0], inverse)};
}

Grads AcosGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Scope after = scope.Control({dy[0]});
  const Output inverse = InverseRoot(after, op.input(0), dy[0]);
  const Output negative = after.Add("Neg", {dy[0]});
  return std::vector<Grad>{python::Mul(after, negative, inverse)};
}

Grads AtanGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Scope after = scope.Control({dy[0]});
  const Output square = after.Add("Square", {op.input(0)});
  const Output one = python::Constant(after, 1, python::DTypeOfOutput(dy[0]));
  const Output inverse =
      after.Add("Reciprocal", {after.Add("Add", {one, square})});
  return std::vector<Grad>{python::Mul(after, dy[0], inverse)};
}

Grads Atan2Grad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output y = op.input(0), x = op.input(1);
  const Scope after = scope.Control({dy[0]});
  const Output x_square = after.Add("Square", {x});
  const Output y_square = after.Add("Square", {y});
  const Output scaled =
      python::TrueDiv(after, dy[0], python::Add(after, x_square, y_square));
  const Output y_grad = python::Mul(after, x, scaled);
  const Output negative = after.Add("Neg", {y});
  const Output x_grad = python::Mul(after, negative, scaled);
  if (SameStaticShape(y, x, dy[0])) return std::vector<Grad>{y_grad, x_grad};
  // TensorFlow leaves this out, and refuses operands that were broadcast.
  const BroadcastSides sides = MakeBroadcastSides(scope, y, x);
  return std::vector<Grad>{SumToSide(scope, y_grad, sides.x),
                           SumToSide(scope, x_grad, sides.y)};
}

}  // namespace trigonometry
}  // namespace

SLUICE_OP(Sin)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(trigonometry::SinGrad);
SLUICE_KERNEL(Sin, kCpu).ForTypes<FloatTypes>(
    "T", UnaryKernel<numeric::UnaryOp::kSin, Cost::kExpensive>());

SLUICE_OP(Cos)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(trigonometry::CosGrad);
SLUICE_KERNEL(Cos, kCpu).ForTypes<FloatTypes>(
    "T", UnaryKernel<numeric::UnaryOp::kCos, Cost::kExpensive>());

SLUICE_OP(Tan)
    .Input("x: T")
    .Output("y: T")
    .Attr(
        "T: {bfloat16, half, float, double, int32, int64, complex64, "
        "complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(trigonometry::TanGrad);
SLUICE_KERNEL(Tan, kCpu).ForTypes<FloatTypes>(
    "T", UnaryKernel<numeric::UnaryOp::kTan, Cost::kExpensive>());

SLUICE_OP(Asin)
    .Input("x: T")
    .Output("y: T")
    .Attr(
        "T: {bfloat16, half, float, double, int32, int64, complex64, "
        "complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(trigonometry::AsinGrad);
SLUICE_KERNEL(Asin, kCpu)
    .ForTypes<FloatTypes>(
        "T", UnaryKernel<numeric::UnaryOp::kAsin, Cost::kExpensive>());

SLUICE_OP(Acos)
    .Input("x: T")
    .Output("y: T")
    .Attr(
        "T: {bfloat16, half, float, double, int32, int64, complex64, "
        "complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(trigonometry::AcosGrad);
SLUICE_KERNEL(Acos, kCpu)
    .ForTypes<FloatTypes>(
        "T", UnaryKernel<numeric::UnaryOp::kAcos, Cost::kExpensive>());

SLUICE_OP(Atan)
    .Input("x: T")
    .Output("y: T")
    .Attr(
        "T: {bfloat16, half, float, double, int32, int64, complex64, "
        "complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(trigonometry::AtanGrad);
SLUICE_KERNEL(Atan, kCpu)
    .ForTypes<FloatTypes>(
        "T", UnaryKernel<numeric::UnaryOp::kAtan, Cost::kExpensive>());

SLUICE_OP(Atan2)
    .Input("y: T")
    .Input("x: T")
    .Output("z: T")
    .Attr("T: {bfloat16, half, float, double}")
    .Shape(shapes::Broadcast)
    .Gradient(trigonometry::Atan2Grad);
SLUICE_KERNEL(Atan2, kCpu)
    .ForTypes<FloatTypes>(
        "T", BroadcastingKernel<numeric::BinaryOp::kAtan2, Cost::kExpensive>());

}  // namespace sluice
