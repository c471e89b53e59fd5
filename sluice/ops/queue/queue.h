// Queue: elements that steps hand to each other. Element = one tensor for each
// component. Whoever cannot go on waits in one of two lists, enqueues and
// dequeues, and is served in order; no thread waits.
//
// After Close no element comes in any more, and takers get what is left.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/mutex.h"
#include "sluice/kernel/kernel.h"
#include "sluice/kernel/resource.h"

namespace sluice {

using Tuple = std::vector<Tensor>;

struct QueueConfig {
  std::string name;
  int64_t capacity = -1;  // Negative: unbounded.
  std::vector<DType> types;
  // Empty: any shape, also a different one for each element.
  std::vector<PartialShape> shapes;
};

// Thread-safe. The operations return at once and call `done` exactly once,
// perhaps before they return and never under the queue's lock. `ctx` tells who
// waits; cancelling its step ends the wait, and so does the time of the node's
// attribute `timeout_ms`, unless it is negative.
class Queue : public Resource {
 public:
  explicit Queue(QueueConfig config);
  ~Queue() override;

  const std::string& name() const { return config_.name; }
  const std::vector<DType>& types() const { return config_.types; }
  // The op that makes such queues.
  std::string_view kind_name() const { return batch_kind(); }

  // The elements must have passed Check, or come from SplitBatch: a batch.
  void Enqueue(std::vector<Tuple> elements, const KernelContext& ctx, Done done,
               bool batch = false);
  // As Enqueue into a queue without bounds, on behalf of no step.
  void EnqueueNow(std::vector<Tuple> elements);
  using TupleDone = absl::AnyInvocable<void(absl::StatusOr<Tuple>)>;
  // The components of one element.
  void Dequeue(const KernelContext& ctx, TupleDone done);
  // `n` elements, each component stacked. `up_to`: fewer, but at least one, if
  // the queue is closed.
  void DequeueMany(int64_t n, bool up_to, const KernelContext& ctx,
                   TupleDone done);
  // Waits for the enqueues before it, or cancels them.
  void Close(bool cancel_pending_enqueues, const KernelContext& ctx, Done done);
  int64_t size() const;
  bool closed() const;

  // Whether `element` may be enqueued.
  virtual absl::Status Check(const Tuple& element) const;
  // The elements of a batch, copied so that they do not hold on to it.
  absl::StatusOr<std::vector<Tuple>> SplitBatch(const Tuple& batch) const;

  // An error if a queue like the one `config` describes cannot share this one.
  absl::Status MatchConfig(const QueueConfig& config) const;
  std::string DebugString() const override;
  std::optional<QueueDepth> depth() const override;

 protected:
  // What messages call this kind of queue; batches may have another name.
  virtual std::string_view kind() const = 0;
  virtual std::string_view batch_kind() const { return kind(); }
  // The store of elements. Called under the lock.
  virtual int64_t Count() const = 0;
  virtual void Push(Tuple element) = 0;
  virtual Tuple Pop() = 0;
  // Returns elements that were popped for somebody who no longer wants them.
  virtual void PutBack(std::vector<Tuple> elements) = 0;
  // Elements that stay in while the queue is open.
  virtual int64_t Reserve() const { return 0; }
  // Called under the lock before the first element of a batch comes in. True
  // opens a closed queue again.
  virtual bool BeginBatch(const Tuple& /*first*/) { return false; }
  // Not under the lock: stacks elements, of which there may be none.
  virtual absl::StatusOr<Tuple> Stack(const std::vector<Tuple>& elements) const;
  virtual absl::Status CheckShape(int component, const PartialShape& expected,
                                  const Shape& shape) const;

  const QueueConfig& config() const { return config_; }

 private:
  struct Attempt;
  using Attempts = std::deque<std::unique_ptr<Attempt>>;
  enum class Result { kWaits, kProgress, kComplete };

  void Submit(std::unique_ptr<Attempt> attempt, const KernelContext& ctx);
  void AwaitLocked(Attempts& list, const KernelContext& ctx, Attempts* ended)
      SLUICE_REQUIRES(mu_);
  void Advance(Attempts* ended) SLUICE_REQUIRES(mu_);
  bool AdvanceList(Attempts& list, Attempts* ended) SLUICE_REQUIRES(mu_);
  Result Try(Attempt& attempt) SLUICE_REQUIRES(mu_);
  Result TryEnqueue(Attempt& attempt) SLUICE_REQUIRES(mu_);
  Result TryTake(Attempt& attempt) SLUICE_REQUIRES(mu_);
  void EndCancelled(std::unique_ptr<Attempt> attempt, Attempts* ended)
      SLUICE_REQUIRES(mu_);
  // Takes back what an attempt did.
  void UndoLocked(Attempt& attempt) SLUICE_REQUIRES(mu_);
  // Ends a wait that its step or its time ended.
  void EndWait(int64_t id, bool timed_out);
  // Calls back those whose attempts ended. Not under the lock.
  static void Finish(Attempts ended);

  const QueueConfig config_;
  const int64_t capacity_;

  mutable Mutex mu_;
  bool closed_ SLUICE_GUARDED_BY(mu_) = false;
  int64_t next_id_ SLUICE_GUARDED_BY(mu_) = 1;
  Attempts enqueues_ SLUICE_GUARDED_BY(mu_);
  Attempts dequeues_ SLUICE_GUARDED_BY(mu_);
};

// Gives the tensors out as the outputs of `ctx`, which must stay until then.
Queue::TupleDone ToOutputs(KernelContext& ctx, Done done);

// Copies same-shaped tensors into one with a new first dimension.
absl::StatusOr<Tensor> StackTensors(const std::vector<Tuple>& elements,
                                    int component, DType dtype,
                                    const Shape& element_shape);

}  // namespace sluice
