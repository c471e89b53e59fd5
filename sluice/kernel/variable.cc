#include "sluice/kernel/variable.h"

#include "sluice/base/status.h"

namespace sluice {

absl::StatusOr<Tensor*> VariableState::mutable_value() {
  if (!value_.initialized()) {
    return FailedPrecondition("Attempting to use uninitialized value");
  }
  if (!value_.unique()) {
    Tensor copy = value_.Clone();
    if (!copy.initialized()) {
      return ResourceExhausted("OOM when copying a variable of shape ",
                               value_.shape().DebugString());
    }
    value_ = std::move(copy);
  }
  return &value_;
}

std::string VariableState::DebugString() const {
  MutexLock lock(mu_);
  if (!value_.initialized()) {
    return StrCat("variable ", DTypeName(dtype_), " uninitialized");
  }
  return StrCat("variable ", DTypeName(dtype_), " ",
                value_.shape().DebugString());
}

}  // namespace sluice
