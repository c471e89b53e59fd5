// VariableState: a tensor that steps share. Readers get the current tensor and
// never a torn one: a writer changes the buffer in place only while nobody else
// holds it, and otherwise writes into a copy (DESIGN D3).
#pragma once

#include <string>

#include "sluice/base/mutex.h"
#include "sluice/kernel/resource.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

// Thread-safe.
class VariableState : public Resource {
 public:
  explicit VariableState(DType dtype) : dtype_(dtype) {}

  DType dtype() const { return dtype_; }

  // The current value; a tensor without memory if none was assigned yet.
  Tensor Read() const {
    MutexLock lock(mu_);
    return value_;
  }
  bool initialized() const {
    MutexLock lock(mu_);
    return value_.initialized();
  }
  // Makes `value` the value. Keeps it, so it must not be borrowed memory.
  void Assign(Tensor value) {
    Tensor old;
    MutexLock lock(mu_);
    old = std::move(value_);
    value_ = std::move(value);
  }

  // For updates: hold mu() and write through mutable_value().
  Mutex& mu() const SLUICE_THREAD_ATTRIBUTE(lock_returned(mu_)) { return mu_; }
  const Tensor& value() const SLUICE_REQUIRES(mu_) { return value_; }
  // The value, in a buffer that only the variable holds. An error when it has
  // none, or no memory is left.
  absl::StatusOr<Tensor*> mutable_value() SLUICE_REQUIRES(mu_);

  std::string DebugString() const override;

 private:
  const DType dtype_;
  mutable Mutex mu_;
  Tensor value_ SLUICE_GUARDED_BY(mu_);
};

// The state behind a VariableV2 node. Kept apart from resource variables of the
// same name, as TensorFlow does.
class RefVariable : public VariableState {
 public:
  using VariableState::VariableState;
};

}  // namespace sluice
