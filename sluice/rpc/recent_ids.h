// RecentIds: notices a request that arrives twice.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "sluice/base/clock.h"
#include "sluice/base/mutex.h"

namespace sluice {

// How many ids are remembered, and for how long.
struct IdsKept {
  // Who lost a connection in silence notices it after 25 s and then asks again.
  std::chrono::milliseconds time = std::chrono::seconds(60);
  // The last ones are remembered for longer.
  size_t least = 100'000;
  // The bound of memory, for which they may go earlier: two tables of 2^21
  // places, 38 MB. Of up to 30'000 requests a second none does.
  size_t most = size_t{7} << 19;
};

// Remembers ids in two sets: when the newer one has enough, and for some time,
// it takes the place of the older one, whose ids are forgotten. Thread-safe.
class RecentIds {
 public:
  explicit RecentIds(const IdsKept& kept = {}) : kept_(kept) {}
  // False if `id` was seen. 0 is never remembered.
  bool Add(int64_t id) {
    if (id == 0) return true;
    MutexLock lock(mu_);
    ForgetOldest();
    const bool seen = older_.contains(id);
    return newer_.insert(id).second && !seen;
  }

 private:
  void ForgetOldest() SLUICE_REQUIRES(mu_) {
    const size_t count = newer_.size();
    if (count < kept_.most / 2 &&
        (count < kept_.least || CoarseNow() - begun_ < kept_.time)) {
      return;
    }
    begun_ = CoarseNow();
    older_ = std::exchange(newer_, {});
    newer_.reserve(count);  // As many are to come; growing takes long.
  }

  const IdsKept kept_;
  Mutex mu_;
  absl::flat_hash_set<int64_t> newer_ SLUICE_GUARDED_BY(mu_);
  absl::flat_hash_set<int64_t> older_ SLUICE_GUARDED_BY(mu_);
  SteadyTime begun_ SLUICE_GUARDED_BY(mu_) = CoarseNow();  // The newer set.
};

}  // namespace sluice
