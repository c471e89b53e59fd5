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
                    // Anything else is an answer: closed, unknown, no leases.
                    if (!absl::IsUnavailable(status)) return;
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
