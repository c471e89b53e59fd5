// StagingArea: elements on their way from one step to the next, in order. It
// may be bounded in elements and in bytes; who has to wait for room or for an
// element is served in order, and no thread waits.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/mutex.h"
#include "sluice/kernel/kernel.h"
#include "sluice/kernel/resource.h"
#include "sluice/ops/queue/queue.h"

namespace sluice {

struct StagingConfig {
  std::string name;
  int64_t capacity = 0;      // Elements; 0: unbounded.
  int64_t memory_limit = 0;  // Bytes; 0: unbounded.
};

// Thread-safe. As in Queue, operations call `done` exactly once, perhaps before
// they return, and never under the lock; cancelling the step ends a wait.
class StagingArea : public Resource {
 public:
  explicit StagingArea(StagingConfig config);
  ~StagingArea() override;

  // Waits for room. An element over the memory limit never has room: an error.
  void Put(Tuple element, const KernelContext& ctx, Done done);
  // Waits for an element and takes it. One whose types are not those of the
  // node's outputs is an error and stays.
  void Take(const KernelContext& ctx, Queue::TupleDone done);
  // Waits until there are more than `index` elements, and copies that one.
  void Peek(int64_t index, const KernelContext& ctx, Queue::TupleDone done);
  void Clear();
  int64_t size() const;

  std::string DebugString() const override;
  std::optional<QueueDepth> depth() const override;

 private:
  struct Waiter;
  using Waiters = std::deque<std::unique_ptr<Waiter>>;

  bool HasRoomLocked(int64_t bytes) const SLUICE_REQUIRES(mu_);
  void Submit(std::unique_ptr<Waiter> waiter, const KernelContext& ctx);
  // Serves whom it can.
  void AdvanceLocked(Waiters* ended) SLUICE_REQUIRES(mu_);
  bool ServePutsLocked(Waiters* ended) SLUICE_REQUIRES(mu_);
  bool ServeTakesLocked(Waiters* ended) SLUICE_REQUIRES(mu_);
  void ServeLocked(Waiter& waiter) SLUICE_REQUIRES(mu_);
  void Cancel(int64_t id);
  static void Finish(Waiters ended);

  const StagingConfig config_;

  mutable Mutex mu_;
  int64_t next_id_ SLUICE_GUARDED_BY(mu_) = 1;
  int64_t bytes_ SLUICE_GUARDED_BY(mu_) = 0;
  std::deque<Tuple> elements_ SLUICE_GUARDED_BY(mu_);
  Waiters puts_ SLUICE_GUARDED_BY(mu_);
  Waiters takes_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace sluice
