#include "sluice/rpc/master_stub.h"

#include <algorithm>

#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/base/time_limit.h"
#include "sluice/kernel/step.h"
#include "sluice/proto/task_status.pb.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/client_call.h"
#include "sluice/rpc/lane_channel.h"
#include "sluice/rpc/paths.h"

namespace sluice {
namespace {

constexpr char kPrefix[] = "grpc://";
constexpr auto kFirstLine = std::chrono::seconds(3);
constexpr auto kNextLine = std::chrono::seconds(10);
constexpr auto kPollPeriod = std::chrono::milliseconds(100);
constexpr auto kAskPause = std::chrono::milliseconds(200);
// A master that says nothing for kSilence gets a line within 5 s.
constexpr auto kPulsePause = std::chrono::seconds(2);
constexpr auto kPulseTimeout = std::chrono::seconds(10);
constexpr auto kSilence = std::chrono::seconds(4);
constexpr auto kSendTimeout = std::chrono::seconds(10);
constexpr char kNoReason[] = "no answer";
// For the answer of a master that ends a call because its time is up.
constexpr auto kAnswerGrace = std::chrono::seconds(1);
// A connection that breaks again and again will break once more.
constexpr int kMostBroken = 10;

// What the calls to a master hear of it by probes, which may outlive them.
class Pulse : public std::enable_shared_from_this<Pulse> {
 public:
  explicit Pulse(std::shared_ptr<RpcChannel> channel)
      : channel_(std::move(channel)) {}

  SteadyTime last_heard() {
    MutexLock lock(mu_);
    return last_heard_;
  }

  // Asks for a sign of life if there was none for a while, also since `begin`.
  // However many calls wait, there is one probe.
  void Probe(SteadyTime begin, SteadyTime now) {
    {
      MutexLock lock(mu_);
      if (probing_ || now < std::max(begin, last_heard_) + kPulsePause) return;
      probing_ = true;
    }
    RpcChannel::Options options;
    options.deadline = now + kPulseTimeout;
    channel_->Call(
        paths::kGetStatus, pb::GetStatusRequest(), options,
        [self = shared_from_this()](const absl::Status& status,
                                    const grpc::ByteBuffer&) {
          MutexLock lock(self->mu_);
          self->probing_ = false;
          // Any other error is an answer.
          if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
            return;
          }
          self->last_heard_ = std::chrono::steady_clock::now();
        });
  }

  // Writes down which tasks the master waits for.
  void TellMissing(int64_t waited_seconds) {
    RpcChannel::Options options;
    options.deadline = std::chrono::steady_clock::now() + kPulseTimeout;
    channel_->Call(
        paths::kStatus, pb::TaskStatusRequest(), options,
        [waited_seconds](const absl::Status& status, grpc::ByteBuffer bytes) {
          pb::TaskStatus told;
          if (!status.ok() || !FromByteBuffer(&bytes, &told)) return;
          for (const pb::TaskStatus::Wait& wait : told.waits()) {
            if (wait.step_id() != 0 || wait.owed_by().empty() ||
                wait.where() != wait.owed_by()) {
              continue;
            }
            SLUICE_LOG(INFO) << "CreateSession still waiting for response from "
                                "worker: "
                             << wait.where() << " (" << wait.what()
                             << "), after " << waited_seconds << " s";
          }
        });
  }

 private:
  const std::shared_ptr<RpcChannel> channel_;
  Mutex mu_;
  SteadyTime last_heard_ SLUICE_GUARDED_BY(mu_);
  bool probing_ SLUICE_GUARDED_BY(mu_) = false;
};

// Unlike one that was under way, such a call had no effect.
bool NeverConnected(const absl::Status& status) {
  const std::string text(status.message());
  return absl::IsUnavailable(status) &&
         (text.find("failed to connect") != std::string::npos ||
          text.find("DNS resolution failed") != std::string::npos);
}

bool Refused(const absl::Status& status) {
  return ToStd(status.message()).find("Connection refused") !=
         std::string_view::npos;
}

// A client's call, with as many attempts as it takes. Used by one thread.
class MasterCall {
 public:
  MasterCall(RpcChannel* channel, Pulse* pulse, const char* method,
             const MasterStub::Options& options)
      : channel_(channel),
        pulse_(pulse),
        method_(method),
        options_(options),
        cancellation_(options.cancellation != nullptr ? *options.cancellation
                                                      : own_cancellation_) {
    if (options.timeout_ms > 0) {
      deadline_ = begin_ + TimeLimit(options.timeout_ms);
    }
  }

  absl::Status Run(const grpc::ByteBuffer& request, grpc::ByteBuffer* answer) {
    int broken = 0;  // Connections that broke under the call.
    while (true) {
      const absl::Status status = Try(request, answer);
      if (status.ok()) return status;
      if (cancellation_.cancelled()) return cancellation_.status();
      const auto now = std::chrono::steady_clock::now();
      if (absl::IsUnavailable(status)) {
        if (!silent_) why_ = WhyUnreachable(channel_->address(), status);
        if (deadline_ && now >= *deadline_) return OutOfTime();
      } else {
        const bool own = absl::IsDeadlineExceeded(status) && deadline_ &&
                         now >= *deadline_ + kAnswerGrace;
        return own ? OutOfTime() : status;
      }
      bool again = options_.repeatable && broken < kMostBroken;
      if (NeverConnected(status)) {
        // A master that died under the call took the session along.
        again = (broken == 0 || !Refused(status)) && !GiveUp(now);
      } else if (again) {
        ++broken;
        again = !GiveUp(now);
      }
      if (!again) {
        return Unavailable("The master at ", channel_->address(),
                           " is not reachable: ", why_);
      }
      Say(now);
      Pause();
    }
  }

