// Cancellation: tells whoever waits inside a step that nobody wants the result
// any more.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "sluice/base/mutex.h"

namespace sluice {

// Thread-safe.
class Cancellation {
 public:
  using Token = int64_t;
  static constexpr Token kNone = 0;
  using Callback = absl::AnyInvocable<void()>;

  Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // Why; OK while not cancelled.
  absl::Status status() const;

  // Calls `callback` once, on the thread that cancels. Returns kNone, and never
  // calls it, if the cancellation has happened already.
  Token Register(Callback callback);
  // True if the callback will not be called any more. False means that it was
  // called or is about to return.
  bool Deregister(Token token);
  // As Deregister, but waits for a callback that is running on another thread.
  void DeregisterAndWait(Token token);

  // The first call counts. Callbacks run before it returns, outside the lock.
  void Cancel(absl::Status why);

 private:
  std::atomic<bool> cancelled_{false};
  mutable Mutex mu_;
  CondVar finished_;
  absl::Status status_ SLUICE_GUARDED_BY(mu_);
  bool running_ SLUICE_GUARDED_BY(mu_) = false;
  Token next_ SLUICE_GUARDED_BY(mu_) = 1;
  absl::flat_hash_map<Token, Callback> callbacks_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace sluice
