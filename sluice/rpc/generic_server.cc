#include "sluice/rpc/generic_server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/resource_quota.h>

#include <shared_mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/client_call.h"
#include "sluice/rpc/event.h"
#include "sluice/rpc/lane_server.h"
#include "sluice/rpc/prepare_grpc.h"
#include "sluice/rpc/send_buffer.h"

namespace sluice {
namespace {

// Open calls waiting to be accepted per thread; more only smooths bursts.
constexpr int kAccepting = 16;

// Closed before the completion queues are: whoever answers a call later must
// not touch them any more. Shared by the server and its calls, which hold it
// together: gRPC writes megabytes while they do.
struct Gate {
  std::shared_mutex mu;
  bool closed = false;  // Guarded by mu.
};

class Call : public ServerCall, public std::enable_shared_from_this<Call> {
 public:
  Call(grpc::AsyncGenericService* service, grpc::ServerCompletionQueue* queue,
       const GenericServer::Options* options, std::shared_ptr<Gate> gate)
      : service_(service),
        queue_(queue),
        options_(options),
        gate_(std::move(gate)),
        stream_(&context_) {}

  // Asks for the next call; it keeps itself alive until it is over.
  static void Accept(grpc::AsyncGenericService* service,
                     grpc::ServerCompletionQueue* queue,
                     const GenericServer::Options* options,
                     const std::shared_ptr<Gate>& gate) {
    const std::shared_lock lock(gate->mu);
    if (gate->closed) return;
    auto call = std::make_shared<Call>(service, queue, options, gate);
    call->self_ = call;
    call->context_.AsyncNotifyWhenDone(HandOver(&call->done_));
    service->RequestCall(&call->context_, &call->stream_, queue, queue,
                         HandOver(&call->accepted_));
  }

  const std::string& path() const override { return context_.method(); }
  std::string peer() const override { return context_.peer(); }
  grpc::ByteBuffer& request() override { return request_; }

  std::chrono::system_clock::time_point deadline() const override {
    return context_.deadline();
  }

  void Reply(grpc::ByteBuffer response) override {
    response_.Swap(&response);
    if (response_.Length() >= kLargeMessage) KeepSendsInCache(peer());
    if (counts_ != nullptr) {
      counts_->response_bytes.fetch_add(
          static_cast<int64_t>(response_.Length()), std::memory_order_relaxed);
    }
    Post([this] {
      stream_.WriteAndFinish(response_, grpc::WriteOptions(), grpc::Status::OK,
                             HandOver(&answered_));
    });
  }
  void Fail(const absl::Status& status) override {
    const bool ours = context_.client_metadata().count(kLongErrors) > 0;
    if (ours && absl::IsUnavailable(status)) {
      context_.AddTrailingMetadata(kAnswered, "1");
    }
    Post([&] { stream_.Finish(ToGrpc(status, ours), HandOver(&answered_)); });
  }

  void OnCancel(absl::AnyInvocable<void()> callback) override {
    {
      MutexLock lock(mu_);
      if (!cancelled_) {
        on_cancel_ = std::move(callback);
        return;
      }
    }
    callback();
  }

 private:
  template <void (Call::*Step)(bool)>
  struct StepEvent : Event {
    explicit StepEvent(Call* c) : call(c) {}
    void Proceed(bool ok) override { (call->*Step)(ok); }
    Call* call;
  };

  // Starts the call's last operation; nobody listens once the gate is closed.
  void Post(absl::FunctionRef<void()> start) {
    {
      const std::shared_lock lock(gate_->mu);
      if (!gate_->closed) {
        start();
        return;
      }
    }
    Release();
  }

  void Accepted(bool ok) {
    if (!ok) {  // The server shuts down; no done event follows.
      self_ = nullptr;
      return;
    }
    Accept(service_, queue_, options_, gate_);
    open_.store(2);  // The answer and the done event.
    Post([this] { stream_.Read(&request_, HandOver(&read_)); });
  }
  void Read(bool ok) {
    if (!ok) {
      Fail(Cancelled("The request did not arrive"));
      return;
    }
    Count();
    options_->handler(shared_from_this());
  }
  void Count() {
    if (options_->counters == nullptr) return;
    counts_ = &options_->counters->Of(path());
    counts_->calls.fetch_add(1, std::memory_order_relaxed);
    counts_->request_bytes.fetch_add(static_cast<int64_t>(request_.Length()),
                                     std::memory_order_relaxed);
  }
  void Answered(bool) { Release(); }
  void Done(bool) {
    absl::AnyInvocable<void()> callback;
    {
      MutexLock lock(mu_);
      cancelled_ = context_.IsCancelled();
      if (cancelled_) callback = std::move(on_cancel_);
      on_cancel_ = nullptr;
    }
    if (callback) callback();
    Release();
  }
  void Release() {
    if (open_.fetch_sub(1) == 1) self_ = nullptr;
  }

