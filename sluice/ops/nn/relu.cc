// Relu, Relu6, LeakyRelu and the ops that compute their derivatives.

#include "sluice/graph/shape_inference.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/math/elementwise.h"
#include "sluice/ops/math/python_math.h"

namespace sluice {
namespace {
namespace relu {

Grads ReluGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  return std::vector<Grad>{scope.Add("ReluGrad", {dy[0], op.output(0)})};
}
Grads Relu6Gradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  return std::vector<Grad>{scope.Add("Relu6Grad", {dy[0], op.output(0)})};
}
Grads LeakyReluGradient(Scope& scope, const Node& op,
                        std::span<const Output> dy) {
  return std::vector<Grad>{scope.Add("LeakyReluGrad", {dy[0], op.input(0)},
                                     {{"alpha", op.attr<float>("alpha")}})};
}

// These are linear in the gradient and have no slope by the features.
Grads SecondGradient(Scope& scope, const Node& op, Output grad, AttrMap attrs) {
  const Output x = op.input(1);
  const Output dx = scope.Add(op.type(), {grad, x}, std::move(attrs));
  const Output shape = ShapeTensor(scope, x);
  return std::vector<Grad>{
      dx, python::Zeros(scope, shape, python::DTypeOfOutput(x))};
}
Grads PlainSecondGradient(Scope& scope, const Node& op,
                          std::span<const Output> dy) {
  return SecondGradient(scope, op, dy[0], {});
}
Grads LeakySecondGradient(Scope& scope, const Node& op,
                          std::span<const Output> dy) {
  return SecondGradient(scope, op, dy[0], {{"alpha", op.attr<float>("alpha")}});
}

template <typename T>
class LeakyReluKernel : public Kernel {
 public:
  explicit LeakyReluKernel(float alpha) : alpha_(static_cast<T>(alpha)) {}
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<LeakyReluKernel>(construction.attr<float>("alpha"));
  }

  absl::Status Run(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.OutputLike(0));
    const T* from = x.data<T>().data();
    T* to = out.mutable_data<T>().data();
    ctx.ParallelFor(
        x.size(),
        [&](int64_t begin, int64_t end) {
          numeric::LeakyRelu(to + begin, from + begin, alpha_, end - begin);
        },
        Nanos(Cost::kCheap));
    return absl::OkStatus();
  }

 private:
  const T alpha_;
};

template <typename T>
class LeakyReluGradKernel : public Kernel {
 public:
  explicit LeakyReluGradKernel(float alpha) : alpha_(static_cast<T>(alpha)) {}
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<LeakyReluGradKernel>(
        construction.attr<float>("alpha"));
  }

  absl::Status Run(KernelContext& ctx) override {
    const Tensor& grad = ctx.input(0);
    const Tensor& x = ctx.input(1);
    if (grad.shape() != x.shape()) {
      return InvalidArgument("gradients ", grad.shape().DebugString(),
                             " and features ", x.shape().DebugString(),
                             " must have the same shape");
    }
    SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.OutputFrom({0, 1}, 0, x.shape()));
    const T* from = grad.data<T>().data();
    const T* features = x.data<T>().data();
    T* to = out.mutable_data<T>().data();
    ctx.ParallelFor(
        x.size(),
        [&](int64_t begin, int64_t end) {
          numeric::LeakyReluGrad(to + begin, from + begin, features + begin,
                                 alpha_, end - begin);
        },
        Nanos(Cost::kCheap));
    return absl::OkStatus();
  }

 private:
  const T alpha_;
};

}  // namespace relu
}  // namespace

SLUICE_OP(Relu)
    .Input("features: T")
    .Output("activations: T")
    .Attr(
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, "
        "uint16, half, uint32, uint64, qint8}")
    .Shape(shapes::SameAsInput)
    .Gradient(relu::ReluGradient);
SLUICE_KERNEL(Relu, kCpu)
    .ForTypes<RealTypes>("T", UnaryKernel<numeric::UnaryOp::kRelu>());

SLUICE_OP(ReluGrad)
    .Input("gradients: T")
    .Input("features: T")
    .Output("backprops: T")
    .Attr("T: realnumbertype")
    .Shape(shapes::MergeAllInputs)
    .Gradient(relu::PlainSecondGradient);
SLUICE_KERNEL(ReluGrad, kCpu)
    .ForTypes<RealTypes>("T", SameShapeKernel<numeric::BinaryOp::kReluGrad>());

SLUICE_OP(Relu6)
    .Input("features: T")
    .Output("activations: T")
    .Attr("T: realnumbertype")
    .Shape(shapes::SameAsInput)
    .Gradient(relu::Relu6Gradient);
SLUICE_KERNEL(Relu6, kCpu)
    .ForTypes<RealTypes>("T", UnaryKernel<numeric::UnaryOp::kRelu6>());

SLUICE_OP(Relu6Grad)
    .Input("gradients: T")
    .Input("features: T")
    .Output("backprops: T")
    .Attr("T: realnumbertype")
    .Shape(shapes::MergeAllInputs)
    .Gradient(relu::PlainSecondGradient);
SLUICE_KERNEL(Relu6Grad, kCpu)
    .ForTypes<RealTypes>("T", SameShapeKernel<numeric::BinaryOp::kRelu6Grad>());

SLUICE_OP(LeakyRelu)
    .Input("features: T")
    .Output("activations: T")
    .Attr("alpha: float = 0.2")
    .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
    .Shape(shapes::SameAsInput)
    .Gradient(relu::LeakyReluGradient);
SLUICE_KERNEL(LeakyRelu, kCpu)
    .ClassForTypes<FloatTypes, relu::LeakyReluKernel>("T");

SLUICE_OP(LeakyReluGrad)
    .Input("gradients: T")
    .Input("features: T")
    .Output("backprops: T")
    .Attr("alpha: float = 0.2")
    .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
    .Shape(shapes::MergeAllInputs)
    .Gradient(relu::LeakySecondGradient);
SLUICE_KERNEL(LeakyReluGrad, kCpu)
    .ClassForTypes<FloatTypes, relu::LeakyReluGradKernel>("T");

}  // namespace sluice
