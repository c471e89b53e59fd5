#include "sluice/ops/state/variable_access.h"

#include <algorithm>

#include "sluice/base/status.h"
#include "sluice/kernel/resource_epoch.h"
#include "sluice/ops/state/elements.h"
#include "sluice/ops/state/resource_handle.h"

namespace sluice {
namespace {

absl::Status UninitializedResource(const ResourceHandle& handle,
                                   std::string_view why) {
  return FailedPrecondition(
      "Error while reading resource variable ", handle.name,
      " from Container: ", handle.container,
      ". This could mean that the variable was uninitialized. Not found: ",
      why);
}

std::string NoSuchVariable(const ResourceHandle& handle) {
  return StrCat("Resource ", handle.container, "/", handle.name, "/",
                kVariableType, " does not exist.");
}

}  // namespace

RefPtr<VariableState> VariableCache::Find(const Tensor& handle) {
  MutexLock lock(mu_);
  if (epoch_ != ResourceEpoch() || !handle.SharesBufferWith(handle_)) {
    return nullptr;
  }
  return variable_;
}

void VariableCache::Keep(const Tensor& handle, uint64_t epoch,
                         RefPtr<VariableState> variable) {
  // What was kept before goes after the lock.
  Tensor kept = handle;
  MutexLock lock(mu_);
  std::swap(handle_, kept);
  std::swap(variable_, variable);
  epoch_ = epoch;
}

absl::StatusOr<RefPtr<VariableState>> FindVariable(const KernelContext& ctx,
                                                   int i,
                                                   VariableCache& cache) {
  if (RefPtr<VariableState> kept = cache.Find(ctx.input(i))) return kept;
  const uint64_t epoch = ResourceEpoch();
  SLUICE_ASSIGN_OR_RETURN(const ResourceHandle* handle,
                          HandleAt(ctx, i, kVariableType));
  auto found =
      ctx.resources().Lookup<VariableState>(handle->container, handle->name);
  if (found.ok()) {
    cache.Keep(ctx.input(i), epoch, *found);
    return found;
  }
  // The manager's text for a missing name holds a C++ type; TensorFlow's is its
  // own.
  const std::string_view why = ToStd(found.status().message());
  return UninitializedResource(*handle, why.starts_with("Container")
                                            ? std::string(why)
                                            : NoSuchVariable(*handle));
}

absl::Status UninitializedVariable(const KernelContext& ctx, int i) {
  if (IsRef(ctx.node().input_type(i))) {
    return FailedPrecondition("Attempting to use uninitialized value ",
                              ctx.node().input(i).node->name());
  }
  SLUICE_ASSIGN_OR_RETURN(const ResourceHandle* handle,
                          HandleAt(ctx, i, kVariableType));
  return UninitializedResource(*handle, NoSuchVariable(*handle));
}

absl::Status StoreValue(VariableState& variable, const Tensor& value) {
  if (value.unique() && !value.buffer()->borrowed()) {
    variable.Assign(value);
    return absl::OkStatus();
  }
  {
    MutexLock lock(variable.mu());
    const Tensor& old = variable.value();
    if (old.unique() && old.dtype() == value.dtype() &&
        old.size() == value.size()) {
      SLUICE_ASSIGN_OR_RETURN(Tensor * target, variable.mutable_value());
      CopyElements(value, 0, target, 0, value.size());
      if (old.shape() != value.shape()) {
        *target = target->Reshaped(value.shape());
      }
      return absl::OkStatus();
    }
  }
  Tensor copy = value.Clone();
  if (!copy.initialized()) {
    return Tensor::Create(value.dtype(), value.shape()).status();
  }
  variable.Assign(std::move(copy));
  return absl::OkStatus();
}

absl::Status LockedVariables::Lock(const KernelContext& ctx, int count,
                                   DType dtype, Caches& caches)
    SLUICE_NO_THREAD_SAFETY_ANALYSIS {
  for (int i = 0; i < count; ++i) {
    if (IsRef(ctx.node().input_type(i))) {
      variables_[i] = RefPtr<VariableState>::Share(&ctx.variable(i));
    } else {
      SLUICE_ASSIGN_OR_RETURN(variables_[i], FindVariable(ctx, i, caches[i]));
    }
    order_[i] = variables_[i].get();
  }
  std::sort(order_.begin(), order_.begin() + count);
  // A variable may be given twice.
  const int distinct = static_cast<int>(
      std::unique(order_.begin(), order_.begin() + count) - order_.begin());
  for (; locked_ < distinct; ++locked_) order_[locked_]->mu().Lock();
  for (int i = 0; i < count; ++i) {
    if (!value(i).initialized()) return UninitializedVariable(ctx, i);
    if (value(i).dtype() != dtype) {
      return InvalidArgument(
          "Trying to update variable with wrong dtype. Expected ",
          DTypeName(value(i).dtype()), " got ", DTypeName(dtype));
    }
  }
  return absl::OkStatus();
}

void LockedVariables::Unlock() SLUICE_NO_THREAD_SAFETY_ANALYSIS {
  while (locked_ > 0) order_[--locked_]->mu().Unlock();
}

const Tensor& LockedVariables::value(int i) const
    SLUICE_NO_THREAD_SAFETY_ANALYSIS {
  return variables_[i]->value();
}

absl::StatusOr<Tensor*> LockedVariables::mutable_value(int i)
    SLUICE_NO_THREAD_SAFETY_ANALYSIS {
  return variables_[i]->mutable_value();
}

}  // namespace sluice
