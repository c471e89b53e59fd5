#include "sluice/rpc/step_replies.h"

#include <algorithm>
#include <deque>

#include "sluice/base/simulation.h"
#include "sluice/base/status.h"
#include "sluice/base/timer.h"

namespace sluice {
namespace {

// Of memory for an answer, beside its bytes.
constexpr size_t kCostOfOne = 512;

// When a connection breaks, all its calls do, one after the other.
constexpr std::chrono::nanoseconds kAllBroken = std::chrono::milliseconds(50);

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
      ++joined_;
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
  int64_t joined;
  {
    MutexLock lock(mu_);
    auto it =
        std::ranges::find(calls_, call, &std::shared_ptr<ServerCall>::get);
    if (it == calls_.end() || answered_) return;
    gone = std::move(*it);
    calls_.erase(it);
    alone = calls_.empty();
    joined = joined_;
  }
  // A call that was cancelled still has to be answered.
  gone->Fail(Cancelled("The client went away"));
  if (!alone) return;
  // A client whose time is up does not come back.
  const auto left = gone->deadline() - std::chrono::system_clock::now();
  if (left <= left.zero()) {
    AbandonIfAlone(joined);
    return;
  }
  // Nor does one that has another call open: it has cancelled this one.
  const auto grace = std::min<std::chrono::nanoseconds>(kept_.grace, left);
  const auto first = std::min(kAllBroken, grace);
  CallLater(first, [self = shared_from_this(), joined, rest = grace - first] {
    if (rest <= rest.zero() || self->ClientIsThere()) {
      self->AbandonIfAlone(joined);
    } else {
      CallLater(rest, [self, joined] { self->AbandonIfAlone(joined); });
    }
  });
}

bool StepAudience::ClientIsThere() const {
  const std::shared_ptr<AudienceTable> table = table_.lock();
  return table != nullptr && table->IsHeld(session_);
}

void StepAudience::AbandonIfAlone(int64_t joined) {
  absl::AnyInvocable<void()> cancel;
  {
    MutexLock lock(mu_);
    // Who came back and is lost again has a grace of its own.
    if (answered_ || !calls_.empty() || joined_ != joined) return;
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
  Answer(reply, absl::OkStatus());
}

void StepAudience::Fail(const absl::Status& status) { Answer({}, status); }

void StepAudience::Answer(grpc::ByteBuffer reply, absl::Status error) {
  static const absl::Status kGone = Aborted(
      "The same RunStep (Master) request was received twice. The answer to the "
      "first is gone.");
  std::vector<std::shared_ptr<ServerCall>> calls;
  size_t bytes = 0;
  {
    MutexLock lock(mu_);
    if (answered_) return;
    answered_ = true;
    cancel_ = nullptr;
    calls.swap(calls_);
    // Nobody saw how far a step got that was cancelled for want of a client,
    // and whoever asked for it again has to start afresh.
    if (abandoned_) error = kGone;
    error_ = error;
    if (!error_.ok()) {
      bytes = error_.message().size();
    } else if (reply.Length() > kept_.largest) {
      error_ = kGone;
    } else {
      bytes = reply.Length();
      reply_ = reply;
    }
  }
  if (const auto table = table_.lock()) {
    table->Answered(session_, request_id_, bytes);
  }
  for (const auto& call : calls) {
    if (error.ok()) {
      call->Reply(reply);
    } else {
      call->Fail(error);
    }
  }
}

struct AudienceTable::Session {
  std::string handle;
  absl::flat_hash_map<int64_t, std::shared_ptr<StepAudience>> audiences;
  std::deque<std::list<Kept>::iterator> kept;  // The oldest first.
  size_t bytes = 0;
  // No longer in the table. It lives on while others look at it, and another
  // may have its place.
  bool forgotten = false;
};

std::shared_ptr<StepAudience> AudienceTable::FindOrAdd(std::string_view handle,
                                                       int64_t request_id,
                                                       uint64_t content,
                                                       bool* first) {
  MutexLock lock(mu_);
  std::shared_ptr<Session>& session = sessions_[ToAbsl(handle)];
  if (session == nullptr) {
    session = std::make_shared<Session>();
    session->handle = std::string(handle);
  }
  auto [it, added] = session->audiences.try_emplace(request_id);
  if (added) {
    it->second = std::make_shared<StepAudience>(limits_, shared_from_this(),
                                                session, request_id, content);
  }
  *first = added;
  return it->second;
}

void AudienceTable::Answered(const std::weak_ptr<Session>& weak,
                             int64_t request_id, size_t bytes) {
  const SteadyTime now = TheClock().Now();
  const std::shared_ptr<Session> session = weak.lock();
  if (session == nullptr) return;
  bool wake = false;
  Dropped dropped;
  {
    MutexLock lock(mu_);
    if (session->forgotten) return;
    bytes += kCostOfOne;
    kept_.push_back({session.get(), request_id, bytes, now + limits_.time});
    session->kept.push_back(std::prev(kept_.end()));
    session->bytes += bytes;
    bytes_ += bytes;
    DropOld(now, &dropped);
    while (session->bytes > limits_.session_bytes) {
      Drop(session->kept.front(), &dropped);
    }
    while (bytes_ > limits_.total_bytes) Drop(kept_.begin(), &dropped);
    wake = !std::exchange(timer_set_, true);
  }
  if (wake) DropOldAfter(limits_.time);
}

void AudienceTable::Drop(std::list<Kept>::iterator kept, Dropped* dropped) {
  Session& session = *kept->session;
  session.kept.pop_front();  // The oldest of all, or of the session.
  session.bytes -= kept->bytes;
  bytes_ -= kept->bytes;
  const auto it = session.audiences.find(kept->request_id);
  dropped->push_back(std::move(it->second));
  session.audiences.erase(it);
  kept_.erase(kept);
  if (session.audiences.empty()) sessions_.erase(session.handle);
}

void AudienceTable::DropOld(SteadyTime now, Dropped* dropped) {
  while (!kept_.empty() && kept_.front().until <= now) {
    Drop(kept_.begin(), dropped);
  }
}

// For sessions that run no more steps.
void AudienceTable::DropOldAfter(std::chrono::nanoseconds delay) {
  CallLater(delay, [weak = weak_from_this()] {
    const std::shared_ptr<AudienceTable> self = weak.lock();
    if (self == nullptr) return;
    const SteadyTime now = TheClock().Now();
    std::chrono::nanoseconds next;
    Dropped dropped;
    {
      MutexLock lock(self->mu_);
      self->DropOld(now, &dropped);
      self->timer_set_ = !self->kept_.empty();
      if (!self->timer_set_) return;
      next = self->kept_.front().until - now;
    }
    self->DropOldAfter(next);
  });
}

void AudienceTable::Forget(std::string_view handle) {
  std::shared_ptr<Session> gone;
  MutexLock lock(mu_);
  const auto it = sessions_.find(ToAbsl(handle));
  if (it == sessions_.end()) return;
  gone = std::move(it->second);
  gone->forgotten = true;
  sessions_.erase(it);
  for (const auto& kept : gone->kept) kept_.erase(kept);
  bytes_ -= gone->bytes;
}

bool AudienceTable::IsHeld(const std::weak_ptr<Session>& weak) const {
  const std::shared_ptr<Session> session = weak.lock();
  return session != nullptr && holds_ && holds_(session->handle);
}

StepReplies::Found StepReplies::FindOrAdd(std::string_view session,
                                          int64_t request_id,
                                          uint64_t content) {
  if (request_id == 0) return {std::make_shared<StepAudience>(kept_), true};
  Found found;
  found.audience =
      table_->FindOrAdd(session, request_id, content, &found.first);
  if (found.audience->content() != content) found.audience = nullptr;
  return found;
}

}  // namespace sluice
