#include "sluice/rpc/master_stub.h"

#include <algorithm>
#include <atomic>

#include "absl/container/flat_hash_set.h"
#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/base/time_limit.h"
#include "sluice/kernel/step.h"
#include "sluice/proto/master.pb.h"
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
// For the answer of a master that ends a call because its time is up, which it
// does to all but CloseSession.
constexpr auto kAnswerGrace = std::chrono::seconds(1);
// A connection that breaks again and again will break once more.
constexpr int kMostBroken = 10;

// Whether the master itself has ended a call. Any other error is an answer.
bool IsAnswer(const absl::Status& status) {
  return WasAnswered(status) ||
         (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status) &&
          !absl::IsCancelled(status));
}

// Addresses of masters that were silent when this process closed a session,
// until they answer something. Of the process, as each session has a stub of
// its own. Thread-safe.
class SilentMasters {
 public:
  static SilentMasters& Get() {
    static auto* masters = new SilentMasters;
    return *masters;
  }

  bool Contains(const std::string& address) {
    MutexLock lock(mu_);
    return addresses_.contains(address);
  }
  void Add(const std::string& address) {
    MutexLock lock(mu_);
    addresses_.insert(address);
    empty_ = false;
  }
  // Each call to a master comes here, so it takes no lock as a rule.
  void Remove(const std::string& address) {
    if (empty_) return;
    MutexLock lock(mu_);
    addresses_.erase(address);
    empty_ = addresses_.empty();
  }

 private:
  std::atomic<bool> empty_ = true;
  Mutex mu_;
  absl::flat_hash_set<std::string> addresses_ SLUICE_GUARDED_BY(mu_);
};

// What the calls to a master hear of it by probes, which may outlive them.
class Pulse : public std::enable_shared_from_this<Pulse> {
 public:
  explicit Pulse(std::shared_ptr<RpcChannel> channel)
      : channel_(std::move(channel)) {}

  SteadyTime last_heard() {
    MutexLock lock(mu_);
    return last_heard_;
  }

  // Asks for a sign of life if there was none for a while, or since `begin`
  // none for `first_pause`. However many calls wait, there is one probe.
  void Probe(SteadyTime begin, SteadyTime now,
             SteadyTime::duration first_pause) {
    {
      MutexLock lock(mu_);
      const auto due =
          last_heard_ < begin ? begin + first_pause : last_heard_ + kPulsePause;
      if (probing_ || now < due) return;
      probing_ = true;
      last_asked_ = now;
    }
    RpcChannel::Options options;
    options.deadline = now + kPulseTimeout;
    channel_->Call(paths::kGetStatus, pb::GetStatusRequest(), options,
                   [self = shared_from_this()](const absl::Status& status,
                                               const grpc::ByteBuffer&) {
                     MutexLock lock(self->mu_);
                     self->probing_ = false;
                     if (!IsAnswer(status)) return;
                     self->last_heard_ = std::chrono::steady_clock::now();
                     self->Learn(status);
                   });
  }

  // Takes note of how any call has ended.
  void Learn(const absl::Status& status) {
    if (IsAnswer(status)) SilentMasters::Get().Remove(channel_->address());
  }

  // Takes note that a session could not be closed. A master that did answer a
  // probe since `begin` has steps that do not end.
  void LearnNotClosed(SteadyTime begin) {
    MutexLock lock(mu_);
    if (last_heard_ < begin && last_heard_ < last_asked_) {
      SilentMasters::Get().Add(channel_->address());
    }
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
  SteadyTime last_asked_ SLUICE_GUARDED_BY(mu_);
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
        closing_(method == std::string_view(paths::kCloseSession)),
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
      if (WasAnswered(status)) return AsGiven(status);
      if (absl::IsUnavailable(status)) {
        if (!silent_) why_ = WhyUnreachable(channel_->address(), status);
        if (deadline_ && now >= *deadline_) return OutOfTime();
      } else {
        const bool own = absl::IsDeadlineExceeded(status) && deadline_ &&
                         now >= LastMoment();
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
    if (pulse_->last_heard() >= begin_) {
      return DeadlineExceeded("Operation timed out. The master at ",
                              channel_->address(),
                              " is there and still works on it.");
    }
    return DeadlineExceeded("The master at ", channel_->address(),
                            " did not answer in time: ", why_);
  }

  // Of an answer.
  SteadyTime LastMoment() const {
    return closing_ ? *deadline_ : *deadline_ + kAnswerGrace;
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
    if (deadline_) call.deadline = LastMoment();
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
    pulse_->Probe(begin_, now, closing_ ? kPollPeriod : kPulsePause);
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
  const bool closing_;
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
    absl::Status status =
        MasterCall(channel_.get(), pulse_.get(), method, options)
            .Run(bytes, &answer);
    pulse_->Learn(status);
    SLUICE_RETURN_IF_ERROR(status);
    if (FromByteBuffer(&answer, response)) return absl::OkStatus();
    return Internal("The answer of ", channel_->address(),
                    " could not be read");
  }

  void Send(const char* method,
            const google::protobuf::MessageLite& request) override {
    RpcChannel::Options options;
    options.deadline = std::chrono::steady_clock::now() + kSendTimeout;
    channel_->Call(
        method, request, options,
        [pulse = pulse_](const absl::Status& status, const grpc::ByteBuffer&) {
          pulse->Learn(status);
        });
  }

  absl::Status Close(const std::string& session_handle,
                     const Options& options) override {
    pb::CloseSessionRequest request;
    request.set_session_handle(session_handle);
    if (SilentMasters::Get().Contains(channel_->address())) {
      Send(paths::kCloseSession, request);
      return DeadlineExceeded("The master at ", channel_->address(),
                              " did not answer when the last one was closed");
    }
    const auto begin = std::chrono::steady_clock::now();
    pb::CloseSessionResponse response;
    absl::Status status =
        Call(paths::kCloseSession, request, &response, options);
    if (!IsAnswer(status)) pulse_->LearnNotClosed(begin);
    return status;
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
