// Assign, AssignAdd, AssignSub and CountUpTo, for ref and resource variables.
// Updates always hold the variable's lock, whatever `use_locking` says: a
// counter that several workers share must not lose steps.

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/kernel/resource_epoch.h"
#include "sluice/numeric/binary.h"
#include "sluice/ops/array/shape_rules.h"
#include "sluice/ops/state/elements.h"
#include "sluice/ops/state/resource_handle.h"
#include "sluice/ops/state/variable_access.h"
#include "sluice/ops/state/variable_shapes.h"

namespace sluice {
namespace {
namespace assign_op {

absl::Status AssignShape(ShapeContext& c) {
  if (c.attr<bool>("validate_shape")) return AssignUpdateShape(c);
  c.set_output(0, c.input(1));
  return absl::OkStatus();
}

// A variable without a value has the shape its node declares.
absl::Status CheckSameShape(const KernelContext& ctx) {
  const Tensor old = ctx.variable(0).Read();
  const PartialShape declared = old.initialized()
                                    ? PartialShape(old.shape())
                                    : ShapeOf(ctx.node().input(0));
  const Shape& shape = ctx.input(1).shape();
  if (!declared.FullyDefined() || declared == PartialShape(shape)) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "Assign requires shapes of both tensors to match. lhs shape= ",
      declared.DebugString(), " rhs shape= ", shape.DebugString());
}

class AssignKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    return std::make_unique<AssignKernel>(node.attr<bool>("validate_shape"));
  }
  explicit AssignKernel(bool validate_shape)
      : validate_shape_(validate_shape) {}

  absl::Status Run(KernelContext& ctx) override {
    if (validate_shape_) SLUICE_RETURN_IF_ERROR(CheckSameShape(ctx));
    SLUICE_RETURN_IF_ERROR(StoreValue(ctx.variable(0), ctx.input(1)));
    ctx.ForwardRef(0, 0);
    return absl::OkStatus();
  }

 private:
  const bool validate_shape_;
};

absl::Status AssignVariableShape(ShapeContext& c) {
  const HandleShape& handle = c.input_handle(0);
  const DType dtype = c.attr<DType>("dtype");
  if (handle.dtype != DType::kInvalid && handle.dtype != dtype) {
    return InvalidArgument(
        "Variable and value dtypes don't match; respectively, ",
        DTypeName(handle.dtype), " and ", DTypeName(dtype));
  }
  return MergeShapes(handle.shape, c.input(1)).status();
}

absl::StatusOr<RefPtr<VariableState>> FindOrMake(const KernelContext& ctx,
                                                 VariableCache& cache) {
  if (RefPtr<VariableState> kept = cache.Find(ctx.input(0))) return kept;
  const uint64_t epoch = ResourceEpoch();
  SLUICE_ASSIGN_OR_RETURN(const ResourceHandle* handle,
                          HandleAt(ctx, 0, kVariableType));
  SLUICE_ASSIGN_OR_RETURN(
      RefPtr<VariableState> variable,
      ctx.resources().LookupOrCreate<VariableState>(
          handle->container, handle->name,
          [&]() -> absl::StatusOr<RefPtr<VariableState>> {
            return MakeRef<VariableState>(ctx.input(1).dtype());
          }));
  cache.Keep(ctx.input(0), epoch, variable);
  return variable;
}

absl::Status AssignVariable(KernelContext& ctx,
                            LockedVariables::Caches& caches) {
  const Tensor& value = ctx.input(1);
  SLUICE_ASSIGN_OR_RETURN(RefPtr<VariableState> variable,
                          FindOrMake(ctx, caches[0]));
  if (variable->dtype() != value.dtype()) {
    return InvalidArgument(
        "Trying to assign variable with wrong dtype. Expected ",
        DTypeName(variable->dtype()), " got ", DTypeName(value.dtype()));
  }
  return StoreValue(*variable, value);
}

absl::Status SizeMismatch(const KernelContext& ctx, const Tensor& variable) {
  if (IsRef(ctx.node().input_type(0))) {
    return InvalidArgument("Parameters and update must be the same size");
  }
  return InvalidArgument(
      "Cannot update variable with shape ", variable.shape().DebugString(),
      " using a Tensor with shape ", ctx.input(1).shape().DebugString(),
      ", shapes must be equal.");
}

template <typename T, numeric::BinaryOp kOp>
absl::Status Combine(KernelContext& ctx, LockedVariables::Caches& caches) {
  const Tensor& value = ctx.input(1);
  LockedVariables locked;
  SLUICE_RETURN_IF_ERROR(locked.Lock(ctx, 1, DTypeOf<T>::value, caches));
  if (locked.value(0).shape() != value.shape()) {
    return SizeMismatch(ctx, locked.value(0));
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor * variable, locked.mutable_value(0));
  T* target = variable->mutable_data<T>().data();
  const T* source = value.data<T>().data();
  ctx.ParallelFor(value.size(), [=](int64_t begin, int64_t end) {
    numeric::BinaryMap<kOp, T>(target + begin, target + begin, 1,
                               source + begin, 1, end - begin);
  });
  ForwardUpdatedRef(ctx);
  return absl::OkStatus();
}

