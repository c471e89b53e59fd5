// Stacks of tensors, on which a loop keeps what its gradient needs of every
// iteration. A stack lives as long as the step that made it.

#include <atomic>
#include <vector>

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/state/resource_handle.h"

namespace sluice {
namespace {
namespace stack_ops {

constexpr char kStackType[] = "N10tensorflow5StackE";

// Thread-safe.
class Stack : public Resource {
 public:
  Stack(DType type, std::string name, int max_size)
      : type_(type), name_(std::move(name)), max_size_(max_size) {}

  std::string DebugString() const override { return StrCat("Stack ", name_); }
  DType type() const { return type_; }

  absl::Status Push(const Tensor& value) {
    MutexLock lock(mu_);
    if (closed_) return Closed();
    if (max_size_ >= 0 && static_cast<int>(values_.size()) >= max_size_) {
      return InvalidArgument("Stack[", name_, "] overflowed ", "its max_size (",
                             max_size_, ")");
    }
    values_.push_back(value);
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> Pop() {
    MutexLock lock(mu_);
    if (closed_) return Closed();
    if (values_.empty()) {
      return InvalidArgument("Stack[", name_, "] is empty when calling Pop().");
    }
    Tensor value = std::move(values_.back());
    values_.pop_back();
    return value;
  }

  void Close() {
    MutexLock lock(mu_);
    closed_ = true;
    values_.clear();
  }

 private:
  absl::Status Closed() const {
    return InvalidArgument("Stack[", name_, "] has already been closed.");
  }

  const DType type_;
  const std::string name_;
  const int max_size_;
  Mutex mu_;
  bool closed_ SLUICE_GUARDED_BY(mu_) = false;
  std::vector<Tensor> values_ SLUICE_GUARDED_BY(mu_);
};

// The bound of StackV2; stacks of the older op have none.
absl::StatusOr<int> MaxSize(const KernelContext& ctx) {
  if (ctx.num_inputs() == 0) return -1;
  const Tensor& size = ctx.input(0);
  if (size.size() == 1) return size.data<int32_t>()[0];
  return InvalidArgument("Stack size must be a scalar, but has shape ",
                         size.shape().DebugString());
}

absl::Status MakeStack(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const int max_size, MaxSize(ctx));
  // A run of an inner loop has stacks of its own.
  static std::atomic<int64_t> next{0};
  std::string name = ctx.attr<std::string>("stack_name");
  if (name.empty()) name = ctx.node().name();
  const ResourceName where{ctx.step().container(),
                           StrCat(name, "_", next.fetch_add(1))};
  ctx.step().container_used = true;
  SLUICE_RETURN_IF_ERROR(ctx.resources().Create<Stack>(
      where.container, where.name,
      MakeRef<Stack>(ctx.attr<DType>("elem_type"), where.name, max_size)));
  if (ctx.node().output_type(0) == DType::kResource) {
    ctx.set_output(0, MakeHandle(ctx.device(), where, kStackType));
  } else {
    ctx.set_output_variable(0, MakeStringHandle(where));
  }
  return absl::OkStatus();
}

absl::Status Push(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<Stack> stack,
                          LookupResource<Stack>(ctx, 0, kStackType));
  const Tensor& value = ctx.input(1);
  if (value.dtype() != stack->type()) {
    return InvalidArgument("Must have type ", DTypeName(stack->type()),
                           " but got ", DTypeName(value.dtype()));
  }
  SLUICE_RETURN_IF_ERROR(stack->Push(value));
  ctx.set_output(0, value);
  return absl::OkStatus();
}

absl::Status Pop(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<Stack> stack,
                          LookupResource<Stack>(ctx, 0, kStackType));
  SLUICE_ASSIGN_OR_RETURN(Tensor value, stack->Pop());
  if (value.dtype() != ctx.node().output_type(0)) {
    return InvalidArgument("Must pop type ",
                           DTypeName(ctx.node().output_type(0)), " but got ",
                           DTypeName(value.dtype()));
  }
  ctx.set_output(0, std::move(value));
  return absl::OkStatus();
}

absl::Status Close(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<Stack> stack,
                          LookupResource<Stack>(ctx, 0, kStackType));
  stack->Close();
  return absl::OkStatus();
}

absl::Status HandleShape(ShapeContext& c) {
  c.set_output(0, {2});
  return absl::OkStatus();
}

absl::Status PushShape(ShapeContext& c) {
  c.set_output(0, c.input(1));
  return absl::OkStatus();
}

}  // namespace stack_ops
}  // namespace

SLUICE_OP(StackV2)
    .Input("max_size: int32")
    .Output("handle: resource")
    .Attr("elem_type: type")
    .Attr("stack_name: string = ''")
    .Stateful()
    .Shape(stack_ops::HandleShape)
    .NotDifferentiable();

SLUICE_OP(StackPushV2)
    .Input("handle: resource")
    .Input("elem: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("swap_memory: bool = false")
    .Stateful()
    .Shape(stack_ops::PushShape)
    .NotDifferentiable();

SLUICE_OP(StackPopV2)
    .Input("handle: resource")
    .Output("elem: elem_type")
    .Attr("elem_type: type")
    .Stateful()
    .Shape(shapes::Unknown)
    .NotDifferentiable();

SLUICE_OP(StackCloseV2)
    .Input("handle: resource")
    .Stateful()
    .Shape(shapes::NoOutputs)
    .NotDifferentiable();

// The older forms, whose handles are pairs of strings.
SLUICE_OP(Stack)
    .Output("handle: Ref(string)")
    .Attr("elem_type: type")
    .Attr("stack_name: string = ''")
    .Stateful()
    .Shape(stack_ops::HandleShape)
    .NotDifferentiable();

SLUICE_OP(StackPush)
    .Input("handle: Ref(string)")
    .Input("elem: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("swap_memory: bool = false")
    .Shape(stack_ops::PushShape)
    .NotDifferentiable();

SLUICE_OP(StackPop)
    .Input("handle: Ref(string)")
    .Output("elem: elem_type")
    .Attr("elem_type: type")
    .Shape(shapes::Unknown)
    .NotDifferentiable();

SLUICE_OP(StackClose)
    .Input("handle: Ref(string)")
    .Shape(shapes::NoOutputs)
    .NotDifferentiable();

SLUICE_KERNEL(Stack, kCpu).Function(stack_ops::MakeStack);
SLUICE_KERNEL(StackPush, kCpu).Function(stack_ops::Push);
SLUICE_KERNEL(StackPop, kCpu).Function(stack_ops::Pop);
SLUICE_KERNEL(StackClose, kCpu).Function(stack_ops::Close);
SLUICE_KERNEL(StackV2, kCpu).Function(stack_ops::MakeStack);
SLUICE_KERNEL(StackPushV2, kCpu).Function(stack_ops::Push);
SLUICE_KERNEL(StackPopV2, kCpu).Function(stack_ops::Pop);
SLUICE_KERNEL(StackCloseV2, kCpu).Function(stack_ops::Close);

}  // namespace sluice
