#include "sluice/rpc/step_replies.h"

#include <algorithm>

#include "sluice/base/status.h"

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
    call->Reply(std::move(reply));
  } else {
    call->Fail(error);
  }
}

void StepAudience::Leave(const ServerCall* call) {
  absl::AnyInvocable<void()> cancel;
  std::vector<std::shared_ptr<ServerCall>> gone;
  {
    MutexLock lock(mu_);
    auto it =
        std::ranges::find(calls_, call, &std::shared_ptr<ServerCall>::get);
    if (it == calls_.end() || answered_) return;
    gone.push_back(std::move(*it));
    calls_.erase(it);
    abandoned_ = calls_.empty();
    if (abandoned_) cancel = std::move(cancel_);
  }
  // A call that was cancelled still has to be answered.
  for (const auto& c : gone) c->Fail(Cancelled("The client went away"));
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

std::vector<std::shared_ptr<ServerCall>> StepAudience::TakeCalls() {
  MutexLock lock(mu_);
  answered_ = true;
  cancel_ = nullptr;
  // Nobody saw how far a step got that was cancelled for want of a client.
  if (abandoned_ || reply_.Length() > kLargestKept) {
    error_ = Aborted(
        "The same RunStep (Master) request was received twice, and the answer "
        "to the first is gone.");
    reply_.Clear();
  }
  return std::move(calls_);
}

void StepAudience::Reply(grpc::ByteBuffer reply) {
  {
    MutexLock lock(mu_);
    reply_ = reply;
  }
  for (const auto& call : TakeCalls()) call->Reply(reply);
}

void StepAudience::Fail(const absl::Status& status) {
  {
    MutexLock lock(mu_);
    error_ = status;
  }
  for (const auto& call : TakeCalls()) call->Fail(status);
}

StepReplies::Found StepReplies::FindOrAdd(int64_t request_id) {
  if (request_id == 0) return {std::make_shared<StepAudience>(), true};
  MutexLock lock(mu_);
  auto [it, added] = audiences_.try_emplace(request_id);
  if (added) {
    it->second = std::make_shared<StepAudience>();
    order_.push_back(request_id);
  }
  const Found found{it->second, added};
  if (order_.size() > kRepliesKept) {
    audiences_.erase(order_.front());
    order_.pop_front();
  }
  return found;
}

}  // namespace sluice
