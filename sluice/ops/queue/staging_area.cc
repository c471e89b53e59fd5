#include "sluice/ops/queue/staging_area.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "sluice/base/status.h"
#include "sluice/ops/queue/step_wait.h"

namespace sluice {

struct StagingArea::Waiter {
  enum class Kind { kPut, kTake, kPeek };

  Kind kind = Kind::kPut;
  Tuple element;             // To put in, or what was taken.
  std::vector<DType> types;  // What is to be taken.
  int64_t index = 0;         // Of the element to look at.
  absl::Status status;
  Queue::TupleDone done;

  int64_t id = 0;
  StepWait wait;
  // An area that somebody waits for stays.
  RefPtr<StagingArea> area;
};

namespace {

int64_t BytesOf(const Tuple& element) {
  size_t bytes = 0;
  for (const Tensor& tensor : element) {
    bytes += tensor.bytes();
    if (tensor.dtype() != DType::kString) continue;
    for (const std::string& text : tensor.data<std::string>()) {
      bytes += sizeof(std::string) + text.size();
    }
  }
  return static_cast<int64_t>(bytes);
}

std::vector<DType> OutputTypes(const KernelContext& ctx) {
  std::vector<DType> types;
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    types.push_back(ctx.node().output_type(i));
  }
  return types;
}

absl::Status CheckTypes(const Tuple& element, const std::vector<DType>& types) {
  if (element.size() != types.size()) {
    return InvalidArgument("Mismatch stage/unstage: ", element.size(), " vs. ",
                           types.size());
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (element[i].dtype() == types[i]) continue;
    return InvalidArgument("Mismatch stage/unstage: component ", i, " is ",
                           DTypeName(element[i].dtype()), " vs. ",
                           DTypeName(types[i]));
  }
  return absl::OkStatus();
}

}  // namespace

StagingArea::StagingArea(StagingConfig config) : config_(std::move(config)) {}
StagingArea::~StagingArea() = default;

void StagingArea::Put(Tuple element, const KernelContext& ctx, Done done) {
  const int64_t bytes = BytesOf(element);
  if (config_.memory_limit > 0 && bytes > config_.memory_limit) {
    return done(ResourceExhausted(
        "Attempted to insert tensors with combined size of '", bytes,
        "' bytes into Staging Area with a memory limit of '",
        config_.memory_limit, "'."));
  }
  auto waiter = std::make_unique<Waiter>();
  waiter->element = std::move(element);
  waiter->done = [done = std::move(done)](absl::StatusOr<Tuple> ended) mutable {
    done(ended.status());
  };
  Submit(std::move(waiter), ctx);
}

void StagingArea::Take(const KernelContext& ctx, Queue::TupleDone done) {
  auto waiter = std::make_unique<Waiter>();
  waiter->kind = Waiter::Kind::kTake;
  waiter->types = OutputTypes(ctx);
  waiter->done = std::move(done);
  Submit(std::move(waiter), ctx);
}

void StagingArea::Peek(int64_t index, const KernelContext& ctx,
                       Queue::TupleDone done) {
  if (index < 0) {
    return done(InvalidArgument("index must not be negative, got ", index));
  }
  auto waiter = std::make_unique<Waiter>();
  waiter->kind = Waiter::Kind::kPeek;
  waiter->types = OutputTypes(ctx);
  waiter->index = index;
  waiter->done = std::move(done);
  Submit(std::move(waiter), ctx);
}

void StagingArea::Clear() {
  Waiters ended;
  std::deque<Tuple> dropped;
  {
    MutexLock lock(mu_);
    dropped.swap(elements_);
    bytes_ = 0;
    AdvanceLocked(&ended);
  }
  Finish(std::move(ended));
}

int64_t StagingArea::size() const {
  MutexLock lock(mu_);
  return static_cast<int64_t>(elements_.size());
}

std::string StagingArea::DebugString() const {
  MutexLock lock(mu_);
  return StrCat("StagingArea with ", elements_.size(), " elements of ", bytes_,
                " bytes, ", puts_.size(), " puts and ", takes_.size(),
                " takes waiting");
}

