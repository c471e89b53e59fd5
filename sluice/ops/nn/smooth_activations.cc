// Elu, Selu, Softplus, Softsign and the ops that compute their derivatives.

#include "sluice/graph/shape_inference.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/math/elementwise.h"
#include "sluice/ops/math/python_math.h"

namespace sluice {
namespace {
namespace smooth_activations {

Grads EluGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  return std::vector<Grad>{scope.Add("EluGrad", {dy[0], op.output(0)})};
}
Grads SeluGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  return std::vector<Grad>{scope.Add("SeluGrad", {dy[0], op.output(0)})};
}

// Of EluGrad and SeluGrad, by the gradient and by the activation's result.
Grads ExponentialSecondGradient(Scope& scope, const Node& op,
                                std::span<const Output> dy) {
  const Output y = op.input(1);
  const Output by_grad = scope.Add(op.type(), {dy[0], y});
  const Output negative = python::Call(scope, "Less", y, 0);
  const Output product = python::Mul(scope, dy[0], op.input(0));
  const Output zeros = ZerosLikeTensor(scope, y);
  return std::vector<Grad>{by_grad,
                           python::Where(scope, negative, product, zeros)};
}

Grads SoftplusGradient(Scope& scope, const Node& op,
                       std::span<const Output> dy) {
  const Output slope = scope.Add("Sigmoid", {op.input(0)});
  return std::vector<Grad>{python::Mul(scope, dy[0], slope)};
}

// Of dy / (1 + exp(-x)).
Grads SoftplusSecondGradient(Scope& scope, const Node& op,
                             std::span<const Output> dy) {
  const Output x = op.input(1);
  const Scope after = scope.Control({dy[0]});
  const Output by_grad = after.Add("SoftplusGrad", {dy[0], x});
  const Output product = python::Mul(after, dy[0], op.input(0));
  const Output falling = after.Add("Exp", {after.Add("Neg", {x})});
  const Output part = python::Add(after, falling, 2.0);
  const Output divisor = python::Add(after, part, after.Add("Exp", {x}));
  return std::vector<Grad>{by_grad, python::TrueDiv(after, product, divisor)};
}

Grads SoftsignGradient(Scope& scope, const Node& op,
                       std::span<const Output> dy) {
  return std::vector<Grad>{scope.Add("SoftsignGrad", {dy[0], op.input(0)})};
}

}  // namespace smooth_activations
}  // namespace

SLUICE_OP(Elu)
    .Input("features: T")
    .Output("activations: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Shape(shapes::SameAsInput)
    .Gradient(smooth_activations::EluGradient);
SLUICE_KERNEL(Elu, kCpu).ForTypes<FloatTypes>(
    "T", UnaryKernel<numeric::UnaryOp::kElu, Cost::kModerate>());

SLUICE_OP(EluGrad)
    .Input("gradients: T")
    .Input("outputs: T")
    .Output("backprops: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Shape(shapes::MergeAllInputs)
    .Gradient(smooth_activations::ExponentialSecondGradient);
SLUICE_KERNEL(EluGrad, kCpu)
    .ForTypes<FloatTypes>("T", SameShapeKernel<numeric::BinaryOp::kEluGrad>());

SLUICE_OP(Selu)
    .Input("features: T")
    .Output("activations: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Shape(shapes::SameAsInput)
    .Gradient(smooth_activations::SeluGradient);
SLUICE_KERNEL(Selu, kCpu)
    .ForTypes<FloatTypes>(
        "T", UnaryKernel<numeric::UnaryOp::kSelu, Cost::kModerate>());

SLUICE_OP(SeluGrad)
    .Input("gradients: T")
    .Input("outputs: T")
    .Output("backprops: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Shape(shapes::MergeAllInputs)
    .Gradient(smooth_activations::ExponentialSecondGradient);
SLUICE_KERNEL(SeluGrad, kCpu)
    .ForTypes<FloatTypes>("T", SameShapeKernel<numeric::BinaryOp::kSeluGrad>());

SLUICE_OP(Softplus)
    .Input("features: T")
    .Output("activations: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Shape(shapes::SameAsInput)
    .Gradient(smooth_activations::SoftplusGradient);
SLUICE_KERNEL(Softplus, kCpu)
    .ForTypes<FloatTypes>(
        "T", UnaryKernel<numeric::UnaryOp::kSoftplus, Cost::kModerate>());

SLUICE_OP(SoftplusGrad)
    .Input("gradients: T")
    .Input("features: T")
    .Output("backprops: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Shape(shapes::MergeAllInputs)
    .Gradient(smooth_activations::SoftplusSecondGradient);
SLUICE_KERNEL(SoftplusGrad, kCpu)
    .ForTypes<FloatTypes>(
        "T",
        SameShapeKernel<numeric::BinaryOp::kSoftplusGrad, Cost::kModerate>());

SLUICE_OP(Softsign)
    .Input("features: T")
    .Output("activations: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Shape(shapes::SameAsInput)
    .Gradient(smooth_activations::SoftsignGradient);
SLUICE_KERNEL(Softsign, kCpu)
    .ForTypes<FloatTypes>("T", UnaryKernel<numeric::UnaryOp::kSoftsign>());

SLUICE_OP(SoftsignGrad)
    .Input("gradients: T")
    .Input("features: T")
    .Output("backprops: T")
    .Attr("T: {half, bfloat16, float, double}")
    .Shape(shapes::MergeAllInputs);
SLUICE_KERNEL(SoftsignGrad, kCpu)
    .ForTypes<FloatTypes>("T",
                          SameShapeKernel<numeric::BinaryOp::kSoftsignGrad>());

}  // namespace sluice
