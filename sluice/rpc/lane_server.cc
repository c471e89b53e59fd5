#include "sluice/rpc/lane_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/base/timer.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/lane_connection.h"
#include "sluice/rpc/lane_socket.h"
#include "sluice/tensor/buffer.h"
#include "sluice/tensor/shared_arena.h"

namespace sluice {

using std::chrono::system_clock;

namespace {

// Anybody on the machine can connect; those who have lanes already come first.
constexpr int kConnectionsAtOnce = 16;
constexpr auto kBetweenRefusals = std::chrono::minutes(1);  // In the log.

system_clock::time_point DeadlineIn(int64_t timeout_us) {
  // Who would wait for longer has none. The sum must not overflow.
  constexpr std::chrono::microseconds kLongest = std::chrono::years(10);
  const std::chrono::microseconds timeout(timeout_us);
  if (timeout_us <= 0 || timeout > kLongest) {
    return system_clock::time_point::max();
  }
  return system_clock::now() + timeout;
}

// `process` is a pidfd, or -1, which never ends.
bool HasEnded(int process) {
  pollfd end = {process, POLLIN, 0};
  return poll(&end, 1, 0) > 0;
}

// What a process may still read when its lane has broken.
struct LentTensors {
  absl::flat_hash_map<uint64_t, grpc::Slice> slices;
  int reader = -1;   // By which its end is seen.
  bool own = false;  // It is this process, which does not end before.
  ~LentTensors() {
    if (reader >= 0) close(reader);
  }
};

void KeepWhileReaderLives(std::unique_ptr<LentTensors> lent) {
  if (lent->own ? !MappedArena::ReadsOwn() : HasEnded(lent->reader)) return;
  CallLater(std::chrono::seconds(2), [lent = std::move(lent)]() mutable {
    KeepWhileReaderLives(std::move(lent));
  });
}

}  // namespace

// A call that came by a lane.
class LaneServer::Call : public ServerCall {
 public:
  Call(std::shared_ptr<Served> lane, LaneMessage message,
       CallCounters::Counts* counts);
  ~Call() override;

  const std::string& path() const override { return path_; }
  std::string peer() const override;
  grpc::ByteBuffer& request() override { return request_; }
  void Reply(grpc::ByteBuffer response) override;
  void Fail(const absl::Status& status) override;
  void OnCancel(absl::AnyInvocable<void()> callback) override;
  system_clock::time_point deadline() const override { return deadline_; }

  void Cancel();

 private:
  void Answer(LaneHeader header, std::string_view text,
              const grpc::ByteBuffer& response);

  const std::shared_ptr<Served> lane_;
  const uint64_t id_;
  const std::string path_;
  const system_clock::time_point deadline_;
  CallCounters::Counts* const counts_;
  grpc::ByteBuffer request_;
  Mutex mu_;
  bool answered_ SLUICE_GUARDED_BY(mu_) = false;
  bool cancelled_ SLUICE_GUARDED_BY(mu_) = false;
  absl::AnyInvocable<void()> on_cancel_ SLUICE_GUARDED_BY(mu_);
};

// The serving end of one lane.
class LaneServer::Served : public LaneConnection {
 public:
  Served(int fd, pid_t peer, std::shared_ptr<Listener> listener);
  ~Served() override;

  std::string peer() const { return StrCat("process:", peer_); }
  // Large parts of the answer are lent where that is possible.
  void Send(LaneHeader header, std::string_view text,
            const grpc::ByteBuffer& response);
  void Forget(uint64_t id) {
    MutexLock lock(mu_);
    calls_.erase(id);
  }

 private:
  void* Place(const LaneHeader&, const grpc::Slice&) override {
    return nullptr;
  }
  absl::Status OnMessage(LaneMessage message) override;
  void OnClosed(const absl::Status& why) override;
  bool Waits() const override { return false; }
  bool PeerIsGone() const override { return HasEnded(peer_fd_); }
  std::chrono::milliseconds hello_patience() const override;

