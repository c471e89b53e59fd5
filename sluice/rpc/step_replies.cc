#include "sluice/rpc/step_replies.h"

#include <algorithm>

#include "sluice/base/status.h"
#include "sluice/base/timer.h"

namespace sluice {
namespace {

// A client that lost its connection asks again within seconds.
constexpr size_t kRepliesKept = 256;
// A larger answer is not kept at all: the memory is the tensors' own size.
constexpr size_t kLargestKept = 64 << 10;

}  // namespace

void StepAudience::Join(std::shared_ptr<ServerCall> call) {
  grpc::ByteBuffer reply;
  absl::Status error;
  bool answered;
  {
    MutexLock lock(mu_);
    answered = answered_;
    if (answered) {
      reply = reply_;
      error = error_;
    } else {
      calls_.push_back(call);
    }
  }
  if (!answered) {
    call->OnCancel(
        [self = shared_from_this(), raw = call.get()] { self->Leave(raw); });
  } else if (error.ok()) {
    call->Reply(reply);
  } else {
    call->Fail(error);
  }
}

void StepAudience::Leave(const ServerCall* call) {
  std::shared_ptr<ServerCall> gone;
  bool alone;
  {
    MutexLock lock(mu_);
    auto it =
        std::ranges::find(calls_, call, &std::shared_ptr<ServerCall>::get);
    if (it == calls_.end() || answered_) return;
    gone = std::move(*it);
    calls_.erase(it);
    alone = calls_.empty();
  }
  // A call that was cancelled still has to be answered.
  gone->Fail(Cancelled("The client went away"));
  if (!alone) return;
  // A client with a deadline would come back to no time left.
  if (gone->deadline() - std::chrono::system_clock::now() < grace_) {
    AbandonIfAlone();
  } else {
    CallLater(grace_, [self = shared_from_this()] { self->AbandonIfAlone(); });
  }
}

void StepAudience::AbandonIfAlone() {
  absl::AnyInvocable<void()> cancel;
  {
    MutexLock lock(mu_);
    if (answered_ || !calls_.empty()) return;
    abandoned_ = true;
    cancel = std::move(cancel_);
  }
  if (cancel) cancel();
}

void StepAudience::OnAbandoned(absl::AnyInvocable<void()> cancel) {
  {
    MutexLock lock(mu_);
    if (answered_) return;
    if (!abandoned_) {
      cancel_ = std::move(cancel);
      return;
    }
  }
  cancel();
}

void StepAudience::Reply(grpc::ByteBuffer reply) {
  {
    MutexLock lock(mu_);
    reply_.Swap(&reply);
  }
  Answer();
}

void StepAudience::Fail(const absl::Status& status) {
  {
    MutexLock lock(mu_);
    error_ = status;
  }
  Answer();
}

void StepAudience::Answer() {
  static const absl::Status kGone = Aborted(
      "The same RunStep (Master) request was received twice, and the answer to "
      "the first is gone.");
  std::vector<std::shared_ptr<ServerCall>> calls;
  grpc::ByteBuffer reply;
  absl::Status error;
  {
    MutexLock lock(mu_);
    answered_ = true;
    cancel_ = nullptr;
    calls.swap(calls_);
    // Nobody saw how far a step got that was cancelled for want of a client,
    // and whoever asked for it again has to start afresh.
    if (abandoned_) error_ = kGone;
    error = error_;
    reply = reply_;
    if (error_.ok() && reply_.Length() > kLargestKept) error_ = kGone;
    if (!error_.ok()) reply_.Clear();
  }
  if (const auto table = table_.lock()) table->Answered(request_id_);
  for (const auto& call : calls) {
    if (error.ok()) {
      call->Reply(reply);
    } else {
      call->Fail(error);
    }
  }
}

AudienceTable::Found AudienceTable::FindOrAdd(
    int64_t request_id,
    absl::FunctionRef<std::shared_ptr<StepAudience>()> make) {
  MutexLock lock(mu_);
  auto [it, added] = audiences_.try_emplace(request_id);
  if (added) it->second = make();
  return {it->second, added};
}

void AudienceTable::Answered(int64_t request_id) {
  std::shared_ptr<StepAudience> gone;
  MutexLock lock(mu_);
  answered_.push_back(request_id);
  if (answered_.size() <= kRepliesKept) return;
  const auto oldest = audiences_.find(answered_.front());
  gone = std::move(oldest->second);
  audiences_.erase(oldest);
  answered_.pop_front();
}

StepReplies::Found StepReplies::FindOrAdd(int64_t request_id) {
  if (request_id == 0) return {std::make_shared<StepAudience>(grace_), true};
  return table_->FindOrAdd(request_id, [&] {
    return std::make_shared<StepAudience>(grace_, table_, request_id);
  });
}

}  // namespace sluice
