// Exp, Expm1, Log, Log1p, the hyperbolic functions, Sigmoid, and what is near
// the error and gamma functions.

#include <cmath>
#include <numbers>

#include "sluice/graph/shape_inference.h"
#include "sluice/ops/math/elementwise.h"
#include "sluice/ops/math/python_math.h"

namespace sluice {
namespace {
namespace exponential {

// dy times f(x), where f is an op.
Grads TimesOp(Scope& scope, const Node& op, Output grad, std::string_view f) {
  const Scope after = scope.Control({grad});
  const Output factor = after.Add(f, {op.input(0)});
  return std::vector<Grad>{python::Mul(after, grad, factor)};
}

Grads ExpGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Scope after = scope.Control({dy[0]});
  return std::vector<Grad>{python::Mul(after, dy[0], op.output(0))};
}
Grads Expm1Grad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return TimesOp(scope, op, dy[0], "Exp");
}
Grads LogGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return TimesOp(scope, op, dy[0], "Reciprocal");
}
Grads Log1pGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Scope after = scope.Control({dy[0]});
  const Output inverse =
      after.Add("Reciprocal", {python::Add(after, 1.0, op.input(0))});
  return std::vector<Grad>{python::Mul(after, dy[0], inverse)};
}
Grads SinhGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return TimesOp(scope, op, dy[0], "Cosh");
}
Grads CoshGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return TimesOp(scope, op, dy[0], "Sinh");
}
Grads LgammaGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return TimesOp(scope, op, dy[0], "Digamma");
}

Grads TanhGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Scope after = scope.Control({dy[0]});
  return std::vector<Grad>{after.Add("TanhGrad", {op.output(0), dy[0]})};
}
Grads SigmoidGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Scope after = scope.Control({dy[0]});
  return std::vector<Grad>{after.Add("SigmoidGrad", {op.output(0), dy[0]})};
}

// Of b (1 - a^2).
Grads TanhGradGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output a = op.input(0), b = op.input(1);
  const Scope after = scope.Control({dy[0]});
  const Output scaled = python::Mul(after, python::Mul(after, dy[0], -2.0), b);
  const Output da = python::Mul(after, scaled, a);
  return std::vector<Grad>{da, after.Add("TanhGrad", {a, dy[0]})};
}

// Of b a (1 - a).
Grads SigmoidGradGrad(Scope& scope, const Node& op,
                      std::span<const Output> dy) {
  const Output a = op.input(0), b = op.input(1);
  const Scope after = scope.Control({dy[0]});
  const Output product = python::Mul(after, dy[0], b);
  const Output twice = python::Mul(after, python::Mul(after, 2.0, product), a);
  const Output da = python::Sub(after, product, twice);
  return std::vector<Grad>{da, after.Add("SigmoidGrad", {a, dy[0]})};
}

// dy divided by f of the result.
Grads OverOp(Scope& scope, const Node& op, Output grad, std::string_view f) {
  const Scope after = scope.Control({grad});
  const Output divisor = after.Add(f, {op.output(0)});
  return std::vector<Grad>{python::TrueDiv(after, grad, divisor)};
}
Grads AsinhGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return OverOp(scope, op, dy[0], "Cosh");
}
Grads AcoshGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return OverOp(scope, op, dy[0], "Sinh");
}
Grads AtanhGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Scope after = scope.Control({dy[0]});
  const Output square = after.Add("Square", {op.input(0)});
  const Output one = python::Constant(after, 1, python::DTypeOfOutput(dy[0]));
  const Output inverse =
      after.Add("Reciprocal", {after.Add("Sub", {one, square})});
  return std::vector<Grad>{python::Mul(after, dy[0], inverse)};
}

// dy factor exp(-x^2).
Grads GaussGrad(Scope& scope, const Node& op, Output grad, double factor) {
  const Output constant =
      python::Constant(scope, factor, python::DTypeOfOutput(grad));
  const Scope after = scope.Control({grad});
  const Output scaled = python::Mul(after, grad, constant);
  const Output negative =
      after.Add("Neg", {after.Add("Square", {op.input(0)})});
  return std::vector<Grad>{
      python::Mul(after, scaled, after.Add("Exp", {negative}))};
}
Grads ErfGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return GaussGrad(scope, op, dy[0], 2 / std::sqrt(std::numbers::pi));
}
Grads ErfcGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return GaussGrad(scope, op, dy[0], -2 / std::sqrt(std::numbers::pi));
}

}  // namespace exponential
}  // namespace

SLUICE_OP(Exp)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(exponential::ExpGrad);
SLUICE_KERNEL(Exp, kCpu).ForTypes<FloatTypes>(
    "T", UnaryKernel<numeric::UnaryOp::kExp, Cost::kModerate>());

