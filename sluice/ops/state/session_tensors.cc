// Tensors that stay with a session between its steps, on the device where they
// came about: GetSessionHandle keeps one, GetSessionTensor gives it to later
// steps, DeleteSessionTensor drops it. A handle is a text,
// "node;number;device".

#include <map>
#include <utility>

#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/state/resource_handle.h"

namespace sluice {
namespace {
namespace session_tensors {

// TensorFlow's name of the kind of resource.
constexpr char kHandleType[] = "TensorHandle";
constexpr char kContainer[] = "__session_tensors";

// The kept tensors of a device. Thread-safe.
class Store : public Resource {
 public:
  // `keeper` is who calls.
  std::string Keep(const void* keeper, const KernelContext& ctx) {
    MutexLock lock(mu_);
    std::string handle =
        StrCat(ctx.node().name(), ";", next_++, ";", ctx.device().name());
    tensors_[handle] = {keeper, ctx.input(0).Owned()};
    return handle;
  }
  absl::StatusOr<Tensor> Find(const std::string& handle) const {
    MutexLock lock(mu_);
    const auto it = tensors_.find(handle);
    if (it != tensors_.end()) return it->second.tensor;
    return InvalidArgument("The tensor with handle '", handle,
                           "' is not in the session store.");
  }
  absl::Status Delete(const std::string& handle) {
    MutexLock lock(mu_);
    if (tensors_.erase(handle) > 0) return absl::OkStatus();
    return InvalidArgument("Failed to delete a tensor with handle '", handle,
                           "' in the session store.");
  }
  // All that `keeper` has kept.
  void DeleteOf(const void* keeper) {
    MutexLock lock(mu_);
    std::erase_if(tensors_, [keeper](const auto& entry) {
      return entry.second.keeper == keeper;
    });
  }
  std::string DebugString() const override {
    MutexLock lock(mu_);
    return StrCat("store of ", tensors_.size(), " tensors of sessions");
  }

 private:
  struct Kept {
    const void* keeper = nullptr;
    Tensor tensor;
  };
  mutable Mutex mu_;
  int64_t next_ SLUICE_GUARDED_BY(mu_) = 0;
  std::map<std::string, Kept> tensors_ SLUICE_GUARDED_BY(mu_);
};

absl::StatusOr<RefPtr<Store>> StoreOf(ResourceManager& resources) {
  return resources.LookupOrCreate<Store>(
      kContainer, "",
      []() -> absl::StatusOr<RefPtr<Store>> { return MakeRef<Store>(); });
}

// As a stateful kernel it lives as long as its session, and so does what it has
// kept.
class KeepKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    SLUICE_ASSIGN_OR_RETURN(RefPtr<Store> store,
                            StoreOf(node.device().resources()));
    return std::make_unique<KeepKernel>(std::move(store));
  }
  explicit KeepKernel(RefPtr<Store> store) : store_(std::move(store)) {}
  ~KeepKernel() override { store_->DeleteOf(this); }

  absl::Status Run(KernelContext& ctx) override {
    const std::string handle = store_->Keep(this, ctx);
    ctx.set_output(
        0, ctx.node().output_type(0) == DType::kString
               ? Tensor::Scalar(handle)
               : MakeHandle(ctx.device(), {kContainer, handle}, kHandleType));
    return absl::OkStatus();
  }

 private:
  const RefPtr<Store> store_;
};

absl::StatusOr<std::string> HandleOf(const KernelContext& ctx) {
  const Tensor& handle = ctx.input(0);
  if (handle.rank() == 0) return handle.scalar<std::string>();
  return InvalidArgument("The handle of a tensor must be a scalar, but has ",
                         "shape ", handle.shape().DebugString());
}

absl::Status Get(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const std::string handle, HandleOf(ctx));
  SLUICE_ASSIGN_OR_RETURN(RefPtr<Store> store, StoreOf(ctx.resources()));
  SLUICE_ASSIGN_OR_RETURN(Tensor tensor, store->Find(handle));
  if (tensor.dtype() != ctx.node().output_type(0)) {
    return InvalidArgument("The tensor with handle '", handle, "' is ",
                           DTypeName(tensor.dtype()), ", not ",
                           DTypeName(ctx.node().output_type(0)));
  }
  ctx.set_output(0, std::move(tensor));
  return absl::OkStatus();
}

absl::Status Delete(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const std::string handle, HandleOf(ctx));
  SLUICE_ASSIGN_OR_RETURN(RefPtr<Store> store, StoreOf(ctx.resources()));
  return store->Delete(handle);
}

}  // namespace session_tensors
}  // namespace

SLUICE_OP(GetSessionHandle)
    .Input("value: T")
    .Output("handle: string")
    .Attr("T: type")
    .Stateful()
    .Shape(shapes::Scalar)
    .NotDifferentiable();
SLUICE_OP(GetSessionHandleV2)
    .Input("value: T")
    .Output("handle: resource")
    .Attr("T: type")
    .Stateful()
    .Shape(shapes::Scalar)
    .NotDifferentiable();
SLUICE_OP(GetSessionTensor)
    .Input("handle: string")
    .Output("value: dtype")
    .Attr("dtype: type")
    .Stateful()
    .Shape(shapes::Unknown)
    .NotDifferentiable();
SLUICE_OP(DeleteSessionTensor)
    .Input("handle: string")
    .Stateful()
    .Shape(shapes::NoOutputs)
    .NotDifferentiable();

SLUICE_KERNEL(GetSessionHandle, kCpu).Class<session_tensors::KeepKernel>();
SLUICE_KERNEL(GetSessionHandleV2, kCpu).Class<session_tensors::KeepKernel>();
SLUICE_KERNEL(GetSessionTensor, kCpu).Function(session_tensors::Get);
SLUICE_KERNEL(DeleteSessionTensor, kCpu).Function(session_tensors::Delete);

}  // namespace sluice
