#include "sluice/rpc/client_call.h"

#include <grpcpp/generic/generic_stub.h>

#include <charconv>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "sluice/base/blocking_pool.h"
#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/event.h"
#include "sluice/rpc/prepare_grpc.h"
#include "sluice/rpc/recv_chunks.h"
#include "sluice/rpc/send_buffer.h"
#include "sluice/rpc/tls_probe.h"

namespace sluice {
namespace {

// A queue that calls of this process complete on, polled by a thread of its
// own; channels take turns. Made at the first call, so that programs may fork
// before; never ended.
grpc::CompletionQueue& NextClientQueue() {
  static const std::vector<grpc::CompletionQueue*>* queues = [] {
    PrepareGrpc();
    auto* made = new std::vector<grpc::CompletionQueue*>;
    for (int i = 0; i < PollingThreads(); ++i) {
      made->push_back(new grpc::CompletionQueue);
      std::thread([q = made->back()] {
        PollEvents(q, "sluice-call");
      }).detach();
    }
    return made;
  }();
  static std::atomic<unsigned> next{0};
  return *(
      *queues)[next.fetch_add(1, std::memory_order_relaxed) % queues->size()];
}

// How long a call waits for a new attempt to connect when the last one failed.
constexpr auto kReconnectPatience = std::chrono::milliseconds(200);

// When a server last answered; before the first time, the clock's beginning.
using LastAnswer = std::atomic<SteadyTime>;

struct OpenCall : Event, std::enable_shared_from_this<OpenCall> {
  // The connection has changed its state, or patience is over.
  struct Reconnected : Event {
    explicit Reconnected(OpenCall* c) : call(c) {}
    void Proceed(bool) override { call->Start(); }
    OpenCall* call;
  } reconnected{this};

  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer response;
  grpc::Status status;
  RpcChannel::Done done;
  Cancellation* cancellation = nullptr;
  Cancellation::Token token = Cancellation::kNone;
  std::string address;
  TlsIdentityPtr tls;
  std::shared_ptr<OpenCall> self;
  CallCounters::Counts* counts = nullptr;
  bool large = false;
  std::shared_ptr<LastAnswer> last_answer;

  void Start() {
    reader->StartCall();
    reader->Finish(&response, &status, HandOver(this));
  }

  void Proceed(bool) override {
    const std::shared_ptr<OpenCall> keep = std::move(self);
    if (token != Cancellation::kNone) cancellation->Deregister(token);
    absl::Status result = FromGrpc(status);
    if (context.GetServerTrailingMetadata().count(kAnswered) > 0) {
      result = MarkAnswered(std::move(result));
    }
    counts->response_bytes.fetch_add(static_cast<int64_t>(response.Length()),
                                     std::memory_order_relaxed);
    if (result.ok()) {
      last_answer->store(CoarseNow(), std::memory_order_relaxed);
      // The next one will gain: before, nobody knows the connection.
      if (large) KeepSendsInCache(context.peer());
    }
    // Who cancelled knows better why than the transport.
    if (absl::IsCancelled(result) && cancellation != nullptr &&
        cancellation->cancelled()) {
      result = cancellation->status();
    }
    if (MayBeTls(result)) {
      RunBlocking([keep, result] {
        const std::string problem = TlsProblem(keep->address, keep->tls);
        keep->done(
            problem.empty() ? result : absl::UnauthenticatedError(problem), {});
      });
      return;
    }
    done(std::move(result), response);
  }

  // gRPC does not say more when one end speaks TLS and the other does not, or
  // does not like a certificate.
  static bool MayBeTls(const absl::Status& status) {
    const absl::string_view text = status.message();
    return absl::IsUnavailable(status) && !WasAnswered(status) &&
           absl::StrContains(text, "failed to connect") &&
           (absl::StrContains(text, "Socket closed") ||
            absl::StrContains(text, "Connection reset") ||
            absl::StrContains(text, "handshake failed") ||
            absl::StrContains(text, "not in peer certificate"));
  }
};

class GrpcChannel : public RpcChannel {
 public:
  GrpcChannel(const std::string& address, TlsIdentityPtr tls)
      : address_(address), tls_(std::move(tls)) {}
  const std::string& address() const override { return address_; }
  std::optional<SteadyTime> last_answer() const override {
    const SteadyTime time = last_answer_->load(std::memory_order_relaxed);
    if (time == SteadyTime()) return std::nullopt;
    return time;
  }

