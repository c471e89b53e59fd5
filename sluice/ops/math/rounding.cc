// Floor, Ceil, Round, Rint, and the tests for NaN and infinity.

#include "sluice/graph/shape_inference.h"
#include "sluice/ops/math/elementwise.h"

namespace sluice {
namespace {
namespace rounding {

Grads NoGrad(Scope&, const Node&, std::span<const Output>) {
  return std::vector<Grad>(1);
}

}  // namespace rounding
}  // namespace

SLUICE_OP(Floor)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double}")
    .Shape(shapes::SameAsInput)
    .Gradient(rounding::NoGrad);
SLUICE_KERNEL(Floor, kCpu)
    .ForTypes<FloatTypes>("T", UnaryKernel<numeric::UnaryOp::kFloor>());

SLUICE_OP(Ceil)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double}")
    .Shape(shapes::SameAsInput)
    .Gradient(rounding::NoGrad);
SLUICE_KERNEL(Ceil, kCpu)
    .ForTypes<FloatTypes>("T", UnaryKernel<numeric::UnaryOp::kCeil>());

SLUICE_OP(Round)
    .Input("x: T")
    .Output("y: T")
    .Attr(
        "T: {bfloat16, half, float, double, int32, int64, complex64, "
        "complex128}")
    .Shape(shapes::SameAsInput)
    .Gradient(rounding::NoGrad);
SLUICE_KERNEL(Round, kCpu)
    .ForTypes<RealTypes>("T", UnaryKernel<numeric::UnaryOp::kRound>());

SLUICE_OP(Rint)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: {bfloat16, half, float, double}")
    .Shape(shapes::SameAsInput)
    .Gradient(rounding::NoGrad);
SLUICE_KERNEL(Rint, kCpu)
    .ForTypes<FloatTypes>("T", UnaryKernel<numeric::UnaryOp::kRound>());

SLUICE_OP(IsNan)
    .Input("x: T")
    .Output("y: bool")
    .Attr("T: {bfloat16, half, float, double}")
    .Shape(shapes::SameAsInput);
SLUICE_KERNEL(IsNan, kCpu)
    .ForTypes<FloatTypes>("T", UnaryKernel<numeric::UnaryOp::kIsNan>());

SLUICE_OP(IsInf)
    .Input("x: T")
    .Output("y: bool")
    .Attr("T: {bfloat16, half, float, double}")
    .Shape(shapes::SameAsInput);
SLUICE_KERNEL(IsInf, kCpu)
    .ForTypes<FloatTypes>("T", UnaryKernel<numeric::UnaryOp::kIsInf>());

SLUICE_OP(IsFinite)
    .Input("x: T")
    .Output("y: bool")
    .Attr("T: {bfloat16, half, float, double}")
    .Shape(shapes::SameAsInput);
SLUICE_KERNEL(IsFinite, kCpu)
    .ForTypes<FloatTypes>("T", UnaryKernel<numeric::UnaryOp::kIsFinite>());

}  // namespace sluice
