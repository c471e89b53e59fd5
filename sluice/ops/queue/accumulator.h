// Accumulators: gradients of several workers, summed until somebody takes their
// average. The heart of synchronous training.
//
// An accumulator counts steps. A gradient computed for an older step than the
// present one is dropped; each take begins a new step.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/mutex.h"
#include "sluice/kernel/kernel.h"
#include "sluice/kernel/resource.h"
#include "sluice/ops/queue/queue.h"

namespace sluice {

struct AccumulatorConfig {
  std::string name;
  DType dtype = DType::kInvalid;
  PartialShape shape;
  bool mean = true;  // Take gives the average, else the sum.
  bool sparse = false;
  bool operator==(const AccumulatorConfig&) const = default;
};

// Thread-safe.
class Accumulator : public Resource {
 public:
  explicit Accumulator(AccumulatorConfig config);
  ~Accumulator() override;

  const AccumulatorConfig& config() const { return config_; }

  // Adds the tensors of one gradient, unless `local_step` is in the past.
  absl::Status Apply(int64_t local_step, const Tuple& gradient);
  // Calls `done` once, not under the lock, when `required` gradients are there,
  // with the average over all there are. First come, first served. Cancelling
  // the step of `ctx` ends the wait.
  void Take(int64_t required, const KernelContext& ctx, Queue::TupleDone done);
  void SetGlobalStep(int64_t step);
  int64_t count() const;
  // Gradients dropped because they came too late.
  int64_t dropped() const;

  std::string DebugString() const override;
  std::optional<QueueDepth> depth() const override;

 protected:
  // The sum. Called under the lock.
  virtual absl::Status Add(const Tuple& gradient, bool first) = 0;
  // The average (or sum) of `count` gradients; the sum is used up.
  virtual absl::StatusOr<Tuple> Reduce(int64_t count) = 0;

 private:
  struct Waiter;
  using Waiters = std::deque<std::unique_ptr<Waiter>>;

  void Serve(Waiters* ended) SLUICE_REQUIRES(mu_);
  void AwaitLocked(const KernelContext& ctx, Waiters* ended)
      SLUICE_REQUIRES(mu_);
  void Cancel(int64_t id);
  static void Finish(Waiters ended);

  const AccumulatorConfig config_;

  mutable Mutex mu_;
  int64_t step_ SLUICE_GUARDED_BY(mu_) = 0;
  int64_t count_ SLUICE_GUARDED_BY(mu_) = 0;
  int64_t dropped_ SLUICE_GUARDED_BY(mu_) = 0;
  int64_t next_id_ SLUICE_GUARDED_BY(mu_) = 1;
  Waiters waiters_ SLUICE_GUARDED_BY(mu_);
};

// Gradients are one tensor each. The element type must be float, double, int32,
// int64, or half or bfloat16, which are summed as floats and rounded when they
// are taken.
RefPtr<Accumulator> MakeDenseAccumulator(AccumulatorConfig config);
// Gradients are (indices, values, shape); an empty shape says nothing. A row's
// average is over the gradients that have that row.
RefPtr<Accumulator> MakeSparseAccumulator(AccumulatorConfig config);

}  // namespace sluice