template <typename T>
absl::Status CountUpTo(KernelContext& ctx, LockedVariables::Caches& caches) {
  const T limit = static_cast<T>(ctx.attr<int64_t>("limit"));
  LockedVariables locked;
  SLUICE_RETURN_IF_ERROR(locked.Lock(ctx, 1, DTypeOf<T>::value, caches));
  if (locked.value(0).rank() != 0) {
    return InvalidArgument("input is not a scalar: ",
                           locked.value(0).shape().DebugString());
  }
  const T now = locked.value(0).scalar<T>();
  if (now >= limit) return OutOfRange("Reached limit of ", limit);
  SLUICE_ASSIGN_OR_RETURN(Tensor * variable, locked.mutable_value(0));
  variable->mutable_data<T>()[0] = now + 1;
  ctx.set_output(0, Tensor::Scalar<T>(now));
  return absl::OkStatus();
}

template <typename T>
using AddKernel = VariableKernel<Combine<T, numeric::BinaryOp::kAdd>>;
template <typename T>
using SubtractKernel = VariableKernel<Combine<T, numeric::BinaryOp::kSub>>;
template <typename T>
using CountKernel = VariableKernel<CountUpTo<T>>;

absl::Status CountUpToShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(
      MergeShapes(VariableShapeAt(c, 0), PartialShape::Scalar()).status());
  return shapes::Scalar(c);
}

}  // namespace assign_op
}  // namespace

SLUICE_OP(Assign)
    .Input("ref: Ref(T)")
    .Input("value: T")
    .Output("output_ref: Ref(T)")
    .Attr("T: type")
    .Attr("validate_shape: bool = true")
    .Attr("use_locking: bool = true")
    .AllowsUninitialized()
    .Shape(assign_op::AssignShape)
    .NotDifferentiable();

SLUICE_OP(AssignAdd)
    .Input("ref: Ref(T)")
    .Input("value: T")
    .Output("output_ref: Ref(T)")
    .Attr("T: numbertype")
    .Attr("use_locking: bool = false")
    .Shape(AssignUpdateShape)
    .NotDifferentiable();

SLUICE_OP(AssignSub)
    .Input("ref: Ref(T)")
    .Input("value: T")
    .Output("output_ref: Ref(T)")
    .Attr("T: numbertype")
    .Attr("use_locking: bool = false")
    .Shape(AssignUpdateShape)
    .NotDifferentiable();

SLUICE_OP(AssignVariableOp)
    .Input("resource: resource")
    .Input("value: dtype")
    .Attr("dtype: type")
    .Stateful()
    .Shape(assign_op::AssignVariableShape)
    .NotDifferentiable();

SLUICE_OP(AssignAddVariableOp)
    .Input("resource: resource")
    .Input("value: dtype")
    .Attr("dtype: type")
    .Stateful()
    .Shape(assign_op::AssignVariableShape)
    .NotDifferentiable();

SLUICE_OP(AssignSubVariableOp)
    .Input("resource: resource")
    .Input("value: dtype")
    .Attr("dtype: type")
    .Stateful()
    .Shape(assign_op::AssignVariableShape)
    .NotDifferentiable();

SLUICE_OP(CountUpTo)
    .Input("ref: Ref(T)")
    .Output("output: T")
    .Attr("limit: int")
    .Attr("T: {int32, int64}")
    .Shape(assign_op::CountUpToShape);

SLUICE_OP(ResourceCountUpTo)
    .Input("resource: resource")
    .Output("output: T")
    .Attr("limit: int")
    .Attr("T: {int32, int64}")
    .Stateful()
    .Shape(assign_op::CountUpToShape);

SLUICE_KERNEL(Assign, kCpu).Class<assign_op::AssignKernel>();
SLUICE_KERNEL(AssignVariableOp, kCpu)
    .Class<VariableKernel<assign_op::AssignVariable>>();
SLUICE_KERNEL(AssignAdd, kCpu)
    .ClassForTypes<UpdateTypes, assign_op::AddKernel>("T");
SLUICE_KERNEL(AssignSub, kCpu)
    .ClassForTypes<UpdateTypes, assign_op::SubtractKernel>("T");
SLUICE_KERNEL(AssignAddVariableOp, kCpu)
    .ClassForTypes<UpdateTypes, assign_op::AddKernel>("dtype");
SLUICE_KERNEL(AssignSubVariableOp, kCpu)
    .ClassForTypes<UpdateTypes, assign_op::SubtractKernel>("dtype");
SLUICE_KERNEL(CountUpTo, kCpu)
    .ClassForTypes<IndexTypes, assign_op::CountKernel>("T");
SLUICE_KERNEL(ResourceCountUpTo, kCpu)
    .ClassForTypes<IndexTypes, assign_op::CountKernel>("T");

}  // namespace sluice
