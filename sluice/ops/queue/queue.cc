#include "sluice/ops/queue/queue.h"

#include <limits>

#include "absl/strings/str_join.h"
#include "sluice/base/status.h"
#include "sluice/base/time_limit.h"
#include "sluice/base/timer.h"
#include "sluice/ops/state/elements.h"

namespace sluice {

// One operation that is not finished.
struct Queue::Attempt {
  enum class Kind { kEnqueue, kClose, kTakeOne, kTakeMany, kTakeUpTo };

  Kind kind = Kind::kEnqueue;
  bool batch = false;
  // To put in, from `next` on; or what was taken so far.
  std::vector<Tuple> elements;
  size_t next = 0;
  int64_t missing = 0;  // Elements still to take.
  absl::Status status;
  absl::AnyInvocable<void(Attempt&)> done;
  int64_t timeout_ms = -1;

  int64_t id = 0;
  Cancellation* cancellation = nullptr;
  Cancellation::Token token = Cancellation::kNone;
  WaitTable::Token wait = 0;
  // A queue that somebody waits for stays.
  RefPtr<Queue> queue;

  bool puts() const { return kind == Kind::kEnqueue || kind == Kind::kClose; }
  std::string_view verb() const {
    if (kind == Kind::kClose) return "close of ";
    return puts() ? "enqueue to " : "dequeue from ";
  }
};

namespace {

// What TensorFlow stores for "unbounded" and shows in messages.
// How many elements without contents are enqueued at once.
constexpr int64_t kMostEmpty = 1 << 20;
constexpr int64_t kUnbounded = std::numeric_limits<int32_t>::max();

int64_t TimeoutOf(const KernelContext& ctx) {
  const int64_t* timeout = ctx.node().attrs().Find<int64_t>("timeout_ms");
  return timeout == nullptr ? -1 : *timeout;
}

std::string TypesText(const std::vector<DType>& types) {
  return absl::StrJoin(types, ", ", [](std::string* text, DType type) {
    *text += DTypeName(type);
  });
}

std::string ShapesText(const std::vector<PartialShape>& shapes) {
  const auto append = [](std::string* text, const PartialShape& shape) {
    *text += shape.DebugString();
  };
  return StrCat("[", absl::StrJoin(shapes, ", ", append), "]");
}

int64_t CapacityOf(const QueueConfig& config) {
  return config.capacity < 0 ? kUnbounded : config.capacity;
}

}  // namespace

Queue::TupleDone ToOutputs(KernelContext& ctx, Done done) {
  return [&ctx, done = std::move(done)](absl::StatusOr<Tuple> tuple) mutable {
    if (!tuple.ok()) return done(tuple.status());
    for (size_t i = 0; i < tuple->size(); ++i) {
      ctx.set_output(static_cast<int>(i), std::move((*tuple)[i]));
    }
    done(absl::OkStatus());
  };
}

absl::StatusOr<Tensor> StackTensors(const std::vector<Tuple>& elements,
                                    int component, DType dtype,
                                    const Shape& element_shape) {
  std::vector<int64_t> dims = {static_cast<int64_t>(elements.size())};
  dims.insert(dims.end(), element_shape.dims().begin(),
              element_shape.dims().end());
  SLUICE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  SLUICE_ASSIGN_OR_RETURN(Tensor stacked, Tensor::Create(dtype, shape));
  const int64_t size = element_shape.size();
  for (size_t i = 0; i < elements.size(); ++i) {
    CopyElements(elements[i][component], 0, &stacked, i * size, size);
  }
  return stacked;
}

Queue::Queue(QueueConfig config)
    : config_(std::move(config)), capacity_(CapacityOf(config_)) {}
Queue::~Queue() = default;

void Queue::Enqueue(std::vector<Tuple> elements, const KernelContext& ctx,
                    Done done, bool batch) {
  if (elements.empty()) return done(absl::OkStatus());
  auto attempt = std::make_unique<Attempt>();
  attempt->elements = std::move(elements);
  attempt->batch = batch;
  attempt->done = [done = std::move(done)](Attempt& ended) mutable {
    done(std::move(ended.status));
  };
  Submit(std::move(attempt), ctx);
}

void Queue::EnqueueNow(std::vector<Tuple> elements) {
  Attempts ended;
  {
    MutexLock lock(mu_);
    for (Tuple& element : elements) Push(std::move(element));
    Advance(&ended);
  }
  Finish(std::move(ended));
}

void Queue::Dequeue(const KernelContext& ctx, TupleDone done) {
  auto attempt = std::make_unique<Attempt>();
  attempt->kind = Attempt::Kind::kTakeOne;
  attempt->missing = 1;
  attempt->done = [done = std::move(done)](Attempt& ended) mutable {
    if (!ended.status.ok()) return done(std::move(ended.status));
    done(std::move(ended.elements[0]));
  };
  Submit(std::move(attempt), ctx);
}

void Queue::DequeueMany(int64_t n, bool up_to, const KernelContext& ctx,
                        TupleDone done) {
  if (config_.shapes.empty()) {
    return done(InvalidArgument(
        batch_kind(),
        "'s DequeueMany and DequeueUpTo require the components to have "
        "specified shapes."));
  }
  if (n == 0) return done(Stack({}));
  auto attempt = std::make_unique<Attempt>();
  attempt->kind = up_to ? Attempt::Kind::kTakeUpTo : Attempt::Kind::kTakeMany;
  attempt->missing = n;
  attempt->done = [this, done = std::move(done)](Attempt& ended) mutable {
    if (!ended.status.ok()) return done(std::move(ended.status));
    done(Stack(ended.elements));
  };
  Submit(std::move(attempt), ctx);
}

void Queue::Close(bool cancel_pending_enqueues, const KernelContext& ctx,
                  Done done) {
  if (!cancel_pending_enqueues) {
    auto attempt = std::make_unique<Attempt>();
    attempt->kind = Attempt::Kind::kClose;
    attempt->done = [done = std::move(done)](Attempt& ended) mutable {
      done(std::move(ended.status));
    };
    return Submit(std::move(attempt), ctx);
  }
  Attempts ended;
  {
    MutexLock lock(mu_);
    closed_ = true;
    for (auto& attempt : enqueues_) EndCancelled(std::move(attempt), &ended);
    enqueues_.clear();
    Advance(&ended);
  }
  Finish(std::move(ended));
  done(absl::OkStatus());
}

int64_t Queue::size() const {
  MutexLock lock(mu_);
  return Count();
}

bool Queue::closed() const {
  MutexLock lock(mu_);
  return closed_;
}

void Queue::Submit(std::unique_ptr<Attempt> attempt, const KernelContext& ctx) {
  // `done` may drop the last reference of the caller.
  const auto self = RefPtr<Queue>::Share(this);
  Attempts ended;
  {
    MutexLock lock(mu_);
    attempt->id = next_id_++;
    attempt->cancellation = ctx.step().cancellation;
    Attempts& list = attempt->puts() ? enqueues_ : dequeues_;
    if (attempt->cancellation != nullptr &&
        attempt->cancellation->cancelled()) {
      EndCancelled(std::move(attempt), &ended);
    } else {
      const int64_t id = attempt->id;
      list.push_back(std::move(attempt));
      Advance(&ended);
      if (!list.empty() && list.back()->id == id) {
        AwaitLocked(list, ctx, &ended);
      }
    }
  }
  Finish(std::move(ended));
}

// The newest attempt of `list` has to wait: makes that visible and cancellable.
void Queue::AwaitLocked(Attempts& list, const KernelContext& ctx,
                        Attempts* ended) {
  Attempt& attempt = *list.back();
  attempt.queue = RefPtr<Queue>::Share(this);
  if (attempt.cancellation != nullptr) {
    attempt.token = attempt.cancellation->Register(
        [self = RefPtr<Queue>::Share(this), id = attempt.id] {
          self->EndWait(id, /*timed_out=*/false);
        });
    if (attempt.token == Cancellation::kNone) {
      std::unique_ptr<Attempt> cancelled = std::move(list.back());
      list.pop_back();
      EndCancelled(std::move(cancelled), ended);
      Advance(ended);
      return;
    }
  }
  WaitInfo info;
  info.what = StrCat(attempt.verb(), kind(), " '", name(), "'");
  info.where = StrCat(ctx.node().name(), " on ", ctx.device().name());
  info.step_id = ctx.step().id;
  if (ctx.step().clock != nullptr) info.since = ctx.step().clock->Now();
  attempt.wait = WaitTable::Global().Add(std::move(info));
  attempt.timeout_ms = TimeoutOf(ctx);
  if (attempt.timeout_ms < 0) return;
  CallLater(TimeLimit(attempt.timeout_ms),
            [self = RefPtr<Queue>::Share(this), id = attempt.id] {
              self->EndWait(id, /*timed_out=*/true);
            });
}

void Queue::Advance(Attempts* ended) {
  bool changed;
  do {
    changed = AdvanceList(enqueues_, ended);
    changed |= AdvanceList(dequeues_, ended);
  } while (changed);
}

bool Queue::AdvanceList(Attempts& list, Attempts* ended) {
  bool changed = false;
  while (!list.empty()) {
    const Result result = Try(*list.front());
    changed |= result != Result::kWaits;
    if (result != Result::kComplete) break;
    ended->push_back(std::move(list.front()));
    list.pop_front();
  }
  return changed;
}

Queue::Result Queue::Try(Attempt& attempt) {
  if (attempt.kind == Attempt::Kind::kEnqueue) return TryEnqueue(attempt);
  if (attempt.kind != Attempt::Kind::kClose) return TryTake(attempt);
  if (closed_) {
    attempt.status = Cancelled("Queue '", name(), "' is already closed.");
  }
  closed_ = true;
  return Result::kComplete;
}

Queue::Result Queue::TryEnqueue(Attempt& attempt) {
  if (attempt.batch && attempt.next == 0 && BeginBatch(attempt.elements[0])) {
    closed_ = false;
  }
  if (closed_) {
    attempt.status = Cancelled(kind(), " '", name(), "' is closed.");
    return Result::kComplete;
  }
  const size_t before = attempt.next;
  while (attempt.next < attempt.elements.size() && Count() < capacity_) {
    Push(std::move(attempt.elements[attempt.next++]));
  }
  if (attempt.next == attempt.elements.size()) return Result::kComplete;
  return attempt.next > before ? Result::kProgress : Result::kWaits;
}

Queue::Result Queue::TryTake(Attempt& attempt) {
  using Kind = Attempt::Kind;
  int64_t count = Count();
  if (closed_ && count < attempt.missing) {
    const int64_t requested = attempt.missing;
    attempt.missing += static_cast<int64_t>(attempt.elements.size());
    PutBack(std::exchange(attempt.elements, {}));
    if (attempt.kind == Kind::kTakeUpTo && Count() > 0) {
      count = Count();
      attempt.missing = std::min(attempt.missing, count);
    } else {
      attempt.status = OutOfRange(
          attempt.kind == Kind::kTakeOne ? kind() : batch_kind(), " '", name(),
          "' is closed and has insufficient elements (requested ", requested,
          ", current size ", count, ")");
      return Result::kComplete;
    }
  }
  const int64_t available =
      std::min(closed_ ? count : count - Reserve(), attempt.missing);
  for (int64_t i = 0; i < available; ++i) attempt.elements.push_back(Pop());
  attempt.missing -= std::max<int64_t>(available, 0);
  if (attempt.missing == 0) return Result::kComplete;
  return available > 0 ? Result::kProgress : Result::kWaits;
}

void Queue::EndCancelled(std::unique_ptr<Attempt> attempt, Attempts* ended) {
  UndoLocked(*attempt);
  attempt->status = Cancelled(attempt->puts() ? "Enqueue" : "Dequeue",
                              " operation was cancelled");
  ended->push_back(std::move(attempt));
}

void Queue::UndoLocked(Attempt& attempt) {
  if (!attempt.puts()) PutBack(std::exchange(attempt.elements, {}));
}

void Queue::EndWait(int64_t id, bool timed_out) {
  Attempts ended;
  {
    MutexLock lock(mu_);
    for (Attempts* list : {&enqueues_, &dequeues_}) {
      for (auto it = list->begin(); it != list->end(); ++it) {
        if ((*it)->id != id) continue;
        std::unique_ptr<Attempt> attempt = std::move(*it);
        list->erase(it);
        if (timed_out) {
          UndoLocked(*attempt);
          attempt->status = DeadlineExceeded(
              "The ", attempt->verb(), kind(), " '", name(),
              "' has waited for timeout_ms=", attempt->timeout_ms);
          ended.push_back(std::move(attempt));
        } else {
          attempt->token = Cancellation::kNone;
          EndCancelled(std::move(attempt), &ended);
        }
        break;
      }
    }
    if (!ended.empty()) Advance(&ended);
  }
  Finish(std::move(ended));
}

void Queue::Finish(Attempts ended) {
  // First all that others could still see of the waits; a callback may end the
  // step that owns the cancellation.
  for (auto& attempt : ended) {
    if (attempt->token != Cancellation::kNone) {
      attempt->cancellation->Deregister(attempt->token);
    }
    if (attempt->wait != 0) WaitTable::Global().Remove(attempt->wait);
  }
  for (auto& attempt : ended) attempt->done(*attempt);
}

absl::Status Queue::CheckShape(int component, const PartialShape& expected,
                               const Shape& shape) const {
  if (expected.CompatibleWith(shape)) return absl::OkStatus();
  return InvalidArgument("Shape mismatch in tuple component ", component,
                         ". Expected ", expected.DebugString(), ", got ",
                         shape.DebugString());
}

absl::Status Queue::Check(const Tuple& element) const {
  if (element.size() != config_.types.size()) {
    return InvalidArgument("Wrong number of components in tuple. Expected ",
                           config_.types.size(), ", got ", element.size());
  }
  for (size_t i = 0; i < element.size(); ++i) {
    if (element[i].dtype() != config_.types[i]) {
      return InvalidArgument("Type mismatch in tuple component ", i,
                             ". Expected ", DTypeName(config_.types[i]),
                             ", got ", DTypeName(element[i].dtype()));
    }
  }
  for (size_t i = 0; i < config_.shapes.size(); ++i) {
    SLUICE_RETURN_IF_ERROR(
        CheckShape(static_cast<int>(i), config_.shapes[i], element[i].shape()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tuple>> Queue::SplitBatch(const Tuple& batch) const {
  if (batch.size() != config_.types.size()) {
    return InvalidArgument("Wrong number of components in tuple. Expected ",
                           config_.types.size(), ", got ", batch.size());
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].rank() < 1) {
      return InvalidArgument("Shape mismatch in tuple component ", i,
                             ". Expected a batch of elements, got []");
    }
    if (batch[i].dim(0) != batch[0].dim(0)) {
      return InvalidArgument(
          "All input tensors must have the same size in the 0th dimension. "
          "Component ",
          i, " has ", batch[i].dim(0), ", and should have ", batch[0].dim(0));
    }
    if (!config_.shapes.empty()) {
      PartialShape expected({batch[0].dim(0)});
      for (int64_t dim : config_.shapes[i].dims()) expected.AddDim(dim);
      SLUICE_RETURN_IF_ERROR(
          CheckShape(static_cast<int>(i), expected, batch[i].shape()));
    }
  }
  const int64_t count = batch[0].dim(0);
  size_t bytes = 0;
  for (const Tensor& component : batch) bytes += component.bytes();
  // Each takes memory here, though it takes none there.
  if (count > kMostEmpty && bytes == 0) {
    return ResourceExhausted("Cannot enqueue ", count,
                             " elements that hold nothing");
  }
  std::vector<Tuple> elements(count);
  for (size_t n = 0; n < elements.size(); ++n) {
    for (const Tensor& component : batch) {
      Shape shape = component.shape();
      shape.RemoveDim(0);
      SLUICE_ASSIGN_OR_RETURN(Tensor element,
                              Tensor::Create(component.dtype(), shape));
      CopyElements(component, n * shape.size(), &element, 0, shape.size());
      elements[n].push_back(std::move(element));
    }
    if (n == 0) SLUICE_RETURN_IF_ERROR(Check(elements[0]));
  }
  return elements;
}

absl::StatusOr<Tuple> Queue::Stack(const std::vector<Tuple>& elements) const {
  Tuple stacked;
  for (size_t i = 0; i < config_.types.size(); ++i) {
    SLUICE_ASSIGN_OR_RETURN(
        Tensor component,
        StackTensors(elements, static_cast<int>(i), config_.types[i],
                     config_.shapes[i].AsShape()));
    stacked.push_back(std::move(component));
  }
  return stacked;
}

absl::Status Queue::MatchConfig(const QueueConfig& config) const {
  if (CapacityOf(config) != capacity_) {
    return InvalidArgument("Shared queue '", name(), "' has capacity ",
                           capacity_, " but requested capacity was ",
                           CapacityOf(config));
  }
  if (config.types != config_.types) {
    return InvalidArgument("Shared queue '", name(), "' has component types ",
                           TypesText(config_.types),
                           " but requested component types were ",
                           TypesText(config.types));
  }
  if (config.shapes != config_.shapes) {
    return InvalidArgument("Shared queue '", name(), "' has component shapes ",
                           ShapesText(config_.shapes),
                           " but requested component shapes were ",
                           ShapesText(config.shapes));
  }
  return absl::OkStatus();
}

std::string Queue::DebugString() const {
  MutexLock lock(mu_);
  return StrCat(kind(), " of ", TypesText(config_.types), " with ", Count(),
                " elements", closed_ ? ", closed" : "", ", ", enqueues_.size(),
                " enqueues and ", dequeues_.size(), " dequeues waiting");
}

std::optional<QueueDepth> Queue::depth() const {
  MutexLock lock(mu_);
  return QueueDepth{std::string(kind()), Count(),
                    static_cast<int64_t>(enqueues_.size()),
                    static_cast<int64_t>(dequeues_.size())};
}

}  // namespace sluice
