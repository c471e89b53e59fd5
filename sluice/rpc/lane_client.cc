#include "sluice/rpc/lane_client.h"

#include <algorithm>
#include <utility>

#include "sluice/base/status.h"
#include "sluice/base/timer.h"
#include "sluice/rpc/lane_socket.h"

namespace sluice {
namespace {

// A landing reads what stands before a tensor: its type and shape. Nothing
// longer is shown to it.
constexpr size_t kMostLandingLead = 64 << 10;

std::string_view View(const grpc::Slice& slice) {
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

}  // namespace

void LaneClient::Connect(const std::string& name, Ready ready) {
  const absl::StatusOr<int> fd = ConnectLane(name);
  if (!fd.ok()) {
    ready(fd.status());
    return;
  }
  auto client = std::make_shared<LaneClient>(*fd, std::move(ready));
  client->Start();
  LaneHeader hello;
  hello.code = kLaneVersion;
  client->Enqueue(hello);
  client->Flush();
}

LaneClient::LaneClient(int fd, Ready ready)
    : LaneConnection(fd, End::kClient, /*most_bytes=*/SIZE_MAX),
      ready_(std::move(ready)) {}

bool LaneClient::Call(const char* path, const grpc::ByteBuffer& request,
                      const RpcChannel::Options& options,
                      RpcChannel::Done& done) {
  if (LaneLoop::AreParents()) return false;
  LaneHeader header;
  header.kind = LaneKind::kCall;
  if (options.deadline) {
    header.timeout_us = std::max<int64_t>(
        1, std::chrono::duration_cast<std::chrono::microseconds>(
               *options.deadline - RealClock().Now())
               .count());
  }
  absl::Status cancelled;
  {
    // Held until all is done: as soon as the call can end, the cancellation may
    // go.
    MutexLock lock(mu_);
    if (over_ || calls_.size() + cancelled_.size() >= most_calls_) return false;
    header.call = next_++;
    Cancellation* const cancellation = options.cancellation;
    Cancellation::Token token = Cancellation::kNone;
    if (cancellation != nullptr) {
      token = cancellation->Register(
          [weak = weak_from_this(), id = header.call, cancellation] {
            if (auto self = std::static_pointer_cast<LaneClient>(weak.lock())) {
              self->Cancel(id, cancellation->status());
            }
          });
      if (token == Cancellation::kNone) cancelled = cancellation->status();
    }
    if (cancelled.ok()) {
      OpenCall& call = calls_[header.call];
      call.done = std::move(done);
      call.landing = options.landing;
      call.deadline = options.deadline;
      if (call.deadline) deadlines_.insert({*call.deadline, header.call});
      call.cancellation = cancellation;
      call.token = token;
      call.counts = &OutgoingCalls().Of(path);
      call.counts->calls.fetch_add(1, std::memory_order_relaxed);
      call.counts->request_bytes.fetch_add(
          static_cast<int64_t>(request.Length()), std::memory_order_relaxed);
      Enqueue(header, path, Slices(request));
    }
  }
  if (!cancelled.ok()) {
    // NOLINTNEXTLINE(bugprone-use-after-move): it was kept if not cancelled.
    done(std::move(cancelled), {});
    return true;
  }
  Flush();
  if (options.deadline) CheckDeadlinesAt(*options.deadline);
  return true;
}

LaneClient::OpenCall LaneClient::Remove(uint64_t id) {
  const auto it = calls_.find(id);
  OpenCall call = std::move(it->second);
  calls_.erase(it);
  if (call.deadline) deadlines_.erase({*call.deadline, id});
  return call;
}

void LaneClient::CheckDeadlinesAt(SteadyTime time) {
  {
    MutexLock lock(mu_);
    if (!timers_.empty() && *timers_.begin() <= time) return;
    timers_.insert(time);
  }
  CallLater(time - RealClock().Now(), [weak = weak_from_this(), time] {
    if (auto self = std::static_pointer_cast<LaneClient>(weak.lock())) {
      self->CheckDeadlines(time);
    }
  });
}

void LaneClient::CheckDeadlines(SteadyTime timer) {
  std::vector<uint64_t> due;
  {
    const SteadyTime now = RealClock().Now();
    MutexLock lock(mu_);
    timers_.erase(timer);
    for (const auto& [time, id] : deadlines_) {
      if (time > now) break;
      due.push_back(id);
    }
  }
  for (const uint64_t id : due) {
    Cancel(id, DeadlineExceeded("Deadline Exceeded"));
  }
  std::optional<SteadyTime> next;
  {
    MutexLock lock(mu_);
    if (!deadlines_.empty()) next = deadlines_.begin()->first;
  }
  if (next) CheckDeadlinesAt(*next);
}

void LaneClient::Cancel(uint64_t id, const absl::Status& why) {
  OpenCall call;
  {
    MutexLock lock(mu_);
    const auto it = calls_.find(id);
    if (it == calls_.end()) return;
    if (it->second.lands) {
      it->second.cancelled = why;
      if (it->second.deadline) deadlines_.erase({*it->second.deadline, id});
      return;
    }
    call = Remove(id);
    cancelled_.insert(id);
    LaneHeader header;
    header.kind = LaneKind::kCancel;
    header.call = id;
    Enqueue(header);
  }
  Flush();
  Deliver(std::move(call), why, {});
}

void LaneClient::Deliver(OpenCall call, absl::Status status,
                         const grpc::ByteBuffer& payload) {
  if (call.token != Cancellation::kNone) {
    call.cancellation->Deregister(call.token);
  }
  call.done(std::move(status), payload);
  HangUpIfUnused();
}

void LaneClient::Release() {
  {
    MutexLock lock(mu_);
    over_ = true;
  }
  HangUpIfUnused();
}

void LaneClient::HangUpIfUnused() {
  {
    MutexLock lock(mu_);
    if (!over_ || !calls_.empty() || loans_ > 0) return;
  }
  HangUp();
}

struct LaneClient::Loan {
  std::weak_ptr<LaneConnection> lane;
  std::shared_ptr<const MappedArena> arena;
  uint64_t number;
};

absl::StatusOr<grpc::Slice> LaneClient::LentTail(const LaneHeader& header) {
  const char* const bytes =
      arena_ == nullptr ? nullptr : arena_->Find(header.at, header.tail);
  if (bytes == nullptr) {
    return Unavailable("The lane broke: ", header.tail,
                       " bytes were lent that cannot be mapped");
  }
  {
    MutexLock lock(mu_);
    ++loans_;
  }
  return grpc::Slice(
      const_cast<char*>(bytes), header.tail,
      [](void* lent) {
        const std::unique_ptr<Loan> loan(static_cast<Loan*>(lent));
        if (auto lane =
                std::static_pointer_cast<LaneClient>(loan->lane.lock())) {
          lane->Return(loan->number);
        }
      },
      new Loan{weak_from_this(), arena_, header.lent});
}

void LaneClient::Return(uint64_t loan) {
  LaneHeader header;
  header.kind = LaneKind::kReturn;
  header.call = loan;
  Enqueue(header);
  Flush();
  {
    MutexLock lock(mu_);
    --loans_;
  }
  HangUpIfUnused();
}

void* LaneClient::Place(const LaneHeader& header, const grpc::Slice& lead) {
  if (lead.size() > kMostLandingLead) return nullptr;
  Landing* landing = nullptr;
  {
    MutexLock lock(mu_);
    const auto it = calls_.find(header.call);
    if (it == calls_.end() || it->second.landing == nullptr) return nullptr;
    landing = it->second.landing;
    it->second.lands = true;  // From now on the call stays.
  }
  return landing->Place(View(lead), header.tail);
}

absl::Status LaneClient::OnMessage(LaneMessage message) {
  const LaneHeader& header = message.header;
  if (header.kind == LaneKind::kHello) {
    if (const int fd = TakeDescriptor(); fd >= 0) {
      arena_ = std::make_shared<MappedArena>(fd);
      if (arena_->Find(0, 1) != nullptr) {
        LaneHeader borrows;
        borrows.kind = LaneKind::kBorrows;
        Enqueue(borrows);
        Flush();
      }
    }
    {
      MutexLock lock(mu_);
      most_calls_ = header.call;
    }
    std::exchange(ready_, nullptr)(self());
    return absl::OkStatus();
  }
  if (header.kind != LaneKind::kAnswer) {
    return Unavailable("The lane broke: the server sent a message of kind ",
                       static_cast<uint32_t>(header.kind));
  }
  grpc::Slice lent;
  if (header.lent != 0) {
    SLUICE_ASSIGN_OR_RETURN(lent, LentTail(header));
  }
  OpenCall call;
  {
    MutexLock lock(mu_);
    if (cancelled_.erase(header.call) > 0 || !calls_.contains(header.call)) {
      return absl::OkStatus();
    }
    call = Remove(header.call);
  }
  last_answer_.store(CoarseNow(), std::memory_order_relaxed);
  call.counts->response_bytes.fetch_add(
      static_cast<int64_t>(header.lead + header.tail),
      std::memory_order_relaxed);
  absl::Status status = call.cancelled;
  if (status.ok() && header.code != 0) {
    status = MarkAnswered(
        absl::Status(static_cast<absl::StatusCode>(header.code), message.text));
  }
  const bool borrowed = lent.size() > 0 && call.landing != nullptr &&
                        message.lead.size() <= kMostLandingLead &&
                        call.landing->Borrow(View(message.lead), lent);
  if (lent.size() > 0 && !borrowed) {
    message.tail = std::move(lent);
  }
  lent = grpc::Slice();
  Deliver(std::move(call), std::move(status), message.Payload());
  return absl::OkStatus();
}

void LaneClient::OnClosed(const absl::Status& why) {
  absl::flat_hash_map<uint64_t, OpenCall> calls;
  {
    MutexLock lock(mu_);
    over_ = true;
    calls.swap(calls_);
    deadlines_.clear();
  }
  arena_ = nullptr;  // Only what is lent keeps it now.
  if (auto ready = std::exchange(ready_, nullptr)) ready(why);
  for (auto& [id, call] : calls) {
    const absl::Status status = call.cancelled.ok() ? why : call.cancelled;
    Deliver(std::move(call), status, {});
  }
}

bool LaneClient::Waits() const {
  MutexLock lock(mu_);
  return !calls_.empty();
}

std::chrono::milliseconds LaneClient::hello_patience() const {
  return std::chrono::seconds(5);
}

}  // namespace sluice
