// How kernels reach variables: behind a resource handle or a ref input, one or
// several at once, to store a value or to update it in place.
#pragma once

#include <array>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/kernel/kernel.h"
#include "sluice/kernel/variable.h"

namespace sluice {

// A variable that a kernel found, kept for its next run. Thread-safe.
class VariableCache {
 public:
  // What was kept for this very handle; null if there is none, or if it may be
  // gone since.
  RefPtr<VariableState> Find(const Tensor& handle);
  // `epoch` is the ResourceEpoch() from before `variable` was looked up.
  void Keep(const Tensor& handle, uint64_t epoch,
            RefPtr<VariableState> variable);

 private:
  Mutex mu_;
  Tensor handle_ SLUICE_GUARDED_BY(mu_);
  uint64_t epoch_ SLUICE_GUARDED_BY(mu_) = 0;
  RefPtr<VariableState> variable_ SLUICE_GUARDED_BY(mu_);
};

// The variable behind resource input `i`. FailedPrecondition, with the word
// "uninitialized" that session managers look for, if there is none yet.
absl::StatusOr<RefPtr<VariableState>> FindVariable(const KernelContext& ctx,
                                                   int i, VariableCache& cache);

// What a kernel says when the variable at input `i`, ref or resource, has no
// value.
absl::Status UninitializedVariable(const KernelContext& ctx, int i);

// Makes `value` the value of `variable`. Takes the memory over if nobody else
// uses it, else copies, into the old memory where that is possible: it is warm.
absl::Status StoreValue(VariableState& variable, const Tensor& value);

// The variables that one kernel updates: its inputs 0, 1, … of ref or resource
// type. Locked, in an order that is the same for everyone, until destruction.
// Thread-compatible.
class LockedVariables {
 public:
  static constexpr int kMax = 4;
  using Caches = std::array<VariableCache, kMax>;

  LockedVariables() = default;
  ~LockedVariables() { Unlock(); }
  LockedVariables(const LockedVariables&) = delete;
  LockedVariables& operator=(const LockedVariables&) = delete;

  // Once. An error if one of them has no value or not the type `dtype`.
  absl::Status Lock(const KernelContext& ctx, int count, DType dtype,
                    Caches& caches);

  const Tensor& value(int i) const;
  // In memory that only the variable holds.
  absl::StatusOr<Tensor*> mutable_value(int i);

 private:
  void Unlock();

  std::array<RefPtr<VariableState>, kMax> variables_;
  std::array<VariableState*, kMax> order_ = {};
  int locked_ = 0;
};

// The kernel behind a function that works on variables.
template <absl::Status (*kRun)(KernelContext&, LockedVariables::Caches&)>
class VariableKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction&) {
    return std::make_unique<VariableKernel>();
  }
  absl::Status Run(KernelContext& ctx) override { return kRun(ctx, caches_); }

 private:
  LockedVariables::Caches caches_;
};

// Passes the updated ref input 0 on, if the op has an output for it.
inline void ForwardUpdatedRef(KernelContext& ctx) {
  if (ctx.num_outputs() > 0) ctx.ForwardRef(0, 0);
}

}  // namespace sluice
