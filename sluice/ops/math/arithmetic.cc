// Add, AddV2, Sub, Mul, MulNoNan, SquaredDifference, Pow, Maximum, Minimum.

#include "sluice/graph/shape_inference.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/math/broadcast_gradient.h"
#include "sluice/ops/math/elementwise.h"
#include "sluice/ops/math/python_math.h"

namespace sluice {
namespace {
namespace arithmetic {

using numeric::BinaryOp;

Grads AddGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output x = op.input(0), y = op.input(1), grad = dy[0];
  if (SameStaticShape(x, y, grad)) return std::vector<Grad>{grad, grad};
  const BroadcastSides sides = MakeStaticBroadcastSides(scope, x, y, grad);
  const Output dx = SumToSide(scope, grad, sides.x);
  return std::vector<Grad>{dx, SumToSide(scope, grad, sides.y)};
}

Grads SubGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output x = op.input(0), y = op.input(1), grad = dy[0];
  if (SameStaticShape(x, y, grad)) {
    return std::vector<Grad>{grad, scope.Add("Neg", {grad})};
  }
  const BroadcastSides sides = MakeStaticBroadcastSides(scope, x, y, grad);
  const Output dx = SumToSide(scope, grad, sides.x);
  const Output negative = scope.Add("Neg", {grad});
  return std::vector<Grad>{dx, SumToSide(scope, negative, sides.y)};
}

Grads MulGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output x = op.input(0), y = op.input(1), grad = dy[0];
  const DType dtype = python::DTypeOfOutput(grad);
  if (SameStaticShape(x, y, grad) &&
      (dtype == DType::kInt32 || dtype == DType::kFloat)) {
    const Output dx = scope.Add("Mul", {grad, y});
    return std::vector<Grad>{dx, scope.Add("Mul", {grad, x})};
  }
  const BroadcastSides sides = MakeStaticBroadcastSides(scope, x, y, grad);
  const Output dx = SumToSide(scope, scope.Add("Mul", {grad, y}), sides.x);
  const Output product = scope.Add("Mul", {x, grad});
  return std::vector<Grad>{dx, SumToSide(scope, product, sides.y)};
}

Grads MulNoNanGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output x = op.input(0), y = op.input(1), grad = dy[0];
  if (SameStaticShape(x, y, grad)) {
    const Output dx = scope.Add("MulNoNan", {grad, y});
    return std::vector<Grad>{dx, scope.Add("MulNoNan", {x, grad})};
  }
  const BroadcastSides sides = MakeBroadcastSides(scope, x, y);
  const Output dx = SumToSide(scope, scope.Add("MulNoNan", {grad, y}), sides.x);
  const Output product = scope.Add("MulNoNan", {x, grad});
  return std::vector<Grad>{dx, SumToSide(scope, product, sides.y)};
}

Grads SquaredDifferenceGrad(Scope& scope, const Node& op,
                            std::span<const Output> dy) {
  const Output x = op.input(0), y = op.input(1), grad = dy[0];
  const Scope after = scope.Control({grad});
  const Output two =
      after.Named("scalar").Const(ScalarOfType(python::DTypeOfOutput(grad), 2));
  const Output twice = after.Add("Mul", {two, grad});
  const Output dx = python::Mul(after, twice, python::Sub(after, x, y));
  if (SameStaticShape(x, y, grad)) {
    return std::vector<Grad>{dx, scope.Add("Neg", {dx})};
  }
  const BroadcastSides sides = MakeStaticBroadcastSides(scope, x, y, grad);
  const Output x_grad = SumToSide(scope, dx, sides.x);
  const Output y_grad = SumToSide(scope, dx, sides.y);
  return std::vector<Grad>{x_grad, scope.Add("Neg", {y_grad})};
}

// dy y x^(y-1) and dy x^y log(x); the latter 0 where x is not positive.
Grads PowGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output x = op.input(0), y = op.input(1), grad = dy[0];
  const BroadcastSides sides = MakeStaticBroadcastSides(scope, x, y, grad);
  const Output scaled = python::Mul(scope, grad, y);
  const Output power = scope.Add("Pow", {x, python::Sub(scope, y, 1)});
  const Output dx =
      SumToSide(scope, python::Mul(scope, scaled, power), sides.x);
  const Output positive = python::Call(scope, "Greater", x, 0);
  const Output ones = python::OnesLike(scope, x, python::DTypeOfOutput(x));
  const Output safe = python::Where(scope, positive, x, ones);
  const Output log = scope.Add("Log", {safe});
  const Output log_x =
      python::Where(scope, positive, log, ZerosLikeTensor(scope, x));
  const Output product = python::Mul(scope, grad, op.output(0));
  const Output y_grad = python::Mul(scope, product, log_x);
  return std::vector<Grad>{dx, SumToSide(scope, y_grad, sides.y)};
}