SLUICE_OP(Expm1)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(exponential::Expm1Grad);
SLUICE_KERNEL(Expm1, kCpu)
    .ForTypes<FloatTypes>(
        "T", UnaryKernel<numeric::UnaryOp::kExpm1, Cost::kExpensive>());

SLUICE_OP(Log)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(exponential::LogGrad);
SLUICE_KERNEL(Log, kCpu).ForTypes<FloatTypes>(
    "T", UnaryKernel<numeric::UnaryOp::kLog, Cost::kModerate>());

SLUICE_OP(Log1p)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(exponential::Log1pGrad);
SLUICE_KERNEL(Log1p, kCpu)
    .ForTypes<FloatTypes>(
        "T", UnaryKernel<numeric::UnaryOp::kLog1p, Cost::kModerate>());

SLUICE_OP(Sinh)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(exponential::SinhGrad);
SLUICE_KERNEL(Sinh, kCpu)
    .ForTypes<FloatTypes>(
        "T", UnaryKernel<numeric::UnaryOp::kSinh, Cost::kExpensive>());

SLUICE_OP(Cosh)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(exponential::CoshGrad);
SLUICE_KERNEL(Cosh, kCpu)
    .ForTypes<FloatTypes>(
        "T", UnaryKernel<numeric::UnaryOp::kCosh, Cost::kExpensive>());

SLUICE_OP(Tanh)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(exponential::TanhGrad);
SLUICE_KERNEL(Tanh, kCpu)
    .ForTypes<FloatTypes>(
        "T", UnaryKernel<numeric::UnaryOp::kTanh, Cost::kModerate>());

SLUICE_OP(TanhGrad)
    .Input("y: T")
    .Input("dy: T")
    .Output("z: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(exponential::TanhGradGrad);
SLUICE_KERNEL(TanhGrad, kCpu)
    .ForTypes<FloatTypes>("T", SameShapeKernel<numeric::BinaryOp::kTanhGrad>());

SLUICE_OP(Asinh)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(exponential::AsinhGrad);
SLUICE_KERNEL(Asinh, kCpu)
    .ForTypes<FloatTypes>(
        "T", UnaryKernel<numeric::UnaryOp::kAsinh, Cost::kExpensive>());

SLUICE_OP(Acosh)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(exponential::AcoshGrad);
SLUICE_KERNEL(Acosh, kCpu)
    .ForTypes<FloatTypes>(
        "T", UnaryKernel<numeric::UnaryOp::kAcosh, Cost::kExpensive>());

SLUICE_OP(Atanh)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(exponential::AtanhGrad);
SLUICE_KERNEL(Atanh, kCpu)
    .ForTypes<FloatTypes>(
        "T", UnaryKernel<numeric::UnaryOp::kAtanh, Cost::kExpensive>());

SLUICE_OP(Sigmoid)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(exponential::SigmoidGrad);
SLUICE_KERNEL(Sigmoid, kCpu)
    .ForTypes<FloatTypes>(
        "T", UnaryKernel<numeric::UnaryOp::kSigmoid, Cost::kModerate>());

SLUICE_OP(SigmoidGrad)
    .Input("y: T")
    .Input("dy: T")
    .Output("z: T")
    .Attr("T: {bfloat16, half, float, double, complex64, complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(exponential::SigmoidGradGrad);
SLUICE_KERNEL(SigmoidGrad, kCpu)
    .ForTypes<FloatTypes>("T",
                          SameShapeKernel<numeric::BinaryOp::kSigmoidGrad>());

SLUICE_OP(Erf)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double}")
    .Shape(shapes::SameAsInput)
    .Gradient(exponential::ErfGrad);
SLUICE_KERNEL(Erf, kCpu).ForTypes<FloatTypes>(
    "T", UnaryKernel<numeric::UnaryOp::kErf, Cost::kExpensive>());

SLUICE_OP(Erfc)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double}")
    .Shape(shapes::SameAsInput)
    .Gradient(exponential::ErfcGrad);
SLUICE_KERNEL(Erfc, kCpu)
    .ForTypes<FloatTypes>(
        "T", UnaryKernel<numeric::UnaryOp::kErfc, Cost::kExpensive>());

SLUICE_OP(Lgamma)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double}")
    .Shape(shapes::SameAsInput)
    .Gradient(exponential::LgammaGrad);
SLUICE_KERNEL(Lgamma, kCpu)
    .ForTypes<FloatTypes>(
        "T", UnaryKernel<numeric::UnaryOp::kLgamma, Cost::kExpensive>());

SLUICE_OP(Digamma)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double}")
    .Shape(shapes::SameAsInput);
SLUICE_KERNEL(Digamma, kCpu)
    .ForTypes<FloatTypes>(
        "T", UnaryKernel<numeric::UnaryOp::kDigamma, Cost::kExpensive>());

}  // namespace sluice
