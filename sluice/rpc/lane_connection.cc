#include "sluice/rpc/lane_connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sluice/base/status.h"
#include "sluice/rpc/lane_channel.h"
#include "sluice/rpc/utf8.h"
#include "sluice/tensor/buffer.h"

namespace sluice {
namespace {

using std::chrono::seconds;

// From here on the last part of a message is put in place.
constexpr size_t kTailBytes = 16 << 10;
constexpr size_t kInputBytes = 64 << 10;
// As of an error that comes by gRPC (byte_buffer.cc).
constexpr size_t kMostText = 48 << 10;
static_assert(kMostText + sizeof(LaneHeader) < kInputBytes);
// No message is that large.
constexpr uint64_t kImpossible = uint64_t{1} << 46;
// So that one peer does not keep the others waiting.
constexpr int kReadsAtOnce = 16;
// A client that takes no answers is not heard while this much waits for it.
constexpr size_t kMostQueued = 64 << 20;
// A peer that says nothing is noticed within 30 s (DESIGN D7).
constexpr auto kQuiet = seconds(8);
constexpr auto kPongPatience = seconds(12);

template <typename... Args>
absl::Status Garbled(const Args&... args) {
  return Unavailable("The lane broke: ", args...);
}

// Memory that stays warm. Empty, if there is none.
grpc::Slice WarmSlice(size_t size) {
  if (size <= 1024) return grpc::Slice(size);
  Buffer* const buffer = Buffer::Allocate(size);
  if (buffer == nullptr) return grpc::Slice();
  return grpc::Slice(
      buffer->data(), size, [](void* b) { static_cast<Buffer*>(b)->Unref(); },
      buffer);
}

// Of all lanes of the process.
std::atomic<int64_t> bytes_queued{0};

}  // namespace

grpc::ByteBuffer LaneMessage::Payload() const {
  const grpc::Slice parts[] = {lead, tail};
  return grpc::ByteBuffer(parts, tail.size() > 0 ? 2 : 1);
}

LaneConnection::LaneConnection(int fd, End end, size_t most_bytes)
    : fd_(fd),
      end_(end),
      most_bytes_(most_bytes),
      loop_(LaneLoop::Next()),
      input_(kInputBytes),
      last_heard_(RealClock().Now()) {}

LaneConnection::~LaneConnection() {
  if (received_fd_ >= 0) close(received_fd_);
  close(fd_);
  bytes_queued.fetch_sub(static_cast<int64_t>(queued_),
                         std::memory_order_relaxed);
}

int64_t LaneBytesQueued() {
  return bytes_queued.load(std::memory_order_relaxed);
}

void LaneConnection::Start() {
  const absl::Status watched = loop_.Add(fd_, shared_from_this());
  if (!watched.ok()) Finish(watched);
}

void LaneConnection::HangUp() {
  if (!LaneLoop::AreParents()) shutdown(fd_, SHUT_RDWR);
}

void LaneConnection::Close(const absl::Status& why) {
  loop_.Remove(loop_id(), fd_);
  Finish(why);
}

void LaneConnection::Finish(const absl::Status& why) {
  if (finished_.exchange(true)) return;
  closed_.store(true, std::memory_order_release);
  loop_.Remove(loop_id(), fd_);
  HangUp();
  OnClosed(why);
}

// Sending.

std::vector<grpc::Slice> LaneConnection::Slices(
    const grpc::ByteBuffer& payload) {
  std::vector<grpc::Slice> slices;
  if (payload.Valid() && !payload.Dump(&slices).ok()) slices.clear();
  return slices;
}

void LaneConnection::Enqueue(LaneHeader header, std::string_view text,
                             std::vector<grpc::Slice> body, int fd) {
  if (closed() || LaneLoop::AreParents()) return;
  if (text.size() > kMostText) {
    text = text.substr(0, WholeCharacters(text, kMostText));
  }
  header.text = static_cast<uint32_t>(text.size());
  for (const grpc::Slice& slice : body) header.lead += slice.size();
  if (header.lent == 0 && !body.empty() && body.back().size() >= kTailBytes) {
    header.tail = body.back().size();
    header.lead -= header.tail;
  }
  Outgoing out;
  out.prefix.reserve(sizeof(header) + text.size());
  out.prefix.append(reinterpret_cast<const char*>(&header), sizeof(header));
  out.prefix.append(text);
  out.memory = sizeof(out) + out.prefix.size();
  for (const grpc::Slice& slice : body) out.memory += slice.size();
  out.body = std::move(body);
  out.fd = fd;
  MutexLock lock(mu_);
  queued_ += out.memory;
  bytes_queued.fetch_add(static_cast<int64_t>(out.memory),
                         std::memory_order_relaxed);
  outgoing_.push_back(std::move(out));
}

void LaneConnection::Flush() {
  if (LaneLoop::AreParents()) return;
  {
    MutexLock lock(mu_);
    if (flushing_) return;  // Who does will see what is new.
    flushing_ = true;
  }
  while (SendNext()) {
  }
}

bool LaneConnection::SendNext() {
  Outgoing* next;
  {
    MutexLock lock(mu_);
    if (closed() || outgoing_.empty()) {
      flushing_ = false;
      return false;
    }
    next = &outgoing_.front();
  }
  const bool sent = SendRest(*next);
  Outgoing gone;
  {
    MutexLock lock(mu_);
    if (sent) {
      gone = std::move(outgoing_.front());
      outgoing_.pop_front();
      queued_ -= gone.memory;
      bytes_queued.fetch_sub(static_cast<int64_t>(gone.memory),
                             std::memory_order_relaxed);
      return true;
    }
    flushing_ = false;
  }
  loop_.Watch(loop_id(), fd_, /*input=*/!IsStuffed(), /*output=*/true);
  return false;
}

bool LaneConnection::SendRest(Outgoing& out) {
  constexpr size_t kMostParts = 16;
  while (true) {
    iovec parts[kMostParts];
    size_t count = 0;
    size_t skip = out.sent;
    const auto add = [&](const void* bytes, size_t size) {
      const size_t skipped = std::min(skip, size);
      skip -= skipped;
      if (skipped == size || count == kMostParts) return;
      parts[count++] = {
          const_cast<char*>(static_cast<const char*>(bytes)) + skipped,
          size - skipped};
    };
    add(out.prefix.data(), out.prefix.size());
    for (const grpc::Slice& slice : out.body) add(slice.begin(), slice.size());
    if (count == 0) return true;
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    if (out.fd >= 0 && out.sent == 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof(control);
      cmsghdr* const part = CMSG_FIRSTHDR(&message);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(part), &out.fd, sizeof(int));
    }
    const ssize_t sent = sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
      // Trying on would help nobody. The loop hears of the end.
      if (errno != EPIPE) send_error_.store(errno, std::memory_order_relaxed);
      HangUp();
    }
    if (sent < 0) return false;
    out.sent += static_cast<size_t>(sent);
  }
}

