#include "sluice/ops/queue/step_wait.h"

#include <utility>

#include "sluice/base/strings.h"

namespace sluice {

bool StepWait::Begin(const KernelContext& ctx, std::string what,
                     Cancellation::Callback cancel) {
  cancellation_ = ctx.step().cancellation;
  if (cancellation_ != nullptr) {
    token_ = cancellation_->Register(std::move(cancel));
    if (token_ == Cancellation::kNone) return false;
  }
  WaitInfo info;
  info.what = std::move(what);
  info.where = StrCat(ctx.node().name(), " on ", ctx.device().name());
  info.step_id = ctx.step().id;
  if (ctx.step().clock != nullptr) info.since = ctx.step().clock->Now();
  wait_ = WaitTable::Global().Add(std::move(info));
  return true;
}

void StepWait::End() {
  if (token_ != Cancellation::kNone) cancellation_->Deregister(token_);
  if (wait_ != 0) WaitTable::Global().Remove(wait_);
  token_ = Cancellation::kNone;
  wait_ = 0;
}

}  // namespace sluice
