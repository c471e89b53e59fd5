#include "sluice/rpc/lease.h"

#include "sluice/base/status.h"
#include "sluice/base/timer.h"
#include "sluice/proto/task_status.pb.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/client_call.h"
#include "sluice/rpc/paths.h"

namespace sluice {
namespace {

// How soon a lease that broke is renewed; the server waits much longer. Not
// often: after an attempt in vain, gRPC fails other calls without trying for up
// to a second, also when the server is back.
constexpr auto kRenewPause = std::chrono::seconds(20);

// Whether the server has answered: closed, unknown, no leases, not for us.
// Anything else tells of the way there, or of what it lacks at the moment: gRPC
// resets calls when it is short of memory, proxies when they like, and
// certificates are renewed.
bool EndsLease(const absl::Status& status) {
  return status.ok() || absl::IsAborted(status) || absl::IsNotFound(status) ||
         absl::IsUnimplemented(status) || absl::IsInvalidArgument(status) ||
         absl::IsPermissionDenied(status);
}

}  // namespace

struct Lease::State : std::enable_shared_from_this<State> {
  std::shared_ptr<RpcChannel> channel;
  std::string handle;
  Cancellation ended;

  void Take() {
    if (ended.cancelled()) return;
    pb::HoldRequest request;
    request.set_session_handle(handle);
    RpcChannel::Options options;
    options.cancellation = &ended;
    channel->Call(paths::kHold, request, options,
                  [self = shared_from_this()](const absl::Status& status,
                                              const grpc::ByteBuffer&) {
                    if (self->ended.cancelled() || EndsLease(status)) return;
                    CallLater(kRenewPause, [self] { self->Take(); });
                  });
  }
};

Lease::Lease(std::shared_ptr<RpcChannel> channel, std::string session_handle)
    : state_(std::make_shared<State>()) {
  state_->channel = std::move(channel);
  state_->handle = std::move(session_handle);
  state_->Take();
}

Lease::~Lease() { state_->ended.Cancel(Cancelled("The lease is over")); }

}  // namespace sluice