// The gradient goes to x where `selector` holds, else to y.
Grads ExtremeGrad(Scope& scope, const Node& op, Output grad,
                  std::string_view selector) {
  const Output x = op.input(0), y = op.input(1);
  const Output x_shape = ShapeTensor(scope, x);
  const Output y_shape = ShapeTensor(scope, y);
  const Output grad_shape = ShapeTensor(scope, grad);
  const Output zeros =
      python::Zeros(scope, grad_shape, python::DTypeOfOutput(grad));
  const Output mask = scope.Add(selector, {x, y});
  const std::vector<Output> axes =
      scope.AddMulti("BroadcastGradientArgs", {x_shape, y_shape});
  if (axes.size() != 2) return scope.status();
  const Output dx = python::Where(scope, mask, grad, zeros);
  const Output x_sum = scope.Add("Sum", {dx, axes[0]});
  const Output x_grad = scope.Add("Reshape", {x_sum, x_shape});
  const Output dy = python::Where(scope, mask, zeros, grad);
  const Output y_sum = scope.Add("Sum", {dy, axes[1]});
  return std::vector<Grad>{x_grad, scope.Add("Reshape", {y_sum, y_shape})};
}

Grads MaximumGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return ExtremeGrad(scope, op, dy[0], "GreaterEqual");
}
Grads MinimumGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return ExtremeGrad(scope, op, dy[0], "LessEqual");
}

struct PowKernel {
  template <typename T>
  absl::Status operator()(KernelContext& ctx) const {
    if constexpr (std::is_integral_v<T>) {
      const Tensor& y = ctx.input(1);
      if (ctx.input(0).size() > 0 &&
          numeric::AnyNegative(y.data<T>().data(), y.size())) {
        return InvalidArgument(
            "Integers to negative integer powers are not allowed");
      }
    }
    return BroadcastingKernel<BinaryOp::kPow, Cost::kExpensive>().operator()<T>(
        ctx);
  }
};

}  // namespace arithmetic
}  // namespace

SLUICE_OP(Add)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64,"
        " complex64, complex128, string}")
    .Shape(shapes::Broadcast)
    .Gradient(arithmetic::AddGrad);
SLUICE_KERNEL(Add, kCpu)
    .ForTypes<TypeList<float, double, int32_t, int64_t, std::string>>(
        "T", BroadcastingKernel<numeric::BinaryOp::kAdd>());

SLUICE_OP(AddV2)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64,"
        " complex64, complex128}")
    .Aggregate()
    .Commutative()
    .Shape(shapes::Broadcast)
    .Gradient(arithmetic::AddGrad);
SLUICE_KERNEL(AddV2, kCpu)
    .ForTypes<RealTypes>("T", BroadcastingKernel<numeric::BinaryOp::kAdd>());

SLUICE_OP(Sub)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, "
        "int32, int64, complex64, complex128}")
    .Shape(shapes::Broadcast)
    .Gradient(arithmetic::SubGrad);
SLUICE_KERNEL(Sub, kCpu).ForTypes<RealTypes>(
    "T", BroadcastingKernel<numeric::BinaryOp::kSub>());

SLUICE_OP(Mul)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, "
        "int32, int64, complex64, complex128}")
    .Commutative()
    .Shape(shapes::Broadcast)
    .Gradient(arithmetic::MulGrad);
SLUICE_KERNEL(Mul, kCpu).ForTypes<RealTypes>(
    "T", BroadcastingKernel<numeric::BinaryOp::kMul>());

SLUICE_OP(MulNoNan)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr("T: {half, float, double, complex64, complex128}")
    .Shape(shapes::Broadcast)
    .Gradient(arithmetic::MulNoNanGrad);
SLUICE_KERNEL(MulNoNan, kCpu)
    .ForTypes<FloatTypes>("T",
                          BroadcastingKernel<numeric::BinaryOp::kMulNoNan>());

SLUICE_OP(SquaredDifference)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, int32, int64, complex64, "
        "complex128}")
    .Commutative()
    .Shape(shapes::Broadcast)
    .Gradient(arithmetic::SquaredDifferenceGrad);
SLUICE_KERNEL(SquaredDifference, kCpu)
    .ForTypes<RealTypes>(
        "T", BroadcastingKernel<numeric::BinaryOp::kSquaredDifference>());

SLUICE_OP(Pow)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, float, half, double, int32, int64, complex64, "
        "complex128}")
    .Shape(shapes::Broadcast)
    .Gradient(arithmetic::PowGrad);
SLUICE_KERNEL(Pow, kCpu).ForTypes<RealTypes>("T", arithmetic::PowKernel());

SLUICE_OP(Maximum)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr("T: {bfloat16, half, float, double, int32, int64}")
    .Shape(shapes::Broadcast)
    .Gradient(arithmetic::MaximumGrad);
SLUICE_KERNEL(Maximum, kCpu)
    .ForTypes<RealTypes>("T",
                         BroadcastingKernel<numeric::BinaryOp::kMaximum>());

SLUICE_OP(Minimum)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr("T: {bfloat16, half, float, double, int32, int64}")
    .Shape(shapes::Broadcast)
    .Gradient(arithmetic::MinimumGrad);
SLUICE_KERNEL(Minimum, kCpu)
    .ForTypes<RealTypes>("T",
                         BroadcastingKernel<numeric::BinaryOp::kMinimum>());

}  // namespace sluice