  std::shared_ptr<Served> self() {
    return std::static_pointer_cast<Served>(shared_from_this());
  }
  void Greet();
  absl::Status Serve(LaneMessage message);
  void Cancel(uint64_t id);
  void TakeBack(uint64_t loan);

  const pid_t peer_;
  int peer_fd_;  // By which its end is seen; -1 if the system cannot.
  const std::shared_ptr<Listener> listener_;
  std::atomic<bool> lends_{false};  // Whether large tensors may be lent.
  Mutex mu_;
  // Unanswered; whoever answers holds the call.
  absl::flat_hash_map<uint64_t, std::weak_ptr<Call>> calls_
      SLUICE_GUARDED_BY(mu_);
  uint32_t loans_ SLUICE_GUARDED_BY(mu_) = 0;
  absl::flat_hash_map<uint64_t, grpc::Slice> lent_ SLUICE_GUARDED_BY(mu_);
};

class LaneServer::Listener : public LaneLoop::Watcher,
                             public std::enable_shared_from_this<Listener> {
 public:
  Listener(int fd, const GenericServer::Options& o)
      : options(o), fd_(fd), loop_(LaneLoop::Next()) {}
  ~Listener() override { close(fd_); }

  absl::Status Start() { return loop_.Add(fd_, shared_from_this()); }
  void Shutdown() {
    loop_.Remove(loop_id(), fd_);
    absl::flat_hash_set<std::shared_ptr<Served>> lanes;
    {
      MutexLock lock(mu_);
      lanes.swap(lanes_);
    }
    for (const auto& lane : lanes) {
      lane->Close(Unavailable("The server was stopped"));
    }
  }
  void Forget(const std::shared_ptr<Served>& lane) {
    MutexLock lock(mu_);
    lanes_.erase(lane);
  }

  const GenericServer::Options options;

 private:
  void Ready(uint32_t) override {
    // The loop calls again if there are more.
    for (int i = 0; i < kConnectionsAtOnce; ++i) {
      const int fd =
          accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd >= 0) {
        Take(fd);
      } else if (errno == EAGAIN) {
        return;
      } else if (errno != EINTR && errno != ECONNABORTED) {
        // Out of descriptors, perhaps not for long.
        loop_.Watch(loop_id(), fd_, /*input=*/false, /*output=*/false);
        CallLater(std::chrono::seconds(1), [weak = weak_from_this()] {
          if (auto self = weak.lock()) {
            self->loop_.Watch(self->loop_id(), self->fd_, /*input=*/true,
                              /*output=*/false);
          }
        });
        return;
      }
    }
  }
  void Tick(SteadyTime now) override { TellOfRefusals(now); }

  void Take(int fd) {
    const absl::StatusOr<pid_t> peer = PeerOfLane(fd);
    if (!peer.ok()) {
      close(fd);
      ++refused_;
      refusal_ = peer.status();
      TellOfRefusals(CoarseNow());
      return;
    }
    auto lane = std::make_shared<Served>(fd, *peer, shared_from_this());
    {
      MutexLock lock(mu_);
      lanes_.insert(lane);
    }
    lane->Start();
  }

  void TellOfRefusals(SteadyTime now) {
    if (refused_ == 0 || now < next_line_) return;
    next_line_ = now + kBetweenRefusals;
    SLUICE_LOG(WARNING) << refusal_.message()
                        << "; refused since the last such line: " << refused_;
    refused_ = 0;
  }

  const int fd_;
  LaneLoop& loop_;

  // Of the loop's thread.
  int64_t refused_ = 0;  // That the log does not tell of yet.
  absl::Status refusal_;
  SteadyTime next_line_;

  Mutex mu_;
  absl::flat_hash_set<std::shared_ptr<Served>> lanes_ SLUICE_GUARDED_BY(mu_);
};

