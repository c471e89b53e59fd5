// StepLock: a lock that a kernel may hold while it waits for something. No
// thread waits for it; who comes later is called back in order.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "sluice/base/mutex.h"
#include "sluice/kernel/kernel.h"
#include "sluice/kernel/resource.h"

namespace sluice {

// Part of a resource, which whoever waits keeps alive. Thread-safe.
class StepLock {
 public:
  StepLock();
  ~StepLock();

  // Calls `then` once, perhaps before it returns: with OK when the lock is
  // held, with CANCELLED if the step of `ctx` was cancelled before. `what` is
  // what the wait table says.
  void Acquire(RefPtr<Resource> owner, const KernelContext& ctx,
               std::string what, Done then);
  void Release();

 private:
  struct Waiter;

  void Cancel(int64_t id);

  Mutex mu_;
  bool held_ SLUICE_GUARDED_BY(mu_) = false;
  int64_t next_id_ SLUICE_GUARDED_BY(mu_) = 1;
  std::deque<std::unique_ptr<Waiter>> waiters_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace sluice
