#include "tests/simulation/network.h"

#include <string_view>

#include "sluice/base/status.h"
#include "sluice/proto/master.pb.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/paths.h"

namespace sluice::sim {
namespace {

constexpr nanoseconds kShortestDelay = microseconds(100);
constexpr nanoseconds kSlowestDelay = seconds(3);
// How often a message tries a link that is cut.
constexpr nanoseconds kResend = milliseconds(500);

std::string_view Method(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// Whoever asks again with the same request must have said so by an id, or have
// asked for something that may happen twice.
bool MayComeTwice(std::string_view method, const grpc::ByteBuffer& request) {
  if (method == "RecvTensor") {
    grpc::ByteBuffer copy = request;
    pb::RecvTensorRequest recv;
    // Each later chunk is there for one call.
    return FromByteBuffer(&copy, &recv) && recv.sluice_transfer() == 0;
  }
  return method != "CreateSession" && method != "CreateWorkerSession" &&
         method != "RegisterGraph" && method != "ExtendSession";
}

}  // namespace

struct Network::Call {
  int64_t id = 0;
  std::string from, to, path;
  Life life = kOutside;  // The caller's.
  Cancellation* cancellation = nullptr;
  Cancellation::Token token = Cancellation::kNone;
  RpcChannel::Done done;  // Empty once called.
  std::vector<std::weak_ptr<ServedCall>> served;

  std::string_view method() const { return Method(path); }
};

// A call as its server sees it.
class Network::ServedCall : public ServerCall {
 public:
  ServedCall(Network& network, CallPtr call, Life life,
             const grpc::ByteBuffer& request)
      : network_(network),
        call_(std::move(call)),
        life_(life),
        received_(request),
        request_(request) {}

  const std::string& path() const override { return call_->path; }
  grpc::ByteBuffer& request() override { return request_; }
  void Reply(grpc::ByteBuffer response) override {
    Answer(absl::OkStatus(), response);
  }
  void Fail(const absl::Status& status) override { Answer(status, {}); }
  std::chrono::system_clock::time_point deadline() const override {
    return std::chrono::system_clock::time_point::max();
  }
  void OnCancel(absl::AnyInvocable<void()> callback) override {
    if (answered_) return;
    if (cancelled_) {
      callback();
    } else {
      on_cancel_ = std::move(callback);
    }
  }

  Life life() const { return life_; }
  bool answered() const { return answered_; }
  const grpc::ByteBuffer& received() const { return received_; }
  // The caller is gone, or does not want the answer any more.
  void Cancel() {
    if (answered_ || cancelled_) return;
    cancelled_ = true;
    if (auto callback = std::exchange(on_cancel_, nullptr)) callback();
  }

 private:
  void Answer(const absl::Status& status, const grpc::ByteBuffer& response) {
    if (std::exchange(answered_, true)) return;
    const auto unused = std::exchange(on_cancel_, nullptr);  // May hold this.
    network_.Answer(call_, life_, status, response);
  }

  Network& network_;
  const CallPtr call_;
  const Life life_;
  const grpc::ByteBuffer received_;
  grpc::ByteBuffer request_;  // The server may take it.
  bool answered_ = false;
  bool cancelled_ = false;
  absl::AnyInvocable<void()> on_cancel_;
};

class Network::Channel : public RpcChannel {
 public:
  Channel(Network& network, std::string from, Life life, std::string to)
      : network_(network),
        from_(std::move(from)),
        life_(life),
        to_(std::move(to)) {}
  const std::string& address() const override { return to_; }

  using RpcChannel::Call;
  void Call(const char* path, const grpc::ByteBuffer& request,
            const Options& options, Done done) override {
    auto call = std::make_shared<Network::Call>();
    call->from = from_;
    call->to = to_;
    call->path = path;
    call->life = life_;
    call->cancellation = options.cancellation;
    call->done = std::move(done);
    network_.Start(call, request);
    if (options.deadline) {
      // The channel may be gone by then.
      network_.scheduler_.At(*options.deadline, life_, [&n = network_, call] {
        n.Finish(call, DeadlineExceeded("Deadline Exceeded"), {});
      });
    }
  }

