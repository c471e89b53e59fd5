#include "sluice/ops/queue/step_lock.h"

#include <algorithm>
#include <utility>

#include "sluice/base/status.h"
#include "sluice/ops/queue/step_wait.h"

namespace sluice {

struct StepLock::Waiter {
  int64_t id = 0;
  RefPtr<Resource> owner;
  Done then;
  StepWait wait;
};

StepLock::StepLock() = default;
StepLock::~StepLock() = default;

void StepLock::Acquire(RefPtr<Resource> owner, const KernelContext& ctx,
                       std::string what, Done then) {
  absl::Status status;
  {
    MutexLock lock(mu_);
    if (held_) {
      auto waiter = std::make_unique<Waiter>();
      waiter->id = next_id_++;
      const int64_t id = waiter->id;
      if (waiter->wait.Begin(ctx, std::move(what),
                             [this, owner, id] { Cancel(id); })) {
        waiter->owner = std::move(owner);
        waiter->then = std::move(then);
        waiters_.push_back(std::move(waiter));
        return;
      }
      status = Cancelled("Operation was cancelled");
    } else {
      held_ = true;
    }
  }
  then(status);
}

void StepLock::Release() {
  std::unique_ptr<Waiter> next;
  {
    MutexLock lock(mu_);
    if (waiters_.empty()) {
      held_ = false;
      return;
    }
    next = std::move(waiters_.front());
    waiters_.pop_front();
  }
  next->wait.End();
  next->then(absl::OkStatus());
}

void StepLock::Cancel(int64_t id) {
  std::unique_ptr<Waiter> cancelled;
  {
    MutexLock lock(mu_);
    const auto it = std::ranges::find_if(
        waiters_, [id](const auto& waiter) { return waiter->id == id; });
    if (it == waiters_.end()) return;
    cancelled = std::move(*it);
    waiters_.erase(it);
  }
  cancelled->wait.Forget();
  cancelled->wait.End();
  cancelled->then(Cancelled("Operation was cancelled"));
}

}  // namespace sluice