 private:
  absl::Status OutOfTime() const {
    return DeadlineExceeded("The master at ", channel_->address(),
                            " did not answer in time: ", why_);
  }

  SteadyTime LastHeard() const {
    return std::max(begin_, pulse_->last_heard());
  }

  // Whether nothing was heard of the master for too long.
  bool GiveUp(SteadyTime now) const {
    return now - LastHeard() >= TimeLimit(options_.wait_ms);
  }

  void Say(SteadyTime now) {
    if (now < next_line_) return;
    next_line_ = now + kNextLine;
    SLUICE_LOG(INFO) << "Waiting for the master at " << channel_->address()
                     << ": " << why_;
  }

  absl::Status Try(const grpc::ByteBuffer& request, grpc::ByteBuffer* answer) {
    Notification finished;
    absl::Status result;
    Cancellation attempt;
    RpcChannel::Options call;
    // The master ends the call itself when its time is up, and says what it
    // waited for.
    if (deadline_) call.deadline = *deadline_ + kAnswerGrace;
    call.cancellation = &attempt;
    const auto token =
        cancellation_.Register([&] { attempt.Cancel(cancellation_.status()); });
    if (token == Cancellation::kNone) attempt.Cancel(cancellation_.status());
    channel_->Call(method_, request, call,
                   [&](absl::Status status, grpc::ByteBuffer response) {
                     result = std::move(status);
                     answer->Swap(&response);
                     finished.Notify();
                   });
    while (!finished.WaitFor(kPollPeriod)) {
      CheckInterrupted();
      if (!silent_ && IsSilent()) {
        silent_ = true;
        attempt.Cancel(Unavailable(why_));
      }
    }
    if (token != Cancellation::kNone) cancellation_.DeregisterAndWait(token);
    if (silent_ && !result.ok()) return Unavailable(why_);
    return result;
  }

  // Looks after a call that is out. True: the master is gone.
  bool IsSilent() {
    const auto now = std::chrono::steady_clock::now();
    pulse_->Probe(begin_, now);
    const auto heard = LastHeard();
    if (now - heard >= kSilence) {
      // Unless an attempt that failed has a better reason.
      if (why_ == kNoReason) {
        why_ = StrCat("no answer from ", channel_->address());
      }
      Say(now);
    } else if (method_ == std::string_view(paths::kCreateSession) &&
               heard > begin_ && now >= next_line_) {
      next_line_ = now + kNextLine;
      pulse_->TellMissing(
          std::chrono::duration_cast<std::chrono::seconds>(now - begin_)
              .count());
    }
    return options_.wait_ms > 0 && GiveUp(now) && now - heard >= kPulseTimeout;
  }

  void CheckInterrupted() {
    if (options_.interrupted != nullptr && !cancellation_.cancelled() &&
        (*options_.interrupted)()) {
      cancellation_.Cancel(Cancelled("Interrupted"));
    }
  }

  // Sleeps, unless cancelled.
  void Pause() {
    CheckInterrupted();
    Notification woken;
    const auto token = cancellation_.Register([&] { woken.Notify(); });
    if (token == Cancellation::kNone) return;
    woken.WaitFor(kAskPause);
    cancellation_.DeregisterAndWait(token);
  }

  RpcChannel* const channel_;
  Pulse* const pulse_;
  const char* const method_;
  const MasterStub::Options& options_;
  Cancellation own_cancellation_;
  Cancellation& cancellation_;
  const SteadyTime begin_ = std::chrono::steady_clock::now();
  std::optional<SteadyTime> deadline_;
  SteadyTime next_line_ = begin_ + kFirstLine;
  std::string why_ = kNoReason;
  bool silent_ = false;  // It was given up for that.
};

class GrpcMasterStub : public MasterStub {
 public:
  explicit GrpcMasterStub(std::shared_ptr<RpcChannel> channel)
      : channel_(std::move(channel)),
        pulse_(std::make_shared<Pulse>(channel_)) {}

  absl::Status Call(const char* method,
                    const google::protobuf::MessageLite& request,
                    google::protobuf::MessageLite* response,
                    const Options& options) override {
    SLUICE_ASSIGN_OR_RETURN(const grpc::ByteBuffer bytes,
                            ToByteBuffer(request));
    grpc::ByteBuffer answer;
    SLUICE_RETURN_IF_ERROR(
        MasterCall(channel_.get(), pulse_.get(), method, options)
            .Run(bytes, &answer));
    if (FromByteBuffer(&answer, response)) return absl::OkStatus();
    return Internal("The answer of ", channel_->address(),
                    " could not be read");
  }

  void Send(const char* method,
            const google::protobuf::MessageLite& request) override {
    RpcChannel::Options options;
    options.deadline = std::chrono::steady_clock::now() + kSendTimeout;
    channel_->Call(method, request, options,
                   [](const absl::Status&, const grpc::ByteBuffer&) {});
  }

  std::unique_ptr<Lease> Hold(const std::string& session_handle) override {
    return std::make_unique<Lease>(channel_, session_handle);
  }

 private:
  const std::shared_ptr<RpcChannel> channel_;
  const std::shared_ptr<Pulse> pulse_;
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
