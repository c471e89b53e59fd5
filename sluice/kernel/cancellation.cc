#include "sluice/kernel/cancellation.h"

#include <utility>

namespace sluice {

absl::Status Cancellation::status() const {
  MutexLock lock(mu_);
  return status_;
}

Cancellation::Token Cancellation::Register(Callback callback) {
  MutexLock lock(mu_);
  if (!status_.ok()) return kNone;
  const Token token = next_++;
  callbacks_.emplace(token, std::move(callback));
  return token;
}

bool Cancellation::Deregister(Token token) {
  MutexLock lock(mu_);
  return callbacks_.erase(token) > 0;
}

void Cancellation::DeregisterAndWait(Token token) {
  MutexLock lock(mu_);
  callbacks_.erase(token);
  while (running_) finished_.Wait(mu_);
}

void Cancellation::Cancel(absl::Status why) {
  absl::flat_hash_map<Token, Callback> callbacks;
  {
    MutexLock lock(mu_);
    if (!status_.ok()) return;
    status_ = why.ok() ? absl::CancelledError("cancelled") : std::move(why);
    cancelled_.store(true, std::memory_order_release);
    callbacks.swap(callbacks_);
    running_ = true;
  }
  for (auto& [token, callback] : callbacks) callback();
  MutexLock lock(mu_);
  running_ = false;
  finished_.NotifyAll();
}

}  // namespace sluice
