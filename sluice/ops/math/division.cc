// Div, RealDiv, FloorDiv, TruncateDiv, FloorMod, Mod, TruncateMod, DivNoNan,
// Xdivy, Xlogy.

#include "sluice/graph/shape_inference.h"
#include "sluice/ops/math/broadcast_gradient.h"
#include "sluice/ops/math/elementwise.h"
#include "sluice/ops/math/python_math.h"

namespace sluice {
namespace {
namespace division {

using numeric::BinaryOp;

// dy / y and -dy x / y^2, by the given way to divide.
Grads QuotientGrad(Scope& scope, const Node& op, Output grad,
                   Output (*divide)(const Scope&, Output, Output)) {
  const Output x = op.input(0), y = op.input(1);
  const BroadcastSides sides = MakeBroadcastSides(scope, x, y);
  const Output dx = SumToSide(scope, divide(scope, grad, y), sides.x);
  const Output negative = scope.Add("Neg", {x});
  const Output factor = divide(scope, divide(scope, negative, y), y);
  const Output product = python::Mul(scope, grad, factor);
  return std::vector<Grad>{dx, SumToSide(scope, product, sides.y)};
}

Grads DivGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return QuotientGrad(scope, op, dy[0], [](const Scope& s, Output x, Output y) {
    return python::TrueDiv(s, x, y);
  });
}
Grads RealDivGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return QuotientGrad(scope, op, dy[0], [](const Scope& s, Output x, Output y) {
    return s.Add("RealDiv", {x, y});
  });
}
Grads DivNoNanGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return QuotientGrad(scope, op, dy[0], [](const Scope& s, Output x, Output y) {
    return s.Named("div_no_nan").Add("DivNoNan", {x, y});
  });
}

Grads FloorModGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output x = op.input(0), y = op.input(1);
  const BroadcastSides sides = MakeBroadcastSides(scope, x, y);
  const Output quotient = scope.Add("FloorDiv", {x, y});
  const Output dx = SumToSide(scope, dy[0], sides.x);
  const Output product =
      python::Mul(scope, dy[0], scope.Add("Neg", {quotient}));
  return std::vector<Grad>{dx, SumToSide(scope, product, sides.y)};
}

// Of x f(y), 0 where x is 0: the derivative by x is f(y) where x is not 0.
Grads XTimesGrad(Scope& scope, const Node& op, Output grad,
                 std::string_view partial_x_op,
                 Output (*partial_y)(const Scope&, Output, Output)) {
  const Output x = op.input(0), y = op.input(1);
  const DType dtype = python::DTypeOfOutput(x);
  const BroadcastSides sides = MakeBroadcastSides(scope, x, y);
  const Scope after = scope.Control({grad});
  const Output zero = python::CastNumber(after, 0, dtype);
  const Output not_zero =
      python::Cast(after, after.Add("NotEqual", {x, zero}), dtype);
  const Output dx = after.Add(partial_x_op, {not_zero, y});
  const Output dy = partial_y(after, x, y);
  const Output x_grad = SumToSide(after, python::Mul(after, dx, grad), sides.x);
  return std::vector<Grad>{
      x_grad, SumToSide(after, python::Mul(after, dy, grad), sides.y)};
}

Grads XlogyGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return XTimesGrad(scope, op, dy[0], "Xlogy",
                    [](const Scope& s, Output x, Output y) {
                      return s.Add("Xdivy", {x, y});
                    });
}
Grads XdivyGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return XTimesGrad(scope, op, dy[0], "Xdivy",
                    [](const Scope& s, Output x, Output y) {
                      const Output negative = s.Add("Neg", {x});
                      return s.Add("Xdivy", {negative, python::Power(s, y, 2)});
                    });
}

Grads NoGrad(Scope&, const Node&, std::span<const Output>) {
  return std::vector<Grad>(2);
}

// Looks for integer zeros in the divisor first.
template <BinaryOp op, Cost cost = Cost::kModerate>
struct DivisionKernel {
  template <typename T>
  absl::Status operator()(KernelContext& ctx) const {
    if constexpr (std::is_integral_v<T>) {
      const Tensor& y = ctx.input(1);
      if (ctx.input(0).size() > 0 &&
          numeric::AnyZero(y.data<T>().data(), y.size())) {
        return InvalidArgument("Integer division by zero");
      }
    }
    return BroadcastingKernel<op, cost>().template operator()<T>(ctx);
  }
};

}  // namespace division
}  // namespace