// Receiving.

void LaneConnection::Ready(uint32_t events) {
  if ((events & EPOLLOUT) != 0) {
    loop_.Watch(loop_id(), fd_, /*input=*/true, /*output=*/false);
    Flush();
  }
  if ((events & ~uint32_t{EPOLLOUT}) != 0) {
    Receive(/*over=*/(events & (EPOLLHUP | EPOLLERR)) != 0);
  }
}

bool LaneConnection::IsStuffed() {
  MutexLock lock(mu_);
  return end_ == End::kServer && queued_ > kMostQueued;
}

void LaneConnection::Receive(bool over) {
  for (int i = 0; i < kReadsAtOnce && !closed(); ++i) {
    if (!over && IsStuffed()) {
      loop_.Watch(loop_id(), fd_, /*input=*/false, /*output=*/true);
      return;
    }
    const bool direct = part_ != Part::kHeader && to_ != nullptr;
    iovec part = direct
                     ? iovec{to_, left_}
                     : iovec{input_.data() + filled_, input_.size() - filled_};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    const bool takes_descriptor = end_ == End::kClient && !greeted_;
    if (takes_descriptor) {
      message.msg_control = control;
      // Not all of it: what pads the one would hold a second.
      message.msg_controllen = CMSG_LEN(sizeof(int));
    }
    const ssize_t received =
        recvmsg(fd_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (received <= 0) {
      const int error = received < 0 ? errno : send_error_.load();
      Finish(Unavailable(error == 0 ? "Socket closed" : strerror(error)));
      return;
    }
    last_heard_ = CoarseNow();
    pinged_ = false;
    // The system has closed what there was no room for.
    if (!takes_descriptor && (message.msg_flags & MSG_CTRUNC) != 0) {
      Finish(Garbled("a descriptor out of place"));
      return;
    }
    cmsghdr* const extra = CMSG_FIRSTHDR(&message);
    if (extra != nullptr && extra->cmsg_level == SOL_SOCKET &&
        extra->cmsg_type == SCM_RIGHTS) {
      if (received_fd_ >= 0) close(received_fd_);
      std::memcpy(&received_fd_, CMSG_DATA(extra), sizeof(int));
    }
    absl::Status status;
    if (direct) {
      to_ += received;
      left_ -= static_cast<size_t>(received);
      if (left_ == 0) status = PartArrived();
    } else {
      filled_ += static_cast<size_t>(received);
      status = Parse();
    }
    if (!status.ok()) {
      Finish(status);
      return;
    }
    if (static_cast<size_t>(received) < part.iov_len) return;
  }
}

absl::Status LaneConnection::Parse() {
  while (begin_ < filled_ && !closed()) {
    const size_t there = filled_ - begin_;
    if (part_ != Part::kHeader) {
      const size_t size = std::min(left_, there);
      if (to_ != nullptr) {
        std::memcpy(to_, input_.data() + begin_, size);
        to_ += size;
      }
      left_ -= size;
      begin_ += size;
      if (left_ == 0) SLUICE_RETURN_IF_ERROR(PartArrived());
      continue;
    }
    LaneHeader header;
    if (there < sizeof(header)) break;
    std::memcpy(&header, input_.data() + begin_, sizeof(header));
    if (header.text > kMostText) return Garbled(header.text, " bytes of text");
    if (there < sizeof(header) + header.text) break;
    const std::string_view text(input_.data() + begin_ + sizeof(header),
                                header.text);
    begin_ += sizeof(header) + header.text;
    SLUICE_RETURN_IF_ERROR(BeginMessage(header, text));
  }
  std::memmove(input_.data(), input_.data() + begin_, filled_ - begin_);
  filled_ -= begin_;
  begin_ = 0;
  return absl::OkStatus();
}

absl::Status LaneConnection::BeginMessage(const LaneHeader& header,
                                          std::string_view text) {
  const bool hello = header.kind == LaneKind::kHello;
  if (hello == greeted_) return Garbled("a hello out of place");
  if (hello && header.code != kLaneVersion) {
    return Garbled("the peer speaks version ", header.code);
  }
  greeted_ = true;
  if (header.lead > kImpossible || header.tail > kImpossible) {
    return Garbled("a message of ", header.lead, " + ", header.tail, " bytes");
  }
  incoming_ = LaneMessage();
  incoming_.header = header;
  incoming_.text = text;
  incoming_.too_large = header.lead + header.tail > most_bytes_;
  part_ = Part::kLead;
  return Expect(header.lead, &incoming_.lead);
}

absl::Status LaneConnection::Expect(size_t size, grpc::Slice* part) {
  left_ = size;
  to_ = nullptr;
  if (size == 0) return PartArrived();
  if (incoming_.too_large) return absl::OkStatus();
  *part = WarmSlice(size);
  if (part->size() < size) return Garbled("no memory for ", size, " bytes");
  to_ = reinterpret_cast<char*>(const_cast<uint8_t*>(part->begin()));
  return absl::OkStatus();
}

absl::Status LaneConnection::PartArrived() {
  const LaneHeader& header = incoming_.header;
  if (part_ == Part::kLead && header.tail > 0 && header.lent == 0) {
    part_ = Part::kTail;
    if (!incoming_.too_large) {
      if (void* const place = Place(header, incoming_.lead)) {
        incoming_.placed = true;
        left_ = header.tail;
        to_ = static_cast<char*>(place);
        return absl::OkStatus();
      }
    }
    return Expect(header.tail, &incoming_.tail);
  }
  part_ = Part::kHeader;
  if (header.kind == LaneKind::kPong) return absl::OkStatus();
  if (header.kind == LaneKind::kPing) {
    LaneHeader pong;
    pong.kind = LaneKind::kPong;
    Enqueue(pong);
    Flush();
    return absl::OkStatus();
  }
  return OnMessage(std::exchange(incoming_, LaneMessage()));
}

int LaneConnection::TakeDescriptor() { return std::exchange(received_fd_, -1); }

void LaneConnection::Tick(SteadyTime now) {
  if (PeerIsGone()) {
    Finish(Unavailable("The peer's process is gone"));
    return;
  }
  if (WhyGiveUp(now) != nullptr) {
    // This process may have been too busy to read what came in time.
    Receive(/*over=*/false);
    if (const char* why = WhyGiveUp(now)) Finish(Unavailable(why));
    return;
  }
  if (!greeted_ || !Waits() || pinged_ || now - last_heard_ < kQuiet) return;
  pinged_ = true;
  pinged_at_ = now;
  LaneHeader ping;
  ping.kind = LaneKind::kPing;
  Enqueue(ping);
  Flush();
}

const char* LaneConnection::WhyGiveUp(SteadyTime now) const {
  if (!greeted_) {
    return now - last_heard_ > hello_patience() ? "The peer did not say hello"
                                                : nullptr;
  }
  return pinged_ && now - pinged_at_ >= kPongPatience && Waits()
             ? "keepalive watchdog timeout"
             : nullptr;
}

}  // namespace sluice