  using RpcChannel::Call;
  void Call(const char* path, const grpc::ByteBuffer& request,
            const Options& options, Done done) override {
    auto call = std::make_shared<OpenCall>();
    call->counts = &OutgoingCalls().Of(path);
    call->counts->calls.fetch_add(1, std::memory_order_relaxed);
    call->counts->request_bytes.fetch_add(
        static_cast<int64_t>(request.Length()), std::memory_order_relaxed);
    call->large = request.Length() >= kLargeMessage;
    call->last_answer = last_answer_;
    call->done = std::move(done);
    call->context.set_wait_for_ready(options.wait_for_ready);
    call->context.AddMetadata(kLongErrors, "1");
    if (options.deadline) {
      const auto left = *options.deadline - std::chrono::steady_clock::now();
      call->context.set_deadline(
          std::chrono::system_clock::now() +
          std::chrono::duration_cast<std::chrono::microseconds>(left));
    }
    call->address = address_;
    call->tls = tls_;
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
        Stub().PrepareUnaryCall(&call->context, path, request, queue_);
    if (options.wait_for_ready ||
        channel_->GetState(false) != GRPC_CHANNEL_TRANSIENT_FAILURE) {
      call->Start();
      return;
    }
    // An attempt failed some time ago, perhaps before the server was there; a
    // call must not fail for that, so it makes another one.
    grpc::experimental::ChannelResetConnectionBackoff(channel_.get());
    channel_->NotifyOnStateChange(
        GRPC_CHANNEL_TRANSIENT_FAILURE,
        std::chrono::system_clock::now() + kReconnectPatience, queue_,
        HandOver(&call->reconnected));
  }

 private:
  grpc::GenericStub& Stub() {
    std::call_once(connected_, [this] {
      grpc::ChannelArguments args;
      args.SetMaxReceiveMessageSize(INT_MAX);
      args.SetMaxSendMessageSize(INT_MAX);
      args.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytes);
      args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
      args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
      // How long an attempt may take; a busy server answers late.
      args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
      // A peer that says nothing is noticed within 30 s (DESIGN D7).
      args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
      args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 15000);
      args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
      // A session is held by its connection, however little it is used.
      args.SetInt(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, INT_MAX);
      // No configured web proxy stands between the tasks of a cluster.
      args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
      queue_ = &NextClientQueue();
      channel_ =
          grpc::CreateCustomChannel("dns:///" + address_, Credentials(), args);
      stub_ = std::make_unique<grpc::GenericStub>(channel_);
    });
    return *stub_;
  }

  std::shared_ptr<grpc::ChannelCredentials> Credentials() const {
    if (tls_ == nullptr) return grpc::InsecureChannelCredentials();
    return grpc::SslCredentials({tls_->ca, tls_->key, tls_->certificate});
  }

  const std::string address_;
  // Shared with open calls, which may outlive the channel.
  const std::shared_ptr<LastAnswer> last_answer_ =
      std::make_shared<LastAnswer>();
  const TlsIdentityPtr tls_;
  std::once_flag connected_;
  grpc::CompletionQueue* queue_ = nullptr;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

}  // namespace

CallCounters& OutgoingCalls() {
  static CallCounters* calls = new CallCounters;
  return *calls;
}

int64_t RpcsStarted() {
  int64_t calls = 0;
  for (const CallCounters::Method& method : OutgoingCalls().List()) {
    calls += method.calls;
  }
  return calls;
}

absl::StatusOr<std::shared_ptr<RpcChannel>> RpcChannel::Create(
    const std::string& address) {
  return CreateWithTls(address, nullptr);
}

absl::StatusOr<std::shared_ptr<RpcChannel>> RpcChannel::CreateWithTls(
    const std::string& address, TlsIdentityPtr tls) {
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
  return std::make_shared<GrpcChannel>(address, std::move(tls));
}

size_t RpcChannel::chunk_bytes() const { return ChunkBytes(); }

void RpcChannel::Call(const char* path,
                      const google::protobuf::MessageLite& request,
                      const Options& options, Done done) {
  absl::StatusOr<grpc::ByteBuffer> bytes = ToByteBuffer(request);
  if (bytes.ok()) {
    Call(path, *bytes, options, std::move(done));
  } else {
    done(bytes.status(), {});
  }
}

bool WasAnswered(const absl::Status& status) {
  return status.GetPayload(kAnswered).has_value();
}

absl::Status MarkAnswered(absl::Status status) {
  if (absl::IsUnavailable(status)) status.SetPayload(kAnswered, absl::Cord());
  return status;
}

absl::Status AsGiven(absl::Status status) {
  status.ErasePayload(kAnswered);
  return status;
}

std::string WhyUnreachable(const std::string& address,
                           const absl::Status& status) {
  std::string text(status.message());
  if (absl::IsUnauthenticated(status)) return text;
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
  if (has("timed out") || has("watchdog timeout") || has("no answer from") ||
      absl::IsDeadlineExceeded(status)) {
    return StrCat("no answer from ", address);
  }
  if (has("http1") || has("HTTP/") || has("RST_STREAM") || has("SETTINGS") ||
      absl::IsUnimplemented(status) || absl::IsInternal(status)) {
    return StrCat("something else listens at ", address);
  }
  return StrCat(address, ": ", text);
}

}  // namespace sluice
