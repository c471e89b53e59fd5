// Equal, Less and the other comparisons, and the logic of bools.

#include "sluice/graph/shape_inference.h"
#include "sluice/ops/math/elementwise.h"

namespace sluice {
namespace {
namespace comparison {

// As Less and the like, but shapes that do not fit may give an answer.
absl::Status EqualityShape(ShapeContext& c) {
  absl::StatusOr<PartialShape> shape = BroadcastShapes(c.input(0), c.input(1));
  if (!shape.ok()) {
    if (c.attr<bool>("incompatible_shape_error")) return shape.status();
    shape = PartialShape();
  }
  c.set_output(0, *std::move(shape));
  return absl::OkStatus();
}

// Tensors whose shapes do not fit are not equal, if the node says so.
template <numeric::BinaryOp op>
struct EqualityKernel {
  template <typename T>
  absl::Status operator()(KernelContext& ctx) const {
    absl::Status status = BroadcastingKernel<op>().template operator()<T>(ctx);
    if (!absl::IsInvalidArgument(status) ||
        ctx.attr<bool>("incompatible_shape_error")) {
      return status;
    }
    SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, Shape()));
    out.mutable_data<bool>()[0] = op == numeric::BinaryOp::kNotEqual;
    return absl::OkStatus();
  }
};

absl::Status ApproximateShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.Merge(0, 1).status());
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

// Cut to an integer for integers, as in TensorFlow; without effect on those
// that no integer reaches.
template <typename T>
double Cut(double tolerance) {
  if constexpr (std::is_integral_v<T>) return std::trunc(tolerance);
  return static_cast<T>(tolerance);
}

template <typename T>
absl::Status ApproximatelyEqual(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& y = ctx.input(1);
  if (x.shape() != y.shape()) {
    return InvalidArgument(
        "x and y must be of the same shape. x shape: ", x.shape().DebugString(),
        ". y shape: ", y.shape().DebugString());
  }
  const double tolerance = Cut<T>(ctx.attr<float>("tolerance"));
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, x.shape()));
  const auto a = x.data<T>();
  const auto b = y.data<T>();
  const auto equal = out.mutable_data<bool>();
  for (int64_t i = 0; i < x.size(); ++i) {
    // In double, so that integers do not wrap.
    equal[i] = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) <
               tolerance;
  }
  return absl::OkStatus();
}

}  // namespace comparison
}  // namespace

SLUICE_OP(Equal)
    .Input("x: T")
    .Input("y: T")
    .Output("z: bool")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, int8, int16, int32, "
        "int64, complex64, quint8, qint8, qint32, string, bool, complex128}")
    .Attr("incompatible_shape_error: bool = true")
    .Commutative()
    .Shape(comparison::EqualityShape)
    .NotDifferentiable();
SLUICE_KERNEL(Equal, kCpu)
    .ForTypes<AllTypes>(
        "T", comparison::EqualityKernel<numeric::BinaryOp::kEqual>());

SLUICE_OP(NotEqual)
    .Input("x: T")
    .Input("y: T")
    .Output("z: bool")
    .Attr(
        "T: {bfloat16, half, float, double, uint8, int8, int16, int32, "
        "int64, complex64, quint8, qint8, qint32, string, bool, complex128}")
    .Attr("incompatible_shape_error: bool = true")
    .Commutative()
    .Shape(comparison::EqualityShape)
    .NotDifferentiable();
SLUICE_KERNEL(NotEqual, kCpu)
    .ForTypes<AllTypes>(
        "T", comparison::EqualityKernel<numeric::BinaryOp::kNotEqual>());

SLUICE_OP(Less)
    .Input("x: T")
    .Input("y: T")
    .Output("z: bool")
    .Attr("T: realnumbertype")
    .Shape(shapes::Broadcast)
    .NotDifferentiable();
SLUICE_KERNEL(Less, kCpu)
    .ForTypes<RealTypes>("T", BroadcastingKernel<numeric::BinaryOp::kLess>());

SLUICE_OP(LessEqual)
    .Input("x: T")
    .Input("y: T")
    .Output("z: bool")
    .Attr("T: realnumbertype")
    .Shape(shapes::Broadcast)
    .NotDifferentiable();
SLUICE_KERNEL(LessEqual, kCpu)
    .ForTypes<RealTypes>("T",
                         BroadcastingKernel<numeric::BinaryOp::kLessEqual>());

SLUICE_OP(Greater)
    .Input("x: T")
    .Input("y: T")
    .Output("z: bool")
    .Attr("T: realnumbertype")
    .Shape(shapes::Broadcast)
    .NotDifferentiable();
SLUICE_KERNEL(Greater, kCpu)
    .ForTypes<RealTypes>("T",
                         BroadcastingKernel<numeric::BinaryOp::kGreater>());

SLUICE_OP(GreaterEqual)
    .Input("x: T")
    .Input("y: T")
    .Output("z: bool")
    .Attr("T: realnumbertype")
    .Shape(shapes::Broadcast)
    .NotDifferentiable();
SLUICE_KERNEL(GreaterEqual, kCpu)
    .ForTypes<RealTypes>(
        "T", BroadcastingKernel<numeric::BinaryOp::kGreaterEqual>());

SLUICE_OP(ApproximateEqual)
    .Input("x: T")
    .Input("y: T")
    .Output("z: bool")
    .Attr("T: numbertype")
    .Attr("tolerance: float = 1e-05")
    .Commutative()
    .Shape(comparison::ApproximateShape)
    .NotDifferentiable();
SLUICE_KERNEL(ApproximateEqual, kCpu)
    .ForTypes<RealTypes>("T", []<typename T>(KernelContext& ctx) {
      return comparison::ApproximatelyEqual<T>(ctx);
    });

SLUICE_OP(LogicalAnd)
    .Input("x: bool")
    .Input("y: bool")
    .Output("z: bool")
    .Commutative()
    .Shape(shapes::Broadcast)
    .NotDifferentiable();
SLUICE_KERNEL(LogicalAnd, kCpu).Function([](KernelContext& ctx) {
  return BroadcastingKernel<numeric::BinaryOp::kAnd>().operator()<bool>(ctx);
});

SLUICE_OP(LogicalOr)
    .Input("x: bool")
    .Input("y: bool")
    .Output("z: bool")
    .Commutative()
    .Shape(shapes::Broadcast)
    .NotDifferentiable();
SLUICE_KERNEL(LogicalOr, kCpu).Function([](KernelContext& ctx) {
  return BroadcastingKernel<numeric::BinaryOp::kOr>().operator()<bool>(ctx);
});

SLUICE_OP(LogicalNot)
    .Input("x: bool")
    .Output("y: bool")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();
SLUICE_KERNEL(LogicalNot, kCpu).Function([](KernelContext& ctx) {
  return UnaryKernel<numeric::UnaryOp::kNot>().operator()<bool>(ctx);
});

}  // namespace sluice
