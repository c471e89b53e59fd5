// Ops that pass their input on, without a copy, and what they do to gradients.
#include "sluice/graph/scope.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace identity_ops {

absl::Status PassOn(KernelContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  return absl::OkStatus();
}

Grads SameGradient(Scope&, const Node&, std::span<const Output> dy) {
  return std::vector<Grad>(dy.begin(), dy.end());
}

Grads SameSlices(Scope&, const Node&, std::span<const Grad> dy) {
  return std::vector<Grad>(dy.begin(), dy.end());
}

absl::Status EachLikeItsInput(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    c.set_output(i, c.input(i));
    if (c.input_handle(i).dtype != DType::kInvalid) {
      c.set_output_handle(i, c.input_handle(i));
    }
  }
  return absl::OkStatus();
}

absl::Status PassAllOn(KernelContext& ctx) {
  for (int i = 0; i < ctx.num_inputs(); ++i) ctx.set_output(i, ctx.input(i));
  return absl::OkStatus();
}

Grads GradientPrevented(Scope&, const Node& op, std::span<const Output>) {
  return NotFound("Gradient explicitly disabled. Reason: b'",
                  op.attr<std::string>("message"), "'");
}

absl::Status EnsureShapeShape(ShapeContext& c) {
  const PartialShape shape = c.attr<PartialShape>("shape");
  if (shape.known_rank()) {
    SLUICE_RETURN_IF_ERROR(c.WithRank(0, shape.rank()).status());
  }
  SLUICE_ASSIGN_OR_RETURN(PartialShape merged, MergeShapes(shape, c.input(0)));
  c.set_output(0, std::move(merged));
  return absl::OkStatus();
}

class EnsureShapeKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<EnsureShapeKernel>(
        construction.attr<PartialShape>("shape"));
  }
  explicit EnsureShapeKernel(PartialShape shape) : shape_(std::move(shape)) {}
  absl::Status Run(KernelContext& ctx) override {
    const Shape& shape = ctx.input(0).shape();
    if (!shape_.CompatibleWith(shape)) {
      const Output input = ctx.node().input(0);
      return InvalidArgument(
          "Shape of tensor ", input ? input.node->name() : "", " ",
          shape.DebugString(), " is not compatible with expected shape ",
          shape_.DebugString(), ".");
    }
    return PassOn(ctx);
  }

 private:
  const PartialShape shape_;
};

}  // namespace identity_ops
}  // namespace

SLUICE_OP(Identity)
    .Input("input: T")
    .Output("output: T")
    .Attr("T: type")
    .Shape(shapes::SameAsInput)
    .Gradient(identity_ops::SameGradient)
    .SlicesGradient(identity_ops::SameSlices);

SLUICE_OP(IdentityN)
    .Input("input: T")
    .Output("output: T")
    .Attr("T: list(type) >= 1")
    .Shape(identity_ops::EachLikeItsInput)
    .Gradient(identity_ops::SameGradient)
    .SlicesGradient(identity_ops::SameSlices);

SLUICE_OP(RefIdentity)
    .Input("input: Ref(T)")
    .Output("output: Ref(T)")
    .Attr("T: type")
    .AllowsUninitialized()
    .Shape(shapes::SameAsInput)
    .Gradient(identity_ops::SameGradient)
    .SlicesGradient(identity_ops::SameSlices);

SLUICE_OP(StopGradient)
    .Input("input: T")
    .Output("output: T")
    .Attr("T: type")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();

SLUICE_OP(PreventGradient)
    .Input("input: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("message: string = ''")
    .Shape(shapes::SameAsInput)
    .Gradient(identity_ops::GradientPrevented);

// A buffer that is shared is never written to, so a snapshot needs no copy.
SLUICE_OP(Snapshot)
    .Input("input: T")
    .Output("output: T")
    .Attr("T: type")
    .Shape(shapes::SameAsInput);

SLUICE_OP(DeepCopy)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: type")
    .Stateful()
    .Shape(shapes::SameAsInput);

SLUICE_OP(EnsureShape)
    .Input("input: T")
    .Output("output: T")
    .Attr("shape: shape")
    .Attr("T: type")
    .Shape(identity_ops::EnsureShapeShape)
    .Gradient(identity_ops::SameGradient);

SLUICE_KERNEL(Identity, kCpu).Function(identity_ops::PassOn);
SLUICE_KERNEL(StopGradient, kCpu).Function(identity_ops::PassOn);
SLUICE_KERNEL(PreventGradient, kCpu).Function(identity_ops::PassOn);
SLUICE_KERNEL(Snapshot, kCpu).Function(identity_ops::PassOn);
SLUICE_KERNEL(IdentityN, kCpu).Function(identity_ops::PassAllOn);
SLUICE_KERNEL(EnsureShape, kCpu).Class<identity_ops::EnsureShapeKernel>();
SLUICE_KERNEL(RefIdentity, kCpu).Function([](KernelContext& ctx) {
  ctx.ForwardRef(0, 0);
  return absl::OkStatus();
});
SLUICE_KERNEL(DeepCopy, kCpu).Function([](KernelContext& ctx) {
  Tensor copy = ctx.input(0).Clone();
  if (!copy.initialized()) {
    return Tensor::Create(ctx.input(0).dtype(), ctx.input(0).shape()).status();
  }
  ctx.set_output(0, std::move(copy));
  return absl::OkStatus();
});

}  // namespace sluice
