// Variable, VariableV2: a tensor that outlives steps, passed on as a reference.
// Sessions that have a node of the same name on the same device share it.
// TemporaryVariable: the same for the length of a step.

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/kernel/resource_epoch.h"
#include "sluice/ops/state/resource_handle.h"
#include "sluice/ops/state/variable_access.h"

namespace sluice {
namespace {
namespace variable_op {

// An empty shape of the old op stood for "unknown".
absl::Status OldVariableShape(ShapeContext& c) {
  const PartialShape shape = c.attr<PartialShape>("shape");
  const bool scalar = shape.known_rank() && shape.rank() == 0;
  c.set_output(0, scalar ? PartialShape() : shape);
  return absl::OkStatus();
}

// Finds the variable once and keeps it.
class RefVariableKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    SLUICE_ASSIGN_OR_RETURN(ResourceName name,
                            NameResource(node, UnsharedName::kNodeName));
    return std::make_unique<RefVariableKernel>(std::move(name),
                                               node.attr<DType>("dtype"));
  }
  RefVariableKernel(ResourceName name, DType dtype)
      : name_(std::move(name)), dtype_(dtype) {}

  absl::Status Run(KernelContext& ctx) override {
    MutexLock lock(mu_);
    const uint64_t epoch = ResourceEpoch();
    if (epoch_ != epoch) {
      SLUICE_ASSIGN_OR_RETURN(variable_, Find(ctx));
      epoch_ = epoch;
    }
    ctx.set_output_variable(0, variable_);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<RefPtr<VariableState>> Find(KernelContext& ctx) const {
    SLUICE_ASSIGN_OR_RETURN(RefPtr<RefVariable> variable,
                            ctx.resources().LookupOrCreate<RefVariable>(
                                name_.container, name_.name,
                                [&]() -> absl::StatusOr<RefPtr<RefVariable>> {
                                  return MakeRef<RefVariable>(dtype_);
                                }));
    // Another client's variable of that name; to share it would hand out
    // memory under a wrong type.
    if (variable->dtype() != dtype_) {
      return InvalidArgument(
          "Variable ", name_.name, " in container ", name_.container, " holds ",
          DTypeName(variable->dtype()), ", but node ", ctx.node().name(),
          " declares it as ", DTypeName(dtype_));
    }
    return variable;
  }

  const ResourceName name_;
  const DType dtype_;
  Mutex mu_;
  uint64_t epoch_ SLUICE_GUARDED_BY(mu_) = 0;
  RefPtr<VariableState> variable_ SLUICE_GUARDED_BY(mu_);
};

absl::Status IsInitialized(KernelContext& ctx) {
  ctx.set_output(0, Tensor::Scalar<bool>(ctx.variable(0).initialized()));
  return absl::OkStatus();
}

// Iterations of a loop must not share a temporary variable.
std::string TemporaryName(const KernelContext& ctx) {
  std::string name = ctx.attr<std::string>("var_name");
  if (name.empty()) name = ctx.node().name();
  return StrCat(name, ":", ctx.frame_and_iter());
}

absl::Status MakeTemporary(KernelContext& ctx) {
  const DType dtype = ctx.attr<DType>("dtype");
  const PartialShape shape = ctx.attr<PartialShape>("shape");
  if (!shape.FullyDefined()) {
    return InvalidArgument(
        "A temporary variable needs a fully defined shape, "
        "but has ",
        shape.DebugString());
  }
  SLUICE_ASSIGN_OR_RETURN(const Shape checked, Shape::Create(shape.dims()));
  SLUICE_ASSIGN_OR_RETURN(Tensor value, Tensor::Zeros(dtype, checked));
  auto variable = MakeRef<RefVariable>(dtype);
  variable->Assign(std::move(value));
  ctx.step().container_used = true;
  SLUICE_RETURN_IF_ERROR(ctx.resources().Create<RefVariable>(
      ctx.step().container(), TemporaryName(ctx), variable));
  ctx.set_output_variable(0, variable);
  return absl::OkStatus();
}

absl::Status DestroyTemporary(KernelContext& ctx) {
  ctx.set_output(0, ctx.variable(0).Read());
  return ctx.resources().Delete<RefVariable>(ctx.step().container(),
                                             TemporaryName(ctx));
}

}  // namespace variable_op
}  // namespace

SLUICE_OP(VariableV2)
    .Output("ref: Ref(dtype)")
    .Attr("shape: shape")
    .Attr("dtype: type")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Stateful()
    .Shape(shapes::FromShapeAttr)
    .NotDifferentiable();

SLUICE_OP(Variable)
    .Output("ref: Ref(dtype)")
    .Attr("shape: shape")
    .Attr("dtype: type")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Stateful()
    .Shape(variable_op::OldVariableShape)
    .NotDifferentiable();

SLUICE_OP(IsVariableInitialized)
    .Input("ref: Ref(dtype)")
    .Output("is_initialized: bool")
    .Attr("dtype: type")
    .AllowsUninitialized()
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_OP(TemporaryVariable)
    .Output("ref: Ref(dtype)")
    .Attr("shape: shape")
    .Attr("dtype: type")
    .Attr("var_name: string = ''")
    .Stateful()
    .Shape(shapes::FromShapeAttr);

SLUICE_OP(DestroyTemporaryVariable)
    .Input("ref: Ref(T)")
    .Output("value: T")
    .Attr("T: type")
    .Attr("var_name: string")
    .Shape(shapes::SameAsInput);

SLUICE_KERNEL(VariableV2, kCpu).Class<variable_op::RefVariableKernel>();
SLUICE_KERNEL(Variable, kCpu).Class<variable_op::RefVariableKernel>();
SLUICE_KERNEL(IsVariableInitialized, kCpu).Function(variable_op::IsInitialized);
SLUICE_KERNEL(TemporaryVariable, kCpu).Function(variable_op::MakeTemporary);
SLUICE_KERNEL(DestroyTemporaryVariable, kCpu)
    .Function(variable_op::DestroyTemporary);

}  // namespace sluice
