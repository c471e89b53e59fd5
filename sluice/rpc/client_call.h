// Calls to another task: one unary method by its path, answered by callback on
// one of our polling threads. Private to rpc/ and session/.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/clock.h"
#include "sluice/kernel/cancellation.h"
#include "sluice/rpc/call_counters.h"
#include "sluice/rpc/tls.h"

namespace sluice {

// Where the end of a large answer is put while it arrives, if the way it comes
// allows that. Then the answer's bytes end where it begins.
class Landing {
 public:
  virtual ~Landing() = default;
  // Memory for the last `size` bytes; `lead` are those before. nullptr: there
  // is none, all bytes are to be handed over. Called at most once; the memory
  // must be there until the call is done.
  virtual void* Place(std::string_view lead, size_t size) = 0;
  // The last bytes stand in memory that the sender only lends: `tail`, until it
  // is dropped. False: they are to be handed over with the others. Called
  // instead of Place.
  virtual bool Borrow(std::string_view, const grpc::Slice&) { return false; }
};

// Our clients take headers of this size, and say so in each request by a header
// of this name: the text of an error travels in one.
inline constexpr int kMetadataBytes = 64 << 10;
inline constexpr char kLongErrors[] = "sluice-long-errors";
// The header of an answer of ours that is UNAVAILABLE. It tells of somebody
// else: who sent it was there.
inline constexpr char kAnswered[] = "sluice-answered";

// A connection to one address, made at first use. Reconnects by itself.
// Thread-safe.
class RpcChannel {
 public:
  // "host:port"; an error if it is not one.
  static absl::StatusOr<std::shared_ptr<RpcChannel>> Create(
      const std::string& address);
  // The same under TLS, unless `tls` is null.
  static absl::StatusOr<std::shared_ptr<RpcChannel>> CreateWithTls(
      const std::string& address, TlsIdentityPtr tls);
  virtual ~RpcChannel() = default;
  virtual const std::string& address() const = 0;
  // What a tensor should have at most to come in one answer.
  virtual size_t chunk_bytes() const;
  // Whether calls go by a lane (docs/protocol), not by gRPC.
  virtual bool has_lane() const { return false; }
  // When the server last answered a call; nothing if it never did.
  virtual std::optional<SteadyTime> last_answer() const { return {}; }

  struct Options {
    // Give up at this time.
    std::optional<SteadyTime> deadline;
    // Wait for the connection instead of failing when there is none.
    bool wait_for_ready = false;
    // Ends the call; must live until `done`. May be null.
    Cancellation* cancellation = nullptr;
    // Must live until `done`. May be null.
    Landing* landing = nullptr;
  };
  // A peer that cannot be reached is UNAVAILABLE; one that speaks TLS where
  // this side does not, the reverse, or one with a wrong certificate is
  // UNAUTHENTICATED.
  using Done = absl::AnyInvocable<void(absl::Status, grpc::ByteBuffer)>;
  // `done` is called exactly once.
  virtual void Call(const char* path, const grpc::ByteBuffer& request,
                    const Options& options, Done done) = 0;
  void Call(const char* path, const google::protobuf::MessageLite& request,
            const Options& options, Done done);
};

// The calls this process has started.
CallCounters& OutgoingCalls();
// Their number.
int64_t RpcsStarted();

// Whether a call came to its task, though it ended with UNAVAILABLE.
bool WasAnswered(const absl::Status& status);
absl::Status MarkAnswered(absl::Status status);
// Without the mark.
absl::Status AsGiven(absl::Status status);

// In words a user can act on: why a call to `address` failed.
std::string WhyUnreachable(const std::string& address,
                           const absl::Status& status);

}  // namespace sluice