LaneServer::Call::Call(std::shared_ptr<Served> lane, LaneMessage message,
                       CallCounters::Counts* counts)
    : lane_(std::move(lane)),
      id_(message.header.call),
      path_(std::move(message.text)),
      deadline_(DeadlineIn(message.header.timeout_us)),
      counts_(counts),
      request_(message.Payload()) {}

LaneServer::Call::~Call() { lane_->Forget(id_); }

std::string LaneServer::Call::peer() const { return lane_->peer(); }

void LaneServer::Call::Reply(grpc::ByteBuffer response) {
  if (counts_ != nullptr) {
    counts_->response_bytes.fetch_add(static_cast<int64_t>(response.Length()),
                                      std::memory_order_relaxed);
  }
  Answer({}, {}, response);
}

void LaneServer::Call::Fail(const absl::Status& status) {
  LaneHeader header;
  header.code = static_cast<uint32_t>(status.code());
  Answer(header, ToStd(status.message()), {});
}

void LaneServer::Call::Answer(LaneHeader header, std::string_view text,
                              const grpc::ByteBuffer& response) {
  absl::AnyInvocable<void()> unused;  // May hold the call.
  {
    MutexLock lock(mu_);
    if (std::exchange(answered_, true)) return;
    unused = std::exchange(on_cancel_, nullptr);
  }
  lane_->Forget(id_);
  header.kind = LaneKind::kAnswer;
  header.call = id_;
  lane_->Send(header, text, response);
}

void LaneServer::Call::OnCancel(absl::AnyInvocable<void()> callback) {
  {
    MutexLock lock(mu_);
    if (answered_) return;
    if (!cancelled_) {
      on_cancel_ = std::move(callback);
      return;
    }
  }
  callback();
}

void LaneServer::Call::Cancel() {
  absl::AnyInvocable<void()> callback;
  {
    MutexLock lock(mu_);
    if (answered_) return;
    cancelled_ = true;
    callback = std::exchange(on_cancel_, nullptr);
  }
  if (callback) callback();
}

LaneServer::Served::Served(int fd, pid_t peer,
                           std::shared_ptr<Listener> listener)
    : LaneConnection(
          fd, End::kServer,
          static_cast<size_t>(listener->options.limits.message_bytes)),
      peer_(peer),
      peer_fd_(static_cast<int>(syscall(SYS_pidfd_open, peer, 0))),
      listener_(std::move(listener)) {}

LaneServer::Served::~Served() {
  if (peer_fd_ >= 0) close(peer_fd_);
}

std::chrono::milliseconds LaneServer::Served::hello_patience() const {
  return std::chrono::milliseconds(listener_->options.limits.handshake_ms);
}

absl::Status LaneServer::Served::OnMessage(LaneMessage message) {
  switch (message.header.kind) {
    case LaneKind::kHello:
      Greet();
      return absl::OkStatus();
    case LaneKind::kBorrows:
      // A peer whose end nobody can see might read on after it.
      lends_.store(peer_fd_ >= 0, std::memory_order_relaxed);
      return absl::OkStatus();
    case LaneKind::kCall:
      if (message.header.lent != 0) break;
      return Serve(std::move(message));
    case LaneKind::kCancel:
      Cancel(message.header.call);
      return absl::OkStatus();
    case LaneKind::kReturn:
      TakeBack(message.header.call);
      return absl::OkStatus();
    default:
      break;
  }
  return Unavailable("The lane broke: a client sent a message of kind ",
                     static_cast<uint32_t>(message.header.kind));
}

void LaneServer::Served::Cancel(uint64_t id) {
  std::shared_ptr<Call> call;
  {
    MutexLock lock(mu_);
    const auto it = calls_.find(id);
    if (it != calls_.end()) call = it->second.lock();
  }
  if (call != nullptr) call->Cancel();
}

