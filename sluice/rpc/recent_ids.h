// RecentIds: notices a request that arrives twice.
#pragma once

#include <cstdint>
#include <deque>

#include "absl/container/flat_hash_set.h"
#include "sluice/base/mutex.h"

namespace sluice {

// Remembers the last `capacity` ids. Thread-safe.
class RecentIds {
 public:
  explicit RecentIds(size_t capacity) : capacity_(capacity) {}
  // False if `id` was seen. 0 is never remembered.
  bool Add(int64_t id) {
    if (id == 0) return true;
    MutexLock lock(mu_);
    if (!seen_.insert(id).second) return false;
    order_.push_back(id);
    if (order_.size() > capacity_) {
      seen_.erase(order_.front());
      order_.pop_front();
    }
    return true;
  }

 private:
  const size_t capacity_;
  Mutex mu_;
  absl::flat_hash_set<int64_t> seen_ SLUICE_GUARDED_BY(mu_);
  std::deque<int64_t> order_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace sluice
