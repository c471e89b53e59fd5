// Resource variables: the handle, reads, and what is asked about them. Writes
// are in assign.cc and scatter.cc. A read is a snapshot that later writes do
// not change: it shares the variable's memory, and writers copy while somebody
// holds it.

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/state/resource_handle.h"
#include "sluice/ops/state/variable_access.h"

namespace sluice {
namespace {
namespace resource_variable {

absl::Status HandleShapes(ShapeContext& c) {
  c.set_output(0, PartialShape::Scalar());
  c.set_output_handle(0,
                      {c.attr<DType>("dtype"), c.attr<PartialShape>("shape")});
  return absl::OkStatus();
}

// Gives the same tensor every time, so a run allocates nothing.
class HandleKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    SLUICE_ASSIGN_OR_RETURN(ResourceName name,
                            NameResource(node, UnsharedName::kNodeName));
    Tensor handle = MakeHandle(node.device(), name, kVariableType);
    ResourceHandle& value = handle.mutable_data<ResourceHandle>()[0];
    value.value_dtype = node.attr<DType>("dtype");
    value.value_shape = node.attr<PartialShape>("shape");
    return std::make_unique<HandleKernel>(std::move(handle));
  }
  explicit HandleKernel(Tensor handle) : handle_(std::move(handle)) {}
  absl::Status Run(KernelContext& ctx) override {
    ctx.set_output(0, handle_);
    return absl::OkStatus();
  }

 private:
  const Tensor handle_;
};

absl::Status ReadShape(ShapeContext& c) {
  const HandleShape& handle = c.input_handle(0);
  const DType dtype = c.attr<DType>("dtype");
  if (handle.dtype != DType::kInvalid && handle.dtype != dtype) {
    return InvalidArgument(
        "Trying to read variable with wrong dtype. Expected ",
        DTypeName(handle.dtype), " got ", DTypeName(dtype));
  }
  c.set_output(0, handle.shape);
  return absl::OkStatus();
}

absl::Status Read(KernelContext& ctx, LockedVariables::Caches& caches) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<VariableState> variable,
                          FindVariable(ctx, 0, caches[0]));
  Tensor value = variable->Read();
  if (!value.initialized()) return UninitializedVariable(ctx, 0);
  if (value.dtype() != ctx.node().output_type(0)) {
    return InvalidArgument(
        "Trying to read variable with wrong dtype. Expected ",
        DTypeName(ctx.node().output_type(0)), " got ",
        DTypeName(value.dtype()));
  }
  ctx.set_output(0, std::move(value));
  return absl::OkStatus();
}

Grads ReadGradient(Scope&, const Node&, std::span<const Output> dy) {
  return std::vector<Grad>{dy[0]};
}

Grads ReadSlicesGradient(Scope&, const Node&, std::span<const Grad> dy) {
  return std::vector<Grad>{dy[0]};
}

absl::Status IsInitialized(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const ResourceHandle* handle,
                          HandleAt(ctx, 0, kVariableType));
  auto variable =
      ctx.resources().Lookup<VariableState>(handle->container, handle->name);
  ctx.set_output(
      0, Tensor::Scalar<bool>(variable.ok() && (*variable)->initialized()));
  return absl::OkStatus();
}

absl::Status ShapeOfVariable(KernelContext& ctx,
                             LockedVariables::Caches& caches) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<VariableState> variable,
                          FindVariable(ctx, 0, caches[0]));
  const Tensor value = variable->Read();
  if (!value.initialized()) return UninitializedVariable(ctx, 0);
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, {value.rank()}));
  for (int i = 0; i < value.rank(); ++i) {
    if (out.dtype() == DType::kInt64) {
      out.mutable_data<int64_t>()[i] = value.dim(i);
    } else if (value.dim(i) > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("VariableShape: dimension ", i, " is ",
                             value.dim(i), ", which does not fit into int32");
    } else {
      out.mutable_data<int32_t>()[i] = static_cast<int32_t>(value.dim(i));
    }
  }
  return absl::OkStatus();
}

absl::Status VariableShapeShape(ShapeContext& c) {
  const PartialShape& shape = c.input_handle(0).shape;
  c.set_output(0, {shape.known_rank() ? shape.rank() : -1});
  return absl::OkStatus();
}

absl::Status Destroy(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const ResourceHandle* handle,
                          HandleAt(ctx, 0, kVariableType));
  const absl::Status deleted =
      ctx.resources().Delete<VariableState>(handle->container, handle->name);
  if (absl::IsNotFound(deleted) && ctx.attr<bool>("ignore_lookup_error")) {
    return absl::OkStatus();
  }
  return deleted;
}

}  // namespace resource_variable
}  // namespace

SLUICE_OP(VarHandleOp)
    .Output("resource: resource")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Attr("dtype: type")
    .Attr("shape: shape")
    .Stateful()
    .Shape(resource_variable::HandleShapes);

SLUICE_OP(ReadVariableOp)
    .Input("resource: resource")
    .Output("value: dtype")
    .Attr("dtype: type")
    .Stateful()
    .Shape(resource_variable::ReadShape)
    .Gradient(resource_variable::ReadGradient)
    .SlicesGradient(resource_variable::ReadSlicesGradient);

SLUICE_OP(VarIsInitializedOp)
    .Input("resource: resource")
    .Output("is_initialized: bool")
    .Stateful()
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_OP(VariableShape)
    .Input("input: resource")
    .Output("output: out_type")
    .Attr("out_type: {int32, int64} = DT_INT32")
    .Stateful()
    .Shape(resource_variable::VariableShapeShape)
    .NotDifferentiable();

SLUICE_OP(DestroyResourceOp)
    .Input("resource: resource")
    .Attr("ignore_lookup_error: bool = true")
    .Stateful()
    .Shape(shapes::NoOutputs);

SLUICE_KERNEL(VarHandleOp, kCpu).Class<resource_variable::HandleKernel>();
SLUICE_KERNEL(ReadVariableOp, kCpu)
    .Class<VariableKernel<resource_variable::Read>>();
SLUICE_KERNEL(VarIsInitializedOp, kCpu)
    .Function(resource_variable::IsInitialized);
SLUICE_KERNEL(VariableShape, kCpu)
    .Class<VariableKernel<resource_variable::ShapeOfVariable>>();
SLUICE_KERNEL(DestroyResourceOp, kCpu).Function(resource_variable::Destroy);

}  // namespace sluice
