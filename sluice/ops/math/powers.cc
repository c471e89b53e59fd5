// Neg, Abs, Sign, Square, Sqrt, Rsqrt, Reciprocal, Inv and the ops that compute
// their derivatives.

#include "sluice/graph/shape_inference.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/math/elementwise.h"
#include "sluice/ops/math/python_math.h"

namespace sluice {
namespace {
namespace powers {

Grads NegGrad(Scope& scope, const Node&, std::span<const Output> dy) {
  return std::vector<Grad>{scope.Add("Neg", {dy[0]})};
}

Grads AbsGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output sign = scope.Add("Sign", {op.input(0)});
  return std::vector<Grad>{python::Mul(scope, dy[0], sign)};
}

Grads SignGrad(Scope& scope, const Node& op, std::span<const Output>) {
  const Output x = op.input(0);
  const Output shape = ShapeTensor(scope, x);
  return std::vector<Grad>{
      python::Zeros(scope, shape, python::DTypeOfOutput(x))};
}

Grads SquareGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output x = op.input(0);
  // So that 2 x is not computed long before it is needed.
  const Scope after = scope.Control({dy[0]});
  const Output two = python::Constant(after, 2, python::DTypeOfOutput(x));
  const Output twice = after.Add("Mul", {x, two});
  return std::vector<Grad>{after.Add("Mul", {dy[0], twice})};
}

Grads SqrtGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return std::vector<Grad>{scope.Add("SqrtGrad", {op.output(0), dy[0]})};
}
Grads RsqrtGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return std::vector<Grad>{scope.Add("RsqrtGrad", {op.output(0), dy[0]})};
}
Grads ReciprocalGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return std::vector<Grad>{scope.Add("ReciprocalGrad", {op.output(0), dy[0]})};
}

// Of b / (2 a).
Grads SqrtGradGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Scope after = scope.Control({dy[0]});
  const Output quotient = python::TrueDiv(after, dy[0], op.input(0));
  const Output negative = after.Add("Neg", {quotient});
  const Output da = python::Mul(after, negative, op.output(0));
  return std::vector<Grad>{da, python::Mul(after, 0.5, quotient)};
}

// Of -b a^3 / 2.
Grads RsqrtGradGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output a = op.input(0), b = op.input(1);
  const Scope after = scope.Control({dy[0]});
  const Output scaled = python::Mul(after, python::Mul(after, -1.5, dy[0]), b);
  const Output da = python::Mul(after, scaled, after.Add("Square", {a}));
  return std::vector<Grad>{da, after.Add("RsqrtGrad", {a, dy[0]})};
}

// Of -b a^2.
Grads ReciprocalGradGrad(Scope& scope, const Node& op,
                         std::span<const Output> dy) {
  const Output a = op.input(0), b = op.input(1);
  const Scope after = scope.Control({dy[0]});
  const Output scaled = python::Mul(after, python::Mul(after, dy[0], -2.0), b);
  const Output da = python::Mul(after, scaled, a);
  return std::vector<Grad>{da, after.Add("ReciprocalGrad", {a, dy[0]})};
}

}  // namespace powers
}  // namespace

SLUICE_OP(Neg)
    .Input("x: T")
    .Output("y: T")
    .Attr(
        "T: {bfloat16, half, float, double, int32, int64, complex64, "
        "complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(powers::NegGrad);
SLUICE_KERNEL(Neg, kCpu).ForTypes<RealTypes>(
    "T", UnaryKernel<numeric::UnaryOp::kNeg>());

SLUICE_OP(Abs)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, int8, int16, int32, int64}")
    .Shape(shapes::SameAsInput)
    .Gradient(powers::AbsGrad);
SLUICE_KERNEL(Abs, kCpu).ForTypes<RealTypes>(
    "T", UnaryKernel<numeric::UnaryOp::kAbs>());

SLUICE_OP(Sign)
    .Input("x: T")
    .Output("y: T")
    .Attr(
        "T: {bfloat16, half, float, double, int32, int64, complex64, "
        "complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(powers::SignGrad);
SLUICE_KERNEL(Sign, kCpu)
    .ForTypes<RealTypes>("T", UnaryKernel<numeric::UnaryOp::kSign>());

SLUICE_OP(Square)
    .Input("x: T")
    .Output("y: T")
    .Attr(
        "T: {bfloat16, half, float, double, int32, int64, complex64, "
        "complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(powers::SquareGrad);
SLUICE_KERNEL(Square, kCpu)
    .ForTypes<RealTypes>("T", UnaryKernel<numeric::UnaryOp::kSquare>());

SLUICE_OP(Sqrt)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(powers::SqrtGrad);
SLUICE_KERNEL(Sqrt, kCpu)
    .ForTypes<FloatTypes>("T", UnaryKernel<numeric::UnaryOp::kSqrt>());

SLUICE_OP(SqrtGrad)
    .Input("y: T")
    .Input("dy: T")
    .Output("z: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(powers::SqrtGradGrad);
SLUICE_KERNEL(SqrtGrad, kCpu)
    .ForTypes<FloatTypes>("T", SameShapeKernel<numeric::BinaryOp::kSqrtGrad>());

SLUICE_OP(Rsqrt)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(powers::RsqrtGrad);
SLUICE_KERNEL(Rsqrt, kCpu)
    .ForTypes<FloatTypes>("T", UnaryKernel<numeric::UnaryOp::kRsqrt>());

SLUICE_OP(RsqrtGrad)
    .Input("y: T")
    .Input("dy: T")
    .Output("z: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(powers::RsqrtGradGrad);
SLUICE_KERNEL(RsqrtGrad, kCpu)
    .ForTypes<FloatTypes>("T",
                          SameShapeKernel<numeric::BinaryOp::kRsqrtGrad>());

SLUICE_OP(Reciprocal)
    .Input("x: T")
    .Output("y: T")
    .Attr(
        "T: {bfloat16, half, float, double, int32, int64, complex64, "
        "complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(powers::ReciprocalGrad);
SLUICE_KERNEL(Reciprocal, kCpu)
    .ForTypes<FloatTypes>("T", UnaryKernel<numeric::UnaryOp::kReciprocal>());

SLUICE_OP(ReciprocalGrad)
    .Input("y: T")
    .Input("dy: T")
    .Output("z: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(powers::ReciprocalGradGrad);
SLUICE_KERNEL(ReciprocalGrad, kCpu)
    .ForTypes<FloatTypes>(
        "T", SameShapeKernel<numeric::BinaryOp::kReciprocalGrad>());

SLUICE_OP(Inv)
    .Input("x: T")
    .Output("y: T")
    .Attr(
        "T: {bfloat16, half, float, double, int32, int64, complex64, "
        "complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(powers::ReciprocalGrad);
SLUICE_KERNEL(Inv, kCpu).ForTypes<FloatTypes>(
    "T", UnaryKernel<numeric::UnaryOp::kReciprocal>());

SLUICE_OP(InvGrad)
    .Input("y: T")
    .Input("dy: T")
    .Output("z: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(powers::ReciprocalGradGrad);
SLUICE_KERNEL(InvGrad, kCpu)
    .ForTypes<FloatTypes>(
        "T", SameShapeKernel<numeric::BinaryOp::kReciprocalGrad>());

}  // namespace sluice