 private:
  Network& network_;
  const std::string from_;
  const Life life_;
  const std::string to_;
};

Network::~Network() {
  for (const auto token : kept_waits_) WaitTable::Global().Remove(token);
}

bool Network::AnswersFor(const Call& call) {
  const std::string_view method = call.method();
  return (planted.answers_without_running && method == "RunGraph" &&
          scheduler_.Chance(0.3)) ||
         (planted.keeps_sessions && method == "DeleteWorkerSession") ||
         (planted.keeps_master_sessions && method == "CloseSession") ||
         (planted.keeps_steps && method == "CleanupGraph");
}

void Network::PlantLeaks(const Listener& listener) {
  if (planted.leaks_tensors && kept_tensors_.empty()) {
    kept_tensors_.emplace_back(DType::kFloat, Shape({20 * 1024}));
  }
  if (planted.leaks_tasks && kept_handlers_.empty()) {
    kept_handlers_.push_back(listener.handler);
  }
  if (planted.leaks_waits && kept_waits_.empty()) {
    kept_waits_.push_back(
        WaitTable::Global().Add({"planted", "nowhere", 0, scheduler_.Now()}));
  }
  if (std::exchange(planted.leaks_timers, false)) PlantWaitsForEver();
}

void Network::PlantWaitsForEver() {
  scheduler_.After(seconds(1), kOutside, [this] { PlantWaitsForEver(); });
}

void Network::PlantInAnswer(const Call& call, absl::Status* status,
                            grpc::ByteBuffer* response) {
  if (call.from != "client" || call.method() != "RunStep" || !status->ok()) {
    return;
  }
  if (planted.wrong_code && scheduler_.Chance(0.1)) {
    *status = Internal("planted");
    *response = {};
    return;
  }
  grpc::ByteBuffer copy = *response;
  pb::RunStepResponse step;
  if (planted.repeats_fetches && FromByteBuffer(&copy, &step) &&
      step.tensor_size() > 0) {
    *response =
        first_fetches_.try_emplace(step.tensor_size(), *response).first->second;
  }
}

std::shared_ptr<RpcChannel> Network::Connect(const std::string& from, Life life,
                                             const std::string& to) {
  return std::make_shared<Channel>(*this, from, life, to);
}

void Network::Listen(const std::string& address, Life life,
                     CallHandler handler) {
  listeners_[address] = {life, std::move(handler)};
}

void Network::Log(const Call& call, const std::string& what) {
  trace_.Add(scheduler_.Now(),
             StrCat(what, " #", call.id, " ", std::string(call.method()), " ",
                    call.from, ">", call.to));
}

nanoseconds Network::Delay() {
  if (scheduler_.Chance(weather.slow)) {
    ++faults;
    return scheduler_.Between(weather.longest_delay, kSlowestDelay);
  }
  return scheduler_.Between(kShortestDelay, weather.longest_delay);
}

bool Network::IsCut(const Call& call) const {
  return IsCut(call.from, call.to);
}

std::vector<Network::TakenCall> Network::TakenCalls(
    const std::string& from) const {
  std::vector<TakenCall> taken;
  for (const auto& [id, call] : calls_) {
    if (call->from != from) continue;
    for (const auto& weak : call->served) {
      const std::shared_ptr<ServedCall> served = weak.lock();
      if (served == nullptr || served->answered() ||
          !scheduler_.alive(served->life())) {
        continue;
      }
      taken.push_back(
          {id, call->to, std::string(call->method()), served->received()});
      break;
    }
  }
  return taken;
}

void Network::Start(const CallPtr& call, const grpc::ByteBuffer& request) {
  call->id = next_call_++;
  calls_[call->id] = call;
  if (!scheduler_.alive(call->life)) {
    --next_call_;  // What an ended life does leaves no mark.
    call->id = -call->id;
    calls_.erase(-call->id);
    scheduler_.After(nanoseconds(0), call->life, [this, call] {
      Finish(call, Unavailable("the caller has ended"), {});
    });
    return;
  }
  Log(*call, StrCat("call ", request.Length()));
  if (call->cancellation != nullptr) {
    const auto cancel = [this, call] {
      scheduler_.After(nanoseconds(0), call->life, [this, call] {
        if (call->done) Finish(call, call->cancellation->status(), {});
      });
    };
    call->token = call->cancellation->Register(cancel);
    if (call->token == Cancellation::kNone) cancel();
  }
  if (AnswersFor(*call)) {
    scheduler_.After(Delay(), call->life, [this, call] {
      Finish(call, absl::OkStatus(), *ToByteBuffer(pb::RunGraphResponse()));
    });
    return;
  }
  if (IsCut(*call)) {
    scheduler_.After(kSilence, kOutside, [this, call] {
      if (call->done && IsCut(*call)) Break(call, Delay(), "no connection");
    });
  }
  if (scheduler_.Chance(weather.lost)) {
    Break(call, Delay(), "request lost");
    // It may have got through all the same.
    if (scheduler_.Chance(0.5)) return;
  }
  scheduler_.After(Delay(), kOutside,
                   [this, call, request] { Deliver(call, request); });
  if (scheduler_.Chance(weather.duplicate) &&
      MayComeTwice(call->method(), request)) {
    ++faults;
    Log(*call, "twice");
    scheduler_.After(Delay(), kOutside,
                     [this, call, request] { Deliver(call, request); });
  }
  if (planted.runs_twice && call->method() == "RunStep") {
    grpc::ByteBuffer copy = request;
    pb::RunStepRequest other;
    FromByteBuffer(&copy, &other);
    other.set_request_id(static_cast<int64_t>(scheduler_.RandomId()));
    copy = *ToByteBuffer(other);
    scheduler_.After(Delay(), kOutside,
                     [this, call, copy] { Deliver(call, copy); });
  }
}

void Network::Deliver(const CallPtr& call, const grpc::ByteBuffer& request) {
  if (IsCut(*call)) {
    // What a broken connection had not carried over is lost.
    if (!call->done) return;
    scheduler_.After(kResend, kOutside,
                     [this, call, request] { Deliver(call, request); });
    return;
  }
  Serve(call, request);
}

void Network::Serve(const CallPtr& call, const grpc::ByteBuffer& request) {
  auto it = listeners_.find(call->to);
  if (it == listeners_.end()) {
    Break(call, Delay(),
          "failed to connect to all addresses: Connection refused");
    return;
  }
  ++messages;
  const Listener listener = it->second;
  auto served =
      std::make_shared<ServedCall>(*this, call, listener.life, request);
  PlantLeaks(listener);
  Log(*call, "serve");
  if (call->done) {
    call->served.push_back(served);
  } else {
    // Its caller has given up, and the server will hear of that, too.
    scheduler_.After(Delay(), listener.life, [served] { served->Cancel(); });
  }
  scheduler_.RunAs(listener.life, [&] { listener.handler(served); });
}

void Network::Answer(const CallPtr& call, Life life, absl::Status status,
                     grpc::ByteBuffer response) {
  if (!scheduler_.alive(life)) return;
  PlantInAnswer(*call, &status, &response);
  Log(*call, StrCat("answer ", static_cast<int>(status.code()), " ",
                    response.Length()));
  if (planted.forgets_the_caller && call->from == "client" &&
      call->method() == "RunStep" && scheduler_.Chance(0.02)) {
    return;
  }
  if (scheduler_.Chance(weather.lost)) {
    Break(call, Delay(), "answer lost");
    return;
  }
  const bool late = planted.answers_late && call->from == "client" &&
                    call->method() == "RunStep";
  scheduler_.After(late ? seconds(100) : Delay(), kOutside,
                   [this, call, status, response] {
                     DeliverAnswer(call, status, response);
                   });
}

void Network::DeliverAnswer(const CallPtr& call, const absl::Status& status,
                            const grpc::ByteBuffer& response) {
  if (!call->done) return;
  if (IsCut(*call)) {
    scheduler_.After(kResend, kOutside, [this, call, status, response] {
      DeliverAnswer(call, status, response);
    });
    return;
  }
  ++messages;
  scheduler_.RunAs(call->life, [&] { Finish(call, status, response); });
}

void Network::Break(const CallPtr& call, nanoseconds delay, const char* why) {
  ++faults;
  Log(*call, why);
  scheduler_.After(delay, call->life,
                   [this, call, why] { Finish(call, Unavailable(why), {}); });
}

void Network::Finish(const CallPtr& call, const absl::Status& status,
                     const grpc::ByteBuffer& response) {
  if (!call->done) return;
  RpcChannel::Done done = std::exchange(call->done, nullptr);
  calls_.erase(call->id);
  if (call->token != Cancellation::kNone) {
    call->cancellation->Deregister(call->token);
  }
  const bool counts = scheduler_.alive(call->life);
  if (counts) Log(*call, StrCat("done ", static_cast<int>(status.code())));
  for (const auto& weak : std::exchange(call->served, {})) {
    const std::shared_ptr<ServedCall> served = weak.lock();
    if (served == nullptr || !scheduler_.alive(served->life())) continue;
    if (planted.keeps_leases && call->method() == "Hold") continue;
    scheduler_.After(counts ? Delay() : nanoseconds(0), served->life(),
                     [served] { served->Cancel(); });
  }
  done(status, response);
}

void Network::Vanish(const std::string& address) {
  const Life life = listeners_.at(address).life;
  listeners_.erase(address);
  const std::map<int64_t, CallPtr> calls = calls_;
  // First those that it was to answer: its last doings let go of them.
  for (const auto& [id, call] : calls) {
    if (call->life == life) continue;
    for (const auto& weak : call->served) {
      const std::shared_ptr<ServedCall> served = weak.lock();
      if (served == nullptr || served->life() != life) continue;
      scheduler_.RunAs(life, [&] { served->Cancel(); });
      Break(call, Delay(), "Socket closed");
    }
  }
  // The ended task hears of it at once, as part of its end. Only now, as it may
  // answer others because of that.
  for (const auto& [id, call] : calls) {
    if (call->life != life) continue;
    scheduler_.RunAs(life, [&] { Finish(call, Unavailable("ended"), {}); });
  }
}

void Network::Cut(const std::string& a, const std::string& b) {
  const Link link = Between(a, b);
  const int64_t number = next_cut_++;
  if (!cuts_.emplace(link, number).second) return;
  ++faults;
  trace_.Add(scheduler_.Now(), StrCat("cut ", a, " ", b));
  scheduler_.After(kSilence, kOutside, [this, link, number] {
    auto it = cuts_.find(link);
    if (it != cuts_.end() && it->second == number) BreakSilentCalls(link);
  });
}

void Network::BreakSilentCalls(const Link& link) {
  const std::map<int64_t, CallPtr> calls = calls_;
  for (const auto& [id, call] : calls) {
    if (Between(call->from, call->to) == link) {
      Break(call, Delay(), "keepalive watchdog timeout");
    }
  }
}

void Network::Heal(const std::string& a, const std::string& b) {
  if (cuts_.erase(Between(a, b)) == 0) return;
  trace_.Add(scheduler_.Now(), StrCat("heal ", a, " ", b));
}

void Network::HealAll() { cuts_.clear(); }

std::string Network::DescribeOpenCalls() const {
  std::string text;
  for (const auto& [id, call] : calls_) {
    StrAppend(&text, "\n  #", id, " ", std::string(call->method()), " ",
              call->from, ">", call->to);
  }
  return text;
}

}  // namespace sluice::sim
