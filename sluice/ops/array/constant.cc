// Values that come from outside of a run: constants and placeholders.
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace constant_ops {

absl::Status ConstShape(ShapeContext& c) {
  c.set_output(0, c.attr<Tensor>("value").shape());
  return absl::OkStatus();
}

class ConstKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    Tensor value = construction.attr<Tensor>("value");
    const DType dtype = construction.attr<DType>("dtype");
    if (value.dtype() != dtype) {
      return InvalidArgument("Type mismatch between value (",
                             DTypeName(value.dtype()), ") and dtype (",
                             DTypeName(dtype), ") of constant ",
                             construction.node().name());
    }
    return std::make_unique<ConstKernel>(value.Owned());
  }
  explicit ConstKernel(Tensor value) : value_(std::move(value)) {}
  absl::Status Run(KernelContext& ctx) override {
    ctx.set_output(0, value_);
    return absl::OkStatus();
  }

 private:
  const Tensor value_;
};

// Graphs of producers this old say "scalar" where they mean "unknown".
constexpr int kLastProducerWithoutScalarPlaceholders = 21;

absl::Status PlaceholderShape(ShapeContext& c) {
  PartialShape shape = c.attr<PartialShape>("shape");
  if (shape == PartialShape::Scalar() &&
      c.node().graph().versions().producer <=
          kLastProducerWithoutScalarPlaceholders) {
    shape = PartialShape();
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status NotFed(KernelContext& ctx) {
  const PartialShape shape = ctx.attr<PartialShape>("shape");
  std::string text;
  if (shape.known_rank() && shape.rank() > 0) {
    text = StrCat(" and shape ", shape.DebugString());
  }
  return InvalidArgument("You must feed a value for placeholder tensor '",
                         ctx.node().name(), "' with dtype ",
                         DTypeName(ctx.node().output_type(0)), text);
}

absl::Status DefaultShape(ShapeContext& c) {
  // The value fed may be less precise than the default, so only the attribute
  // counts.
  const PartialShape shape = c.attr<PartialShape>("shape");
  SLUICE_RETURN_IF_ERROR(MergeShapes(c.input(0), shape).status());
  c.set_output(0, shape);
  return absl::OkStatus();
}

}  // namespace constant_ops
}  // namespace

SLUICE_OP(Const)
    .Output("output: dtype")
    .Attr("value: tensor")
    .Attr("dtype: type")
    .Shape(constant_ops::ConstShape)
    .NotDifferentiable();

SLUICE_OP(HostConst)
    .Output("output: dtype")
    .Attr("value: tensor")
    .Attr("dtype: type")
    .Shape(constant_ops::ConstShape);

SLUICE_OP(Placeholder)
    .Output("output: dtype")
    .Attr("dtype: type")
    .Attr("shape: shape = ?")
    .Shape(constant_ops::PlaceholderShape);

SLUICE_OP(PlaceholderV2)
    .Output("output: dtype")
    .Attr("dtype: type")
    .Attr("shape: shape")
    .Shape(shapes::FromShapeAttr);

SLUICE_OP(PlaceholderWithDefault)
    .Input("input: dtype")
    .Output("output: dtype")
    .Attr("dtype: type")
    .Attr("shape: shape")
    .Shape(constant_ops::DefaultShape)
    .Gradient([](Scope&, const Node&, std::span<const Output> dy) -> Grads {
      return std::vector<Grad>{dy[0]};
    });

SLUICE_KERNEL(Const, kCpu).Class<constant_ops::ConstKernel>();
SLUICE_KERNEL(HostConst, kCpu).Class<constant_ops::ConstKernel>();
SLUICE_KERNEL(Placeholder, kCpu).Function(constant_ops::NotFed);
SLUICE_KERNEL(PlaceholderV2, kCpu).Function(constant_ops::NotFed);
SLUICE_KERNEL(PlaceholderWithDefault, kCpu).Function([](KernelContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  return absl::OkStatus();
});

}  // namespace sluice
