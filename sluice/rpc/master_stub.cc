#include "sluice/rpc/master_stub.h"

#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/kernel/step.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/client_call.h"
#include "sluice/rpc/lane_channel.h"

namespace sluice {
namespace {

constexpr char kPrefix[] = "grpc://";
constexpr auto kFirstLine = std::chrono::seconds(3);
constexpr auto kNextLine = std::chrono::seconds(10);
constexpr auto kPollPeriod = std::chrono::milliseconds(100);
constexpr auto kAskPause = std::chrono::milliseconds(200);
// A connection that breaks again and again will break once more.
constexpr int kMostBroken = 10;

class GrpcMasterStub : public MasterStub {
 public:
  explicit GrpcMasterStub(std::shared_ptr<RpcChannel> channel)
      : channel_(std::move(channel)) {}

  absl::Status Call(const char* method,
                    const google::protobuf::MessageLite& request,
                    google::protobuf::MessageLite* response,
                    const Options& options) override {
    const auto begin = std::chrono::steady_clock::now();
    auto next_line = begin + kFirstLine;
    SLUICE_ASSIGN_OR_RETURN(const grpc::ByteBuffer bytes,
                            ToByteBuffer(request));
    std::string why = "no answer";
    std::optional<SteadyTime> deadline;
    if (options.timeout_ms > 0) {
      deadline = begin + std::chrono::milliseconds(options.timeout_ms);
    }
    auto alone_since = begin;  // Without a connection.
    int broken = 0;            // Connections that broke under the call.
    while (true) {
      grpc::ByteBuffer answer;
      absl::Status status = CallOnce(method, bytes, deadline, options, &answer);
      if (status.ok()) {
        if (FromByteBuffer(&answer, response)) return status;
        return Internal("The answer of ", channel_->address(),
                        " could not be read");
      }
      if (options.cancellation != nullptr &&
          options.cancellation->cancelled()) {
        return options.cancellation->status();
      }
      const auto now = std::chrono::steady_clock::now();
      if (absl::IsUnavailable(status)) {
        why = WhyUnreachable(channel_->address(), status);
      }
      if (deadline && now >= *deadline) {
        return DeadlineExceeded("The master at ", channel_->address(),
                                " did not answer in time: ", why);
      }
      if (!absl::IsUnavailable(status)) return status;
      bool again = options.repeatable && broken < kMostBroken;
      if (NeverConnected(status)) {
        // A master that died under the call took the session along.
        again = (broken == 0 || !Refused(status)) &&
                now - alone_since < std::chrono::milliseconds(options.wait_ms);
      } else if (again) {
        ++broken;
        alone_since = now;
      }
      if (!again) {
        return Unavailable("The master at ", channel_->address(),
                           " is not reachable: ", why);
      }
      if (now >= next_line) {
        SLUICE_LOG(INFO) << "Waiting for the master at " << channel_->address()
                         << ": " << why;
        next_line = now + kNextLine;
      }
      Pause(options);
    }
  }

  std::unique_ptr<Lease> Hold(const std::string& session_handle) override {
    return std::make_unique<Lease>(channel_, session_handle);
  }

 private:
  // Unlike one that was under way, such a call had no effect.
  static bool NeverConnected(const absl::Status& status) {
    const std::string text(status.message());
    return absl::IsUnavailable(status) &&
           (text.find("failed to connect") != std::string::npos ||
            text.find("DNS resolution failed") != std::string::npos);
  }

  static bool Refused(const absl::Status& status) {
    return ToStd(status.message()).find("Connection refused") !=
           std::string_view::npos;
  }

  absl::Status CallOnce(const char* method, const grpc::ByteBuffer& request,
                        std::optional<SteadyTime> deadline,
                        const Options& options, grpc::ByteBuffer* answer) {
    Notification finished;
    absl::Status result;
    RpcChannel::Options call;
    call.deadline = deadline;
    call.cancellation = options.cancellation;
    channel_->Call(method, request, call,
                   [&](absl::Status status, grpc::ByteBuffer response) {
                     result = std::move(status);
                     answer->Swap(&response);
                     finished.Notify();
                   });
    while (!finished.WaitFor(kPollPeriod)) CheckInterrupted(options);
    return result;
  }

  static void CheckInterrupted(const Options& options) {
    if (options.interrupted != nullptr && !options.cancellation->cancelled() &&
        (*options.interrupted)()) {
      options.cancellation->Cancel(Cancelled("Interrupted"));
    }
  }

  // Sleeps, unless cancelled.
  static void Pause(const Options& options) {
    CheckInterrupted(options);
    Cancellation* const cancellation = options.cancellation;
    Notification woken;
    const auto token = cancellation == nullptr
                           ? Cancellation::kNone
                           : cancellation->Register([&] { woken.Notify(); });
    woken.WaitFor(kAskPause);
    if (token != Cancellation::kNone) cancellation->DeregisterAndWait(token);
  }

  const std::shared_ptr<RpcChannel> channel_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MasterStub>> MasterStub::Create(
    const std::string& target, TlsIdentityPtr tls) {
  if (!target.starts_with(kPrefix)) {
    return InvalidArgument("A target is grpc://host:port, not '", target, "'");
  }
  SLUICE_ASSIGN_OR_RETURN(
      std::shared_ptr<RpcChannel> channel,
      CreateLaneChannel(target.substr(sizeof(kPrefix) - 1), std::move(tls)));
  return std::make_unique<GrpcMasterStub>(std::move(channel));
}

}  // namespace sluice