SLUICE_OP(Div)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, "
        "int32, int64, complex64, complex128}")
    .Shape(shapes::Broadcast)
    .Gradient(division::DivGrad);
SLUICE_KERNEL(Div, kCpu).ForTypes<RealTypes>(
    "T", division::DivisionKernel<numeric::BinaryOp::kDiv>());

SLUICE_OP(RealDiv)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, "
        "int32, int64, complex64, complex128}")
    .Shape(shapes::Broadcast)
    .Gradient(division::RealDivGrad);
SLUICE_KERNEL(RealDiv, kCpu)
    .ForTypes<FloatTypes>("T", BroadcastingKernel<numeric::BinaryOp::kDiv>());

SLUICE_OP(FloorDiv)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, "
        "int32, int64, complex64, complex128}")
    .Shape(shapes::Broadcast)
    .Gradient(division::NoGrad);
SLUICE_KERNEL(FloorDiv, kCpu)
    .ForTypes<RealTypes>(
        "T", division::DivisionKernel<numeric::BinaryOp::kFloorDiv>());

SLUICE_OP(TruncateDiv)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, "
        "int32, int64, complex64, complex128}")
    .Shape(shapes::Broadcast)
    .Gradient(division::NoGrad);
SLUICE_KERNEL(TruncateDiv, kCpu)
    .ForTypes<TypeList<int32_t, int64_t>>(
        "T", division::DivisionKernel<numeric::BinaryOp::kDiv>());

SLUICE_OP(FloorMod)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr("T: {int32, int64, bfloat16, half, float, double}")
    .Shape(shapes::Broadcast)
    .Gradient(division::FloorModGrad);
SLUICE_KERNEL(FloorMod, kCpu)
    .ForTypes<RealTypes>("T",
                         division::DivisionKernel<numeric::BinaryOp::kFloorMod,
                                                  Cost::kExpensive>());

SLUICE_OP(Mod)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr("T: {int32, int64, half, half, bfloat16, float, double}")
    .Shape(shapes::Broadcast);
SLUICE_KERNEL(Mod, kCpu).ForTypes<RealTypes>(
    "T", division::DivisionKernel<numeric::BinaryOp::kTruncateMod,
                                  Cost::kExpensive>());

SLUICE_OP(TruncateMod)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr("T: {int32, int64, bfloat16, half, float, double}")
    .Shape(shapes::Broadcast);
SLUICE_KERNEL(TruncateMod, kCpu)
    .ForTypes<RealTypes>(
        "T", division::DivisionKernel<numeric::BinaryOp::kTruncateMod,
                                      Cost::kExpensive>());

SLUICE_OP(DivNoNan)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr("T: {half, float, double, complex64, complex128}")
    .Shape(shapes::Broadcast)
    .Gradient(division::DivNoNanGrad);
SLUICE_KERNEL(DivNoNan, kCpu)
    .ForTypes<FloatTypes>("T",
                          BroadcastingKernel<numeric::BinaryOp::kDivNoNan>());

SLUICE_OP(Xdivy)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr("T: {half, float, double, complex64, complex128}")
    .Shape(shapes::Broadcast)
    .Gradient(division::XdivyGrad);
SLUICE_KERNEL(Xdivy, kCpu)
    .ForTypes<FloatTypes>("T", BroadcastingKernel<numeric::BinaryOp::kXdivy>());

SLUICE_OP(Xlogy)
    .Input("x: T")
    .Input("y: T")
    .Output("z: T")
    .Attr("T: {half, float, double, complex64, complex128}")
    .Shape(shapes::Broadcast)
    .Gradient(division::XlogyGrad);
SLUICE_KERNEL(Xlogy, kCpu)
    .ForTypes<FloatTypes>(
        "T", BroadcastingKernel<numeric::BinaryOp::kXlogy, Cost::kModerate>());

}  // namespace sluice
