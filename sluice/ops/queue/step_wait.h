// StepWait: one wait of a kernel, which cancelling its step ends and which the
// wait table names.
#pragma once

#include <string>

#include "sluice/kernel/kernel.h"

namespace sluice {

// Thread-compatible; the owner's lock guards it. Not under that lock: End,
// which may wait for the cancellation.
class StepWait {
 public:
  // Calls `cancel` once if the step of `ctx` is cancelled before End. False,
  // and `cancel` is never called, if it has been cancelled already.
  bool Begin(const KernelContext& ctx, std::string what,
             Cancellation::Callback cancel);
  // To be called by `cancel` first: there is nothing to deregister any more.
  void Forget() { token_ = Cancellation::kNone; }
  void End();

 private:
  Cancellation* cancellation_ = nullptr;
  Cancellation::Token token_ = Cancellation::kNone;
  WaitTable::Token wait_ = 0;
};

}  // namespace sluice
