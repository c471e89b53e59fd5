#include "sluice/kernel/cancellation.h"

#include <algorithm>
#include <utility>
#include <vector>

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
  // In the order in which they were registered.
  std::vector<Token> order;
  order.reserve(callbacks.size());
  for (const auto& [token, callback] : callbacks) order.push_back(token);
  std::ranges::sort(order);
  for (const Token token : order) callbacks[token]();
  MutexLock lock(mu_);
  running_ = false;
  finished_.NotifyAll();
}

}  // namespace sluice