  grpc::AsyncGenericService* const service_;
  grpc::ServerCompletionQueue* const queue_;
  const GenericServer::Options* const options_;
  const std::shared_ptr<Gate> gate_;
  CallCounters::Counts* counts_ = nullptr;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_;
  grpc::ByteBuffer request_, response_;
  StepEvent<&Call::Accepted> accepted_{this};
  StepEvent<&Call::Read> read_{this};
  StepEvent<&Call::Answered> answered_{this};
  StepEvent<&Call::Done> done_{this};
  std::atomic<int> open_{0};
  std::shared_ptr<Call> self_;
  Mutex mu_;
  bool cancelled_ SLUICE_GUARDED_BY(mu_) = false;
  absl::AnyInvocable<void()> on_cancel_ SLUICE_GUARDED_BY(mu_);
};

std::shared_ptr<grpc::ServerCredentials> Credentials(
    const TlsIdentityPtr& tls) {
  if (tls == nullptr) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = tls->ca;
  options.pem_key_cert_pairs.push_back({tls->key, tls->certificate});
  return grpc::SslServerCredentials(options);
}

}  // namespace

struct GenericServer::State {
  Options options;
  grpc::AsyncGenericService service;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<LaneServer> lane;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues;
  std::vector<std::thread> threads;
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  int port = 0;
  std::once_flag shut_down;
};

GenericServer::GenericServer(std::unique_ptr<State> state)
    : state_(std::move(state)) {}
GenericServer::~GenericServer() { Shutdown(); }
int GenericServer::port() const { return state_->port; }

absl::StatusOr<std::unique_ptr<GenericServer>> GenericServer::Start(
    Options options) {
  PrepareGrpc();
  auto state = std::make_unique<State>();
  state->options = std::move(options);
  const Limits& limits = state->options.limits;
  state->options.handler =
      [handler = std::move(state->options.handler),
       most = limits.message_bytes](std::shared_ptr<ServerCall> call) {
        const auto size = static_cast<int64_t>(call->request().Length());
        if (size <= most) {
          handler(std::move(call));
        } else {
          call->Fail(OverLimit(StrCat("A request of ", size, " bytes"),
                               "message_bytes", most));
        }
      };
  grpc::ServerBuilder builder;
  builder.AddListeningPort(state->options.address,
                           Credentials(state->options.tls), &state->port);
  builder.SetMaxReceiveMessageSize(INT_MAX);
  builder.SetMaxSendMessageSize(INT_MAX);
  // 2 MB may unfold to 2 GB, and none of our limits is asked before.
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  // gRPC takes a request as a whole before anyone sees how long it is.
  if (limits.arriving_bytes < INT_MAX) {
    grpc::ResourceQuota quota;
    quota.Resize(static_cast<size_t>(limits.arriving_bytes));
    builder.SetResourceQuota(quota);
  }
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE,
                             static_cast<int>(limits.metadata_bytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             static_cast<int>(limits.streams));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(limits.handshake_ms));
  // A second server on the same port must fail, not share it.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Peers ping to notice a silent death; do not take that for abuse.
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // And so does the server, as clients do (client_call.cc): the steps of a host
  // that lost its power would wait for ever and take what is for others.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 15000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Calls may wait long to be accepted under load.
  builder.AddChannelArgument("grpc.server_max_unrequested_time_in_server",
                             3600);
  builder.RegisterAsyncGenericService(&state->service);
  for (int i = 0; i < PollingThreads(); ++i) {
    state->queues.push_back(builder.AddCompletionQueue());
  }
  state->server = builder.BuildAndStart();
  if (state->server == nullptr || state->port == 0) {
    if (state->server != nullptr) state->server->Shutdown();
    for (auto& queue : state->queues) {
      queue->Shutdown();
      void* tag;
      bool ok;
      while (queue->Next(&tag, &ok)) {
      }
    }
    return Unknown("Could not start gRPC server");
  }
  for (auto& queue : state->queues) {
    for (int i = 0; i < kAccepting; ++i) {
      Call::Accept(&state->service, queue.get(), &state->options, state->gate);
    }
    state->threads.emplace_back(
        [q = queue.get()] { PollEvents(q, "sluice-serve"); });
  }
  if (!state->options.lane.empty()) {
    if (auto lane = LaneServer::Start(state->options); lane.ok()) {
      state->lane = *std::move(lane);
    } else {
      // Peers that try it go on by gRPC.
      SLUICE_LOG(WARNING) << "Peers on this machine have to come by gRPC: "
                          << lane.status().message();
    }
  }
  return std::unique_ptr<GenericServer>(new GenericServer(std::move(state)));
}

void GenericServer::Shutdown() {
  std::call_once(state_->shut_down, [this] {
    if (state_->lane != nullptr) state_->lane->Shutdown();
    // A deadline in the past cancels what is still open.
    state_->server->Shutdown(std::chrono::system_clock::now());
    {
      const std::unique_lock lock(state_->gate->mu);
      state_->gate->closed = true;
    }
    for (auto& queue : state_->queues) queue->Shutdown();
    for (std::thread& thread : state_->threads) thread.join();
  });
}

}  // namespace sluice
