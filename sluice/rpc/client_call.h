// Calls to another task: one unary method by its path, answered by callback on
// one of our polling threads. Private to rpc/ and session/.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/clock.h"
#include "sluice/kernel/cancellation.h"

namespace sluice {

// A connection to one address, made at first use. Reconnects by itself.
// Thread-safe.
class RpcChannel {
 public:
  // "host:port"; an error if it is not one.
  static absl::StatusOr<std::shared_ptr<RpcChannel>> Create(
      const std::string& address);
  virtual ~RpcChannel() = default;
  virtual const std::string& address() const = 0;

  struct Options {
    // Give up at this time.
    std::optional<SteadyTime> deadline;
    // Wait for the connection instead of failing when there is none.
    bool wait_for_ready = false;
    // Ends the call; must live until `done`. May be null.
    Cancellation* cancellation = nullptr;
  };
  using Done = absl::AnyInvocable<void(absl::Status, grpc::ByteBuffer)>;
  // `done` is called exactly once.
  virtual void Call(const char* path, const grpc::ByteBuffer& request,
                    const Options& options, Done done) = 0;
};

// Calls `callback` on a polling thread after `delay`.
void CallLater(std::chrono::milliseconds delay,
               absl::AnyInvocable<void()> callback);

// RPCs this process has started, for benchmarks and `sluice status`.
int64_t RpcsStarted();

// In words a user can act on: why a call to `address` failed.
std::string WhyUnreachable(const std::string& address,
                           const absl::Status& status);

}  // namespace sluice
