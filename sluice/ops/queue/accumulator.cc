#include "sluice/ops/queue/accumulator.h"

#include "sluice/base/logging.h"
#include "sluice/base/status.h"

namespace sluice {

// Somebody who waits for gradients.
struct Accumulator::Waiter {
  int64_t required = 0;
  absl::StatusOr<Tuple> result;
  Queue::TupleDone done;

  int64_t id = 0;
  Cancellation* cancellation = nullptr;
  Cancellation::Token token = Cancellation::kNone;
  WaitTable::Token wait = 0;
  RefPtr<Accumulator> accumulator;  // One that somebody waits for stays.
};

Accumulator::Accumulator(AccumulatorConfig config)
    : config_(std::move(config)) {}
Accumulator::~Accumulator() = default;

absl::Status Accumulator::Apply(int64_t local_step, const Tuple& gradient) {
  Waiters ended;
  {
    MutexLock lock(mu_);
    if (local_step < step_) {
      ++dropped_;
      return absl::OkStatus();
    }
    SLUICE_RETURN_IF_ERROR(Add(gradient, count_ == 0));
    ++count_;
    Serve(&ended);
  }
  Finish(std::move(ended));
  return absl::OkStatus();
}

void Accumulator::Take(int64_t required, const KernelContext& ctx,
                       Queue::TupleDone done) {
  if (required <= 0) {
    return done(InvalidArgument(
        "Argument num_required must be positive, but was ", required));
  }
  auto waiter = std::make_unique<Waiter>();
  waiter->required = required;
  waiter->done = std::move(done);
  waiter->cancellation = ctx.step().cancellation;
  // A step that is over takes nothing from those that come after.
  if (waiter->cancellation != nullptr && waiter->cancellation->cancelled()) {
    return waiter->done(Cancelled("TakeGrad operation was cancelled"));
  }
  Waiters ended;
  {
    MutexLock lock(mu_);
    const int64_t id = waiter->id = next_id_++;
    waiters_.push_back(std::move(waiter));
    Serve(&ended);
    if (!waiters_.empty() && waiters_.back()->id == id) {
      AwaitLocked(ctx, &ended);
    }
  }
  Finish(std::move(ended));
}

// The newest waiter has to wait: makes that visible and cancellable.
void Accumulator::AwaitLocked(const KernelContext& ctx, Waiters* ended) {
  Waiter& waiter = *waiters_.back();
  waiter.accumulator = RefPtr<Accumulator>::Share(this);
  if (waiter.cancellation != nullptr) {
    waiter.token = waiter.cancellation->Register(
        [self = waiter.accumulator, id = waiter.id] { self->Cancel(id); });
    if (waiter.token == Cancellation::kNone) {
      waiter.result = Cancelled("TakeGrad operation was cancelled");
      ended->push_back(std::move(waiters_.back()));
      waiters_.pop_back();
      return;
    }
  }
  WaitInfo info;
  info.what = StrCat(waiter.required, " gradients in accumulator '",
                     config_.name, "', which has ", count_);
  info.where = StrCat(ctx.node().name(), " on ", ctx.device().name());
  info.step_id = ctx.step().id;
  if (ctx.step().clock != nullptr) info.since = ctx.step().clock->Now();
  waiter.wait = WaitTable::Global().Add(std::move(info));
}

void Accumulator::Serve(Waiters* ended) {
  while (!waiters_.empty() && waiters_.front()->required <= count_) {
    std::unique_ptr<Waiter> waiter = std::move(waiters_.front());
    waiters_.pop_front();
    waiter->result = Reduce(count_);
    count_ = 0;
    ++step_;
    ended->push_back(std::move(waiter));
  }
}

void Accumulator::Cancel(int64_t id) {
  Waiters ended;
  {
    MutexLock lock(mu_);
    for (auto it = waiters_.begin(); it != waiters_.end(); ++it) {
      if ((*it)->id != id) continue;
      (*it)->result = Cancelled("TakeGrad operation was cancelled");
      (*it)->token = Cancellation::kNone;
      ended.push_back(std::move(*it));
      waiters_.erase(it);
      break;
    }
    // The next one may want fewer.
    if (!ended.empty()) Serve(&ended);
  }
  Finish(std::move(ended));
}

void Accumulator::Finish(Waiters ended) {
  for (auto& waiter : ended) {
    if (waiter->token != Cancellation::kNone) {
      waiter->cancellation->Deregister(waiter->token);
    }
    if (waiter->wait != 0) WaitTable::Global().Remove(waiter->wait);
  }
  for (auto& waiter : ended) waiter->done(std::move(waiter->result));
}

void Accumulator::SetGlobalStep(int64_t step) {
  int64_t before;
  {
    MutexLock lock(mu_);
    before = std::exchange(step_, step);
  }
  if (step < before) {
    SLUICE_LOG(WARNING) << "Attempt to set the step of accumulator '"
                        << config_.name << "' back from " << before << " to "
                        << step;
  }
}

int64_t Accumulator::count() const {
  MutexLock lock(mu_);
  return count_;
}

int64_t Accumulator::dropped() const {
  MutexLock lock(mu_);
  return dropped_;
}

std::string Accumulator::DebugString() const {
  MutexLock lock(mu_);
  return StrCat("accumulator of ", DTypeName(config_.dtype), " ",
                config_.shape.DebugString(), " at step ", step_, " with ",
                count_, " gradients, ", dropped_, " dropped, ", waiters_.size(),
                " waiting");
}

std::optional<QueueDepth> Accumulator::depth() const {
  MutexLock lock(mu_);
  return QueueDepth{"accumulator", count_, 0,
                    static_cast<int64_t>(waiters_.size())};
}

}  // namespace sluice
