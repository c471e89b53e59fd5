#include "sluice/ops/queue/barrier.h"

#include <algorithm>
#include <utility>

#include "sluice/base/status.h"
#include "sluice/ops/state/elements.h"

namespace sluice {
namespace {

QueueConfig ReadyConfig(const QueueConfig& barrier) {
  QueueConfig config = barrier;
  config.capacity = -1;
  config.types.insert(config.types.begin(), {DType::kInt64, DType::kString});
  // Tuples of unknown shapes cannot be stacked, which the queue says when one
  // tries.
  const bool known = std::ranges::all_of(
      config.shapes,
      [](const PartialShape& shape) { return shape.FullyDefined(); });
  if (!known) config.shapes.clear();
  if (!config.shapes.empty()) {
    config.shapes.insert(config.shapes.begin(), 2, PartialShape::Scalar());
  }
  return config;
}

}  // namespace

Barrier::Barrier(QueueConfig config)
    : config_(std::move(config)),
      ready_(MakeRef<PriorityQueue>(ReadyConfig(config_))) {}
Barrier::~Barrier() = default;

absl::Status Barrier::CheckInsert(int64_t component, const Tensor& keys,
                                  const Tensor& values) const {
  if (keys.rank() != 1) {
    return InvalidArgument("Keys must be a vector, but received shape ",
                           keys.shape().DebugString());
  }
  if (values.rank() < 1 || values.dim(0) != keys.dim(0)) {
    return InvalidArgument("There are ", keys.dim(0),
                           " keys, but the values have shape ",
                           values.shape().DebugString());
  }
  if (keys.size() > 0 && values.size() == 0) {
    return InvalidArgument("Tensors with no elements are not supported ",
                           config_.name, ": received shape ",
                           values.shape().DebugString());
  }
  if (config_.shapes.empty()) return absl::OkStatus();
  Shape element = values.shape();
  element.RemoveDim(0);
  const PartialShape& expected = config_.shapes[component];
  if (expected.CompatibleWith(element)) return absl::OkStatus();
  return InvalidArgument("Shape mismatch in tuple component ", component,
                         ". Expected ", expected.DebugString(), ", got ",
                         element.DebugString());
}

void Barrier::InsertMany(int64_t component, const Tensor& keys,
                         const Tensor& values, const KernelContext& ctx,
                         Done done) {
  absl::Status status = CheckInsert(component, keys, values);
  if (!status.ok()) return done(std::move(status));
  std::vector<Tuple> ready;
  {
    MutexLock lock(mu_);
    if (closed_ && (cancelled_ || (keys.size() > 0 && incomplete_.empty()))) {
      status = Cancelled(
          "Barrier ", config_.name,
          " is closed.  Pending enqueues cancelled: ", cancelled_ ? 1 : 0,
          ".  Number of new insertions: ", keys.size(),
          ".  Number of incomplete keys: ", incomplete_.size(), ".");
    }
    bool begun = false;
    for (int64_t i = 0; i < keys.size() && status.ok(); ++i) {
      status = InsertLocked(component, keys, values, i, &begun, &ready);
    }
    if (begun) ++next_index_;
    // What was complete before an error is ready all the same.
    ++in_flight_;
  }
  // Other steps have had their part in these, so this one's end drops none.
  ready_->EnqueueNow(std::move(ready));
  bool drained;
  {
    MutexLock lock(mu_);
    --in_flight_;
    drained = closed_ && DrainedLocked();
  }
  if (drained && !ready_->closed()) {
    ready_->Close(/*cancel_pending_enqueues=*/true, ctx, [](absl::Status) {});
  }
  done(std::move(status));
}

absl::Status Barrier::InsertLocked(int64_t component, const Tensor& keys,
                                   const Tensor& values, int64_t i, bool* begun,
                                   std::vector<Tuple>* ready) {
  const std::string& key = keys.data<std::string>()[i];
  auto it = incomplete_.find(key);
  if (it == incomplete_.end()) {
    if (closed_) {
      return Cancelled(
          "Barrier ", config_.name,
          " is closed, but attempted to insert a brand new key: ", key,
          ".  Pending enqueues cancelled: ", cancelled_ ? 1 : 0,
          ".  Insertion index: ", i,
          ".  Number of incomplete keys: ", incomplete_.size(), ".");
    }
    Partial partial;
    partial.tuple.resize(config_.types.size() + 2);
    partial.tuple[0] = Tensor::Scalar<int64_t>(next_index_);
    partial.tuple[1] = Tensor::Scalar(key);
    partial.missing = static_cast<int64_t>(config_.types.size());
    it = incomplete_.emplace(key, std::move(partial)).first;
    *begun = true;
  }
  Tensor& slot = it->second.tuple[2 + component];
  if (slot.initialized()) {
    return InvalidArgument("Key ", key, " already has a value for component ",
                           component, " in barrier ", config_.name);
  }
  Shape shape = values.shape();
  shape.RemoveDim(0);
  SLUICE_ASSIGN_OR_RETURN(slot, Tensor::Create(values.dtype(), shape));
  CopyElements(values, i * shape.size(), &slot, 0, shape.size());
  if (--it->second.missing == 0) {
    ready->push_back(std::move(it->second.tuple));
    incomplete_.erase(it);
  }
  return absl::OkStatus();
}

bool Barrier::DrainedLocked() const {
  return incomplete_.empty() && in_flight_ == 0;
}

void Barrier::TakeMany(int64_t n, bool allow_small_batch,
                       const KernelContext& ctx, Queue::TupleDone done) {
  absl::Status status;
  {
    MutexLock lock(mu_);
    if (closed_) {
      int64_t available = ready_->size();
      if (allow_small_batch) {
        n = std::min(n, available);
      } else {
        available += static_cast<int64_t>(incomplete_.size());
      }
      if (available < std::max<int64_t>(n, 1)) {
        status = OutOfRange("Barrier '", config_.name,
                            "' is closed and has insufficient elements "
                            "(requested ",
                            n, ", total size ", available, ")");
      }
    }
  }
  if (!status.ok()) return done(std::move(status));
  ready_->DequeueMany(n, allow_small_batch, ctx, std::move(done));
}

void Barrier::Close(bool cancel, const KernelContext& ctx, Done done) {
  absl::Status status;
  bool drained = false;
  {
    MutexLock lock(mu_);
    if (cancel ? cancelled_ : closed_) {
      status = Cancelled("Barrier '", config_.name, "' is already closed.");
    } else {
      closed_ = true;
      cancelled_ = cancel;
      if (cancel) incomplete_.clear();
      drained = DrainedLocked();
    }
  }
  if (drained && !ready_->closed()) {
    ready_->Close(/*cancel_pending_enqueues=*/true, ctx, [](absl::Status) {});
  }
  done(std::move(status));
}

int64_t Barrier::incomplete_size() const {
  MutexLock lock(mu_);
  return static_cast<int64_t>(incomplete_.size());
}

absl::Status Barrier::MatchConfig(const QueueConfig& config) const {
  if (config.types == config_.types && config.shapes == config_.shapes) {
    return absl::OkStatus();
  }
  return InvalidArgument("Shared barrier '", config_.name,
                         "' has other component types or shapes");
}

std::string Barrier::DebugString() const {
  const int64_t ready = ready_size();
  MutexLock lock(mu_);
  return StrCat("Barrier with ", incomplete_.size(), " incomplete and ", ready,
                " ready tuples", closed_ ? ", closed" : "");
}

// Only takers wait, for tuples that are whole.
std::optional<QueueDepth> Barrier::depth() const {
  std::optional<QueueDepth> depth = ready_->depth();
  depth->kind = "Barrier";
  MutexLock lock(mu_);
  depth->elements += static_cast<int64_t>(incomplete_.size());
  return depth;
}

}  // namespace sluice
