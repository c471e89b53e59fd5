// LaneConnection: one end of a lane, a connection between two processes of
// Sluice on one machine, by which calls travel that would go by gRPC otherwise
// (docs/protocol has the messages). What both ends have in common.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "sluice/base/mutex.h"
#include "sluice/rpc/lane_loop.h"

namespace sluice {

enum class LaneKind : uint32_t {
  kHello = 1,  // Each end's first; the server's brings its arena,
  kBorrows,    // which the client has mapped.
  kCall,
  kAnswer,
  kCancel,  // The caller does not want the answer any more.
  kReturn,  // The tail that was lent is not read any more.
  kPing,
  kPong,
};

// How a message starts; behind it come `text`, `lead` and, unless it is lent,
// `tail` bytes. Both ends are on one machine, so it is what a compiler makes of
// it.
struct LaneHeader {
  LaneKind kind = LaneKind::kHello;
  uint32_t code = 0;       // Of an answer: the status; of a hello: the version.
  uint64_t call = 0;       // Which; of a server's hello: how many may be open.
  int64_t timeout_us = 0;  // Of a call: how long the caller waits; 0: for ever.
  uint32_t text = 0;       // Bytes of a call's path, or of an error's words.
  uint32_t lent = 0;       // Not 0: the tail stands in the sender's arena,
  uint64_t at = 0;         // here, until this number is returned.
  uint64_t lead = 0;       // Bytes of the message, without its tail.
  uint64_t tail = 0;       // Bytes at its end that may be put in place.
};
static_assert(sizeof(LaneHeader) == 56);

inline constexpr uint32_t kLaneVersion = 1;

struct LaneMessage {
  LaneHeader header;
  std::string text;
  grpc::Slice lead;
  grpc::Slice tail;        // Empty if it was placed or lent.
  bool placed = false;     // The tail was put where Place said.
  bool too_large = false;  // It was thrown away.

  grpc::ByteBuffer Payload() const;
};

// Thread-safe. Made as a shared pointer, kept by its loop until it is closed.
class LaneConnection : public LaneLoop::Watcher,
                       public std::enable_shared_from_this<LaneConnection> {
 public:
  // Which end it is. Only a client is sent a descriptor, with the hello. Only a
  // server stops reading while much is to be sent: if both did, each could wait
  // for the other.
  enum class End { kClient, kServer };
  // `fd` is connected and does not block; larger messages than `most_bytes`
  // are thrown away.
  LaneConnection(int fd, End end, size_t most_bytes);
  ~LaneConnection() override;
  LaneConnection(const LaneConnection&) = delete;
  LaneConnection& operator=(const LaneConnection&) = delete;

  // Begins to listen; is closed at once if that cannot be.
  void Start();
  // Ends it; OnClosed has returned then, unless called on the loop's thread.
  void Close(const absl::Status& why);
  // Lets it end soon.
  void HangUp();
  bool closed() const { return closed_.load(std::memory_order_acquire); }

 protected:
  // Puts a message at the end of what is to be sent, which Flush then does as
  // far as it can; the loop does the rest. Enqueue calls nobody, so it may be
  // called under a lock. The last part of `body` may be put in place by the
  // peer. A descriptor is sent along if it is not negative.
  void Enqueue(LaneHeader header, std::string_view text = {},
               std::vector<grpc::Slice> body = {}, int fd = -1);
  void Flush();
  static std::vector<grpc::Slice> Slices(const grpc::ByteBuffer& payload);

  // A descriptor that came, which is the caller's then; -1 if none did.
  int TakeDescriptor();

  // All of these are called on the loop's thread.
  // Where to put a tail; nullptr: it becomes part of the message. The memory
  // must be there until OnMessage or OnClosed.
  virtual void* Place(const LaneHeader& header, const grpc::Slice& lead) = 0;
  // An error closes the connection.
  virtual absl::Status OnMessage(LaneMessage message) = 0;
  // Once. Nothing is sent or received any more.
  virtual void OnClosed(const absl::Status& why) = 0;
  // Whether the peer must show that it lives.
  virtual bool Waits() const = 0;
  // Whether the peer's process has ended. Its socket may be open all the same:
  // children that it forked have it too.
  virtual bool PeerIsGone() const { return false; }
  // How long the peer may take for its hello.
  virtual std::chrono::milliseconds hello_patience() const = 0;

 private:
  struct Outgoing {
    std::string prefix;  // Header and text.
    std::vector<grpc::Slice> body;
    size_t sent = 0;
    int fd = -1;  // To be sent along.
    size_t memory = 0;
  };

  void Ready(uint32_t events) override;
  void Tick(SteadyTime now) override;
  // What the peer owes for too long; nullptr: nothing.
  const char* WhyGiveUp(SteadyTime now) const;
  // Calls OnClosed, the first time.
  void Finish(const absl::Status& why);

  // One more message; false: nothing more can be done now.
  bool SendNext();
  // False: the socket is full or broken.
  bool SendRest(Outgoing& out);

  // Whether the peer is to take answers before it is heard.
  bool IsStuffed();
  // `over`: the peer takes nothing more, and its end is to be read.
  void Receive(bool over);
  absl::Status Parse();
  absl::Status BeginMessage(const LaneHeader& header, std::string_view text);
  // Makes room for the bytes that come next: a part of the message.
  absl::Status Expect(size_t size, grpc::Slice* part);
  absl::Status PartArrived();

  const int fd_;
  const End end_;
  const size_t most_bytes_;
  LaneLoop& loop_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> finished_{false};
  std::atomic<int> send_error_{0};  // Because of which it was hung up.

  // Of the loop's thread.
  std::vector<char> input_;
  size_t begin_ = 0, filled_ = 0;  // Of what has arrived in `input_`.
  enum class Part { kHeader, kLead, kTail } part_ = Part::kHeader;
  LaneMessage incoming_;  // Whose header is there.
  char* to_ = nullptr;    // Where its next byte goes; null: nowhere.
  size_t left_ = 0;       // Bytes of the part that are still to come.
  int received_fd_ = -1;
  bool greeted_ = false;
  SteadyTime last_heard_;
  bool pinged_ = false;  // At pinged_at_, and nothing came since.
  SteadyTime pinged_at_;

  Mutex mu_;
  bool flushing_ SLUICE_GUARDED_BY(mu_) = false;
  // Only who flushes takes messages away.
  std::deque<Outgoing> outgoing_ SLUICE_GUARDED_BY(mu_);
  size_t queued_ SLUICE_GUARDED_BY(mu_) = 0;  // Bytes of memory that hold them.
};

}  // namespace sluice