bool StagingArea::HasRoomLocked(int64_t bytes) const {
  const auto size = static_cast<int64_t>(elements_.size());
  return (config_.capacity == 0 || size < config_.capacity) &&
         (config_.memory_limit == 0 || bytes_ + bytes <= config_.memory_limit);
}

void StagingArea::Submit(std::unique_ptr<Waiter> waiter,
                         const KernelContext& ctx) {
  // `done` may drop the last reference of the caller.
  const auto self = RefPtr<StagingArea>::Share(this);
  const bool put = waiter->kind == Waiter::Kind::kPut;
  // A step that is over takes nothing from those that come after.
  if (ctx.step().cancellation != nullptr &&
      ctx.step().cancellation->cancelled()) {
    return waiter->done(Cancelled("Staging operation was cancelled"));
  }
  Waiters ended;
  {
    MutexLock lock(mu_);
    Waiters& list = put ? puts_ : takes_;
    const int64_t id = waiter->id = next_id_++;
    list.push_back(std::move(waiter));
    AdvanceLocked(&ended);
    if (!list.empty() && list.back()->id == id) {
      Waiter& last = *list.back();
      if (last.wait.Begin(ctx,
                          StrCat(put ? "room in " : "an element of ",
                                 "StagingArea '", config_.name, "'"),
                          [self, id] { self->Cancel(id); })) {
        last.area = self;
      } else {
        last.status = Cancelled("Staging operation was cancelled");
        ended.push_back(std::move(list.back()));
        list.pop_back();
      }
    }
  }
  Finish(std::move(ended));
}

void StagingArea::AdvanceLocked(Waiters* ended) {
  while (ServePutsLocked(ended) || ServeTakesLocked(ended)) {
  }
}

bool StagingArea::ServePutsLocked(Waiters* ended) {
  bool served = false;
  while (!puts_.empty() && HasRoomLocked(BytesOf(puts_.front()->element))) {
    bytes_ += BytesOf(puts_.front()->element);
    elements_.push_back(std::move(puts_.front()->element));
    ended->push_back(std::move(puts_.front()));
    puts_.pop_front();
    served = true;
  }
  return served;
}

// Who looks at a later element keeps nobody from taking the first.
bool StagingArea::ServeTakesLocked(Waiters* ended) {
  bool served = false;
  for (auto it = takes_.begin(); it != takes_.end();) {
    if ((*it)->index >= static_cast<int64_t>(elements_.size())) {
      ++it;
      continue;
    }
    ServeLocked(**it);
    ended->push_back(std::move(*it));
    it = takes_.erase(it);
    served = true;
  }
  return served;
}

void StagingArea::ServeLocked(Waiter& waiter) {
  waiter.status = CheckTypes(elements_[waiter.index], waiter.types);
  if (!waiter.status.ok()) return;
  waiter.element = elements_[waiter.index];
  if (waiter.kind == Waiter::Kind::kPeek) return;
  bytes_ -= BytesOf(waiter.element);
  elements_.pop_front();
}

void StagingArea::Cancel(int64_t id) {
  Waiters ended;
  {
    MutexLock lock(mu_);
    for (Waiters* list : {&puts_, &takes_}) {
      const auto it = std::ranges::find_if(
          *list, [id](const auto& waiter) { return waiter->id == id; });
      if (it == list->end()) continue;
      (*it)->wait.Forget();
      (*it)->status = Cancelled("Staging operation was cancelled");
      ended.push_back(std::move(*it));
      list->erase(it);
    }
    // A put behind one that needed more room may have enough.
    AdvanceLocked(&ended);
  }
  Finish(std::move(ended));
}

void StagingArea::Finish(Waiters ended) {
  for (auto& waiter : ended) waiter->wait.End();
  for (auto& waiter : ended) {
    if (waiter->status.ok()) {
      waiter->done(std::move(waiter->element));
    } else {
      waiter->done(std::move(waiter->status));
    }
  }
}

std::optional<QueueDepth> StagingArea::depth() const {
  MutexLock lock(mu_);
  return QueueDepth{"StagingArea", static_cast<int64_t>(elements_.size()),
                    static_cast<int64_t>(puts_.size()),
                    static_cast<int64_t>(takes_.size())};
}

}  // namespace sluice
