// MasterStub: a client's calls to a master in another process.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/kernel/cancellation.h"
#include "sluice/rpc/lease.h"
#include "sluice/rpc/tls.h"

namespace google::protobuf {
class MessageLite;
}  // namespace google::protobuf

namespace sluice {

// Thread-safe. Calls block; `cancellation` (may be null) and `interrupted` end
// them.
class MasterStub {
 public:
  // "grpc://host:port". `tls` may be null: plain text.
  static absl::StatusOr<std::unique_ptr<MasterStub>> Create(
      const std::string& target, TlsIdentityPtr tls = nullptr);
  virtual ~MasterStub() = default;

  struct Options {
    int64_t timeout_ms = 0;  // 0: none.
    Cancellation* cancellation = nullptr;
    // Asked now and then while the call blocks; true cancels it. May be null.
    const std::function<bool()>* interrupted = nullptr;
    // Go on trying while nobody answers at the address, with a line in the log
    // that says so, until this much time has passed without any change.
    int64_t wait_ms = 0;
    // The master knows the request again, so it may be sent once more when the
    // connection breaks before the answer.
    bool repeatable = false;
  };
  // `method` is one of sluice::paths.
  virtual absl::Status Call(const char* method,
                            const google::protobuf::MessageLite& request,
                            google::protobuf::MessageLite* response,
                            const Options& options) = 0;
  // Closes a session. A master that was silent when this process did so last is
  // not waited for until it has answered something: DEADLINE_EXCEEDED.
  virtual absl::Status Close(const std::string& session_handle,
                             const Options& options) = 0;
  // Makes a call of which nobody wants to know how it went. Does not block.
  virtual void Send(const char* method,
                    const google::protobuf::MessageLite& request) = 0;
  // Keeps a session open there while this process lives.
  virtual std::unique_ptr<Lease> Hold(const std::string& session_handle) = 0;
};

}  // namespace sluice
