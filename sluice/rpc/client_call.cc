#include "sluice/rpc/client_call.h"

#include <grpcpp/alarm.h>
#include <grpcpp/generic/generic_stub.h>
#include <pthread.h>

#include <charconv>
#include <thread>

#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/worker/worker.h"

namespace sluice {
namespace {

std::atomic<int64_t> rpcs_started{0};

struct Event {
  virtual ~Event() = default;
  virtual void Proceed(bool ok) = 0;
};

// The queue all calls of this process complete on, and the threads that poll
// it. Made by the first call, so that programs may fork before; never ended.
grpc::CompletionQueue& ClientQueue() {
  static grpc::CompletionQueue* queue = [] {
    auto* q = new grpc::CompletionQueue;
    for (int i = 0; i < 2; ++i) {
      std::thread([q] {
        pthread_setname_np(pthread_self(), "sluice-call");
        Worker::MarkNetworkThread();
        void* tag;
        bool ok;
        while (q->Next(&tag, &ok)) static_cast<Event*>(tag)->Proceed(ok);
      }).detach();
    }
    return q;
  }();
  return *queue;
}

struct OpenCall : Event, std::enable_shared_from_this<OpenCall> {
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer response;
  grpc::Status status;
  RpcChannel::Done done;
  Cancellation* cancellation = nullptr;
  Cancellation::Token token = Cancellation::kNone;
  std::shared_ptr<OpenCall> self;

  void Proceed(bool) override {
    const std::shared_ptr<OpenCall> keep = std::move(self);
    if (token != Cancellation::kNone) cancellation->Deregister(token);
    absl::Status result = FromGrpc(status);
    // Who cancelled knows better why than the transport.
    if (absl::IsCancelled(result) && cancellation != nullptr &&
        cancellation->cancelled()) {
      result = cancellation->status();
    }
    done(std::move(result), std::move(response));
  }
};

class GrpcChannel : public RpcChannel {
 public:
  explicit GrpcChannel(const std::string& address) : address_(address) {}
  const std::string& address() const override { return address_; }

  void Call(const char* path, const grpc::ByteBuffer& request,
            const Options& options, Done done) override {
    rpcs_started.fetch_add(1, std::memory_order_relaxed);
    auto call = std::make_shared<OpenCall>();
    call->done = std::move(done);
    call->context.set_wait_for_ready(options.wait_for_ready);
    if (options.deadline) {
      const auto left = *options.deadline - std::chrono::steady_clock::now();
      call->context.set_deadline(
          std::chrono::system_clock::now() +
          std::chrono::duration_cast<std::chrono::microseconds>(left));
    }
    call->self = call;
    if (options.cancellation != nullptr) {
      call->cancellation = options.cancellation;
      // TryCancel may come before the call starts; gRPC then fails it at once.
      call->token = options.cancellation->Register(
          [weak = std::weak_ptr<OpenCall>(call)] {
            if (auto open = weak.lock()) open->context.TryCancel();
          });
      if (call->token == Cancellation::kNone) call->context.TryCancel();
    }
    call->reader =
        Stub().PrepareUnaryCall(&call->context, path, request, &ClientQueue());
    call->reader->StartCall();
    call->reader->Finish(&call->response, &call->status, call.get());
  }

 private:
  grpc::GenericStub& Stub() {
    std::call_once(connected_, [this] {
      grpc::ChannelArguments args;
      args.SetMaxReceiveMessageSize(INT_MAX);
      args.SetMaxSendMessageSize(INT_MAX);
      args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
      args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
      args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
      // A peer that says nothing is noticed within 30 s (DESIGN D7).
      args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
      args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 15000);
      args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
      // No configured web proxy stands between the tasks of a cluster.
      args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
      stub_ = std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
          "dns:///" + address_, grpc::InsecureChannelCredentials(), args));
    });
    return *stub_;
  }

  const std::string address_;
  std::once_flag connected_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

struct Timer : Event {
  grpc::Alarm alarm;
  absl::AnyInvocable<void()> callback;
  void Proceed(bool) override {
    absl::AnyInvocable<void()> run = std::move(callback);
    delete this;
    run();
  }
};

}  // namespace

int64_t RpcsStarted() { return rpcs_started.load(std::memory_order_relaxed); }

absl::StatusOr<std::shared_ptr<RpcChannel>> RpcChannel::Create(
    const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon != std::string::npos) {
    const char* end = address.data() + address.size();
    const auto [stop, error] =
        std::from_chars(address.data() + colon + 1, end, port);
    if (error != std::errc() || stop != end) port = -1;
  }
  if (port < 0 || port > 65535 || colon == 0 ||
      address.find('/') != std::string::npos) {
    return InvalidArgument("Could not interpret \"", address,
                           "\" as a host-port pair.");
  }
  return std::make_shared<GrpcChannel>(address);
}

void CallLater(std::chrono::milliseconds delay,
               absl::AnyInvocable<void()> callback) {
  auto* timer = new Timer;
  timer->callback = std::move(callback);
  timer->alarm.Set(&ClientQueue(), std::chrono::system_clock::now() + delay,
                   timer);
}

std::string WhyUnreachable(const std::string& address,
                           const absl::Status& status) {
  const std::string text(status.message());
  const auto has = [&](const char* part) {
    return text.find(part) != std::string::npos;
  };
  if (has("DNS resolution failed") || has("Domain name not found") ||
      has("Name or service not known") || has("nodename nor servname")) {
    return StrCat("the name of ", address, " does not resolve");
  }
  if (has("Connection refused")) {
    return StrCat("nothing listens at ", address, " (connection refused)");
  }
  // A process that accepts connections and says nothing, or a host that drops
  // what is sent to it.
  if (has("timed out") || absl::IsDeadlineExceeded(status)) {
    return StrCat("no answer from ", address);
  }
  if (has("http1") || has("HTTP/") || has("RST_STREAM") || has("SETTINGS") ||
      absl::IsUnimplemented(status) || absl::IsInternal(status)) {
    return StrCat("something else listens at ", address);
  }
  return StrCat(address, ": ", text);
}

}  // namespace sluice