void LaneServer::Served::Send(LaneHeader header, std::string_view text,
                              const grpc::ByteBuffer& response) {
  std::vector<grpc::Slice> body = Slices(response);
  if (lends_.load(std::memory_order_relaxed) && body.size() > 1) {
    const grpc::Slice& tail = body.back();
    if (const auto at = ShareMemory(tail.begin(), tail.size())) {
      header.at = *at;
      header.tail = tail.size();
      MutexLock lock(mu_);
      // 0 means that nothing is lent.
      do ++loans_;
      while (loans_ == 0 || lent_.contains(loans_));
      header.lent = loans_;
      lent_[header.lent] = tail;
      body.pop_back();
    }
  }
  Enqueue(header, text, std::move(body));
  Flush();
}

void LaneServer::Served::TakeBack(uint64_t loan) {
  grpc::Slice returned;
  MutexLock lock(mu_);
  if (const auto it = lent_.find(loan); it != lent_.end()) {
    returned = std::move(it->second);
    lent_.erase(it);
  }
}

void LaneServer::Served::Greet() {
  LaneHeader hello;
  hello.code = kLaneVersion;
  hello.call = static_cast<uint64_t>(listener_->options.limits.streams);
  SharedArena* const arena = SharedArena::Get();
  Enqueue(hello, {}, {}, arena == nullptr ? -1 : arena->reader_fd());
  Flush();
}

absl::Status LaneServer::Served::Serve(LaneMessage message) {
  const GenericServer::Options& options = listener_->options;
  const LaneHeader header = message.header;
  CallCounters::Counts* counts = nullptr;
  if (options.counters != nullptr) {
    counts = &options.counters->Of(message.text);
    counts->calls.fetch_add(1, std::memory_order_relaxed);
    counts->request_bytes.fetch_add(
        static_cast<int64_t>(header.lead + header.tail),
        std::memory_order_relaxed);
  }
  {
    MutexLock lock(mu_);
    if (calls_.contains(header.call)) {
      return Unavailable("The lane broke: call ", header.call, " is open");
    }
  }
  const bool too_large = message.too_large;
  auto call = std::make_shared<Call>(self(), std::move(message), counts);
  bool too_many;
  {
    MutexLock lock(mu_);
    too_many = calls_.size() >= static_cast<size_t>(options.limits.streams);
    if (!too_many) calls_[header.call] = call;
  }
  if (too_large) {
    call->Fail(
        OverLimit(StrCat("A request of ", header.lead + header.tail, " bytes"),
                  "message_bytes", options.limits.message_bytes));
  } else if (too_many) {
    call->Fail(
        OverLimit("One more open call", "streams", options.limits.streams));
  } else {
    options.handler(std::move(call));
  }
  return absl::OkStatus();
}

void LaneServer::Served::OnClosed(const absl::Status&) {
  std::vector<std::shared_ptr<Call>> calls;
  auto lent = std::make_unique<LentTensors>();
  {
    MutexLock lock(mu_);
    for (const auto& [id, weak] : calls_) {
      if (auto call = weak.lock()) calls.push_back(std::move(call));
    }
    lent->slices.swap(lent_);
  }
  for (const auto& call : calls) call->Cancel();
  listener_->Forget(self());
  if (lent->slices.empty()) return;
  lent->reader = std::exchange(peer_fd_, -1);
  lent->own = peer_ == getpid();
  KeepWhileReaderLives(std::move(lent));
}

LaneServer::LaneServer(std::shared_ptr<Listener> listener)
    : listener_(std::move(listener)) {}
LaneServer::~LaneServer() { Shutdown(); }
void LaneServer::Shutdown() { listener_->Shutdown(); }

absl::StatusOr<std::unique_ptr<LaneServer>> LaneServer::Start(
    const GenericServer::Options& options) {
  SLUICE_ASSIGN_OR_RETURN(const int fd, ListenForLanes(options.lane));
  auto listener = std::make_shared<Listener>(fd, options);
  SLUICE_RETURN_IF_ERROR(listener->Start());
  return std::unique_ptr<LaneServer>(new LaneServer(std::move(listener)));
}

}  // namespace sluice
