// Barrier: tuples whose components arrive one by one, under a key. A tuple is
// ready when it has all of them; ready tuples are taken in batches, those begun
// first before the others.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "sluice/base/mutex.h"
#include "sluice/kernel/kernel.h"
#include "sluice/kernel/resource.h"
#include "sluice/ops/queue/queue_kinds.h"

namespace sluice {

// Thread-safe. As in Queue, operations call `done` exactly once, perhaps before
// they return, and never under a lock.
class Barrier : public Resource {
 public:
  // The capacity of `config` does not count: a barrier has no bound.
  explicit Barrier(QueueConfig config);
  ~Barrier() override;

  const std::string& name() const { return config_.name; }
  const std::vector<DType>& types() const { return config_.types; }

  // Sets component `component` of the tuples of `keys`.
  void InsertMany(int64_t component, const Tensor& keys, const Tensor& values,
                  const KernelContext& ctx, Done done);
  // Indices (when their tuples were begun), keys and components of `n` ready
  // tuples. `allow_small_batch`: fewer, but at least one, if the barrier is
  // closed.
  void TakeMany(int64_t n, bool allow_small_batch, const KernelContext& ctx,
                Queue::TupleDone done);
  // Afterwards no tuple is begun any more, but those that are may be completed,
  // unless `cancel` drops them. Once closed it can only be cancelled, once.
  void Close(bool cancel, const KernelContext& ctx, Done done);

  int64_t incomplete_size() const;
  int64_t ready_size() const { return ready_->size(); }

  absl::Status MatchConfig(const QueueConfig& config) const;
  std::string DebugString() const override;
  std::optional<QueueDepth> depth() const override;

 private:
  // A tuple with its index in front; components that are missing hold nothing.
  struct Partial {
    Tuple tuple;
    int64_t missing = 0;
  };

  absl::Status CheckInsert(int64_t component, const Tensor& keys,
                           const Tensor& values) const;
  absl::Status InsertLocked(int64_t component, const Tensor& keys,
                            const Tensor& values, int64_t i, bool* begun,
                            std::vector<Tuple>* ready) SLUICE_REQUIRES(mu_);
  // Whether nothing can become ready any more.
  bool DrainedLocked() const SLUICE_REQUIRES(mu_);

  const QueueConfig config_;
  const RefPtr<Queue> ready_;  // (index, key, components…)

  mutable Mutex mu_;
  bool closed_ SLUICE_GUARDED_BY(mu_) = false;
  bool cancelled_ SLUICE_GUARDED_BY(mu_) = false;
  // Inserts whose tuples are on their way into `ready_`.
  int64_t in_flight_ SLUICE_GUARDED_BY(mu_) = 0;
  int64_t next_index_ SLUICE_GUARDED_BY(mu_) =
      std::numeric_limits<int64_t>::min();
  absl::flat_hash_map<std::string, Partial> incomplete_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace sluice
