#include "tests/simulation/client.h"

#include <algorithm>

#include "sluice/base/logging.h"
#include "sluice/base/random.h"
#include "sluice/base/status.h"
#include "sluice/graph/graph_def.h"
#include "sluice/graph/scope.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/paths.h"
#include "sluice/tensor/codec.h"

namespace sluice::sim {
namespace {

// A lost peer is noticed within 30 s, and a step can lose one in each of its
// three legs: the client's own, registering, running.
constexpr std::chrono::duration<double> kLongestStep = seconds(90);

struct CallAnswer {
  absl::Status status;
  grpc::ByteBuffer response;

  // The answer as a message, if there is one.
  template <typename Message>
  absl::StatusOr<Message> As() {
    SLUICE_RETURN_IF_ERROR(status);
    Message message;
    if (FromByteBuffer(&response, &message)) return message;
    return Internal("no ", message.GetTypeName());
  }
};

// The graph of a program on worker `w`: every update goes from there, or over
// another worker, to both ps.
pb::GraphDef MakeGraph(int w) {
  const Tensor times = Tensor::Of<int32_t>({1}, {80});
  Graph graph;
  const Scope root(graph);
  const Scope here = root.Device(StrCat("/job:worker/task:", w));
  const Scope there =
      root.Device(StrCat("/job:worker/task:", (w + 1) % kNumWorkers));
  const AttrMap marks = {{"dtype", DType::kInt32},
                         {"shape", PartialShape({kMarks})}};
  const Output mark = here.Named("mark").Add("Placeholder", {}, marks);
  const Output relayed = there.Named("relayed").Add("Identity", {mark});
  // So large that the pool counts its bytes, without which none could leak.
  const Output heavy =
      here.Named("heavy").Add("Tile", {mark, here.Const(times)});
  for (int p = 0; p < kNumPs; ++p) {
    const Scope ps = root.Device(StrCat("/job:ps/task:", p));
    const Output v = ps.Named(StrCat("marks", p)).Add("VariableV2", {}, marks);
    ps.Named(StrCat("push", p)).Add("AssignAdd", {v, mark});
    ps.Named(StrCat("relay", p)).Add("AssignAdd", {v, relayed});
    here.Named(StrCat("pull", p)).Add("Identity", {v});
    ps.Named(StrCat("weight", p)).Add("Identity", {heavy});
  }
  const Scope ps = root.Device("/job:ps/task:0");
  const std::vector<DType> types = {DType::kInt32};
  const Output queue = ps.Named("q").Add(
      "FIFOQueueV2", {},
      {{"component_types", types}, {"shared_name", std::string("q")}});
  const Output token = here.Named("token").Add(
      "Placeholder", {},
      {{"dtype", DType::kInt32}, {"shape", PartialShape::Scalar()}});
  ps.Named("enqueue").AddNode("QueueEnqueueV2", {queue, token});
  const Output dequeued = ps.Named("dequeue").Add("QueueDequeueV2", {queue},
                                                  {{"component_types", types}});
  here.Named("taken").Add("Identity", {dequeued});
  // For a step in parts: what comes in goes to a ps and back, by itself and
  // with what comes in later.
  const AttrMap number = {{"dtype", DType::kInt32},
                          {"shape", PartialShape::Scalar()}};
  const Output first = here.Named("first").Add("Placeholder", {}, number);
  const Output second = here.Named("second").Add("Placeholder", {}, number);
  const Output back = ps.Named("back").Add("Identity", {first});
  here.Named("echo").Add("Identity", {back});
  const Output sum = ps.Named("there").Add("AddV2", {back, second});
  here.Named("sum").Add("Identity", {sum});
  pb::GraphDef def;
  ExportGraphDef(graph, {}, &def);
  SLUICE_CHECK(root.ok()) << root.status();
  return def;
}

absl::StatusOr<pb::RunStepResponse> StepResult(CallAnswer answer) {
  SLUICE_ASSIGN_OR_RETURN(pb::RunStepResponse response,
                          answer.As<pb::RunStepResponse>());
  if (response.status_code() == 0) return response;
  return absl::Status(static_cast<absl::StatusCode>(response.status_code()),
                      response.status_error_message());
}

Tensor MarkAt(int mark) {
  Tensor marks(DType::kInt32, {kMarks});
  std::ranges::fill(marks.mutable_data<int32_t>(), 0);
  marks.mutable_data<int32_t>()[mark] = 1;
  return marks;
}

// The same update as the graph's own, by nodes that came later.
pb::GraphDef MakeExtension(const pb::GraphDef& graph) {
  pb::GraphDef def;
  *def.mutable_versions() = graph.versions();
  for (int p = 0; p < kNumPs; ++p) {
    pb::NodeDef* node = def.add_node();
    node->set_name(StrCat("late", p));
    node->set_op("AssignAdd");
    node->set_device(StrCat("/job:ps/task:", p));
    node->add_input(StrCat("marks", p));
    node->add_input("mark");
    (*node->mutable_attr())["T"].set_type(pb::DT_INT32);
  }
  return def;
}

void AddFeed(const std::string& name, const Tensor& value,
             pb::RunStepRequest* request) {
  pb::NamedTensorProto* feed = request->add_feed();
  feed->set_name(name);
  TensorToProto(value, feed->mutable_tensor());
}

}  // namespace

struct Client::CallAwaiter {
  Client& client;
  std::shared_ptr<RpcChannel> channel;
  const char* path;
  grpc::ByteBuffer request;
  RpcChannel::Options options;
  ClientCall call;
  CallAnswer answer = {};

  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> caller) {
    const auto at = client.calls_.insert(client.calls_.end(), call);
    channel->Call(path, request, options,
                  [this, at, caller](absl::Status status,
                                     const grpc::ByteBuffer& response) {
                    client.Ended(*at);
                    client.calls_.erase(at);
                    answer = {std::move(status), response};
                    caller.resume();
                  });
  }
  CallAnswer await_resume() { return std::move(answer); }
};

struct Client::SleepAwaiter {
  Scheduler& scheduler;
  nanoseconds time;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> caller) const {
    scheduler.After(time, kOutside, [caller] { caller.resume(); });
  }
  void await_resume() const {}
};

Client::Client(Cluster& cluster) : cluster_(cluster) {
  static const auto* graphs = [] {
    auto* made = new std::array<pb::GraphDef, kNumWorkers>;
    for (int w = 0; w < kNumWorkers; ++w) (*made)[w] = MakeGraph(w);
    return made;
  }();
  graphs_ = graphs;
  for (const auto& task : cluster.tasks()) {
    channels_[task->address()] =
        cluster.network().Connect("client", kOutside, task->address());
  }
}

Client::CallAwaiter Client::Call(const std::string& address, const char* path,
                                 const google::protobuf::MessageLite& request,
                                 std::string what, nanoseconds timeout,
                                 bool may_wait, Cancellation* life) {
  const SteadyTime now = cluster_.scheduler().Now();
  RpcChannel::Options options;
  if (timeout.count() > 0) options.deadline = now + timeout;
  options.cancellation = life;
  return {*this,   channels_.at(address),
          path,    *ToByteBuffer(request),
          options, {path, std::move(what), now, may_wait}};
}

void Client::Ended(const ClientCall& call) {
  if (call.may_wait || call.path != paths::kRunStep) return;
  const std::chrono::duration<double> time =
      cluster_.scheduler().Now() - call.since;
  longest_step = std::max(longest_step, time.count());
  if (time <= kLongestStep) return;
  cluster_.Violate(StrCat(call.what, " took ", time.count(),
                          " s, which is longer than promised"));
}

Client::SleepAwaiter Client::Sleep(nanoseconds shortest, nanoseconds longest) {
  return {cluster_.scheduler(),
          cluster_.scheduler().Between(shortest, longest)};
}

Client::CallAwaiter Client::OpenOn(int w, bool filtered, Cancellation* life) {
  pb::CreateSessionRequest request;
  *request.mutable_graph_def() = (*graphs_)[w];
  if (filtered) {
    request.mutable_config()->add_device_filters("/job:ps");
    request.mutable_config()->add_device_filters(
        StrCat("/job:worker/task:", w));
  }
  return Call(cluster_.worker(w).address(), paths::kCreateSession, request,
              StrCat("CreateSession on worker ", w), nanoseconds(0),
              /*may_wait=*/false, life);
}

std::unique_ptr<Lease> Client::Hold(const OpenSession& session) {
  return std::make_unique<Lease>(channels_.at(session.address), session.handle);
}

Cancellation* Client::NewLife(std::optional<nanoseconds> dies) {
  Cancellation* life = &lives_.emplace_back();
  if (dies) {
    cluster_.scheduler().After(*dies, kOutside, [this, life] {
      ++deaths;
      life->Cancel(Cancelled("The client has died"));
    });
  }
  return life;
}

Client::CallAwaiter Client::CloseSession(const OpenSession& session) {
  pb::CloseSessionRequest request;
  request.set_session_handle(session.handle);
  return Call(session.address, paths::kCloseSession, request,
              StrCat("CloseSession ", session.handle), seconds(10));
}

pb::RunStepRequest Client::StepOf(const OpenSession& session) {
  pb::RunStepRequest request;
  request.set_session_handle(session.handle);
  request.set_store_errors_in_response_body(true);
  request.set_request_id(static_cast<int64_t>(RandomId()));
  return request;
}

pb::RunStepRequest Client::PushOf(const OpenSession& session, int mark,
                                  bool relayed) {
  pb::RunStepRequest request = StepOf(session);
  AddFeed("mark:0", MarkAt(mark), &request);
  const char* by = relayed ? "relay" : session.extended ? "late" : "push";
  for (int p = 0; p < kNumPs; ++p) request.add_target(StrCat(by, p));
  if (cluster_.scheduler().Chance(0.1)) {
    for (int p = 0; p < kNumPs; ++p) request.add_target(StrCat("weight", p));
  }
  return request;
}

std::optional<int> Client::NewMark() {
  if (pushes_.size() == kMarks) return std::nullopt;
  pushes_.emplace_back();
  return static_cast<int>(pushes_.size()) - 1;
}

void Client::Acknowledge(int mark, const std::array<Life, kNumPs>& lives) {
  ++acknowledged;
  pushes_[mark].acknowledged = true;
  if (cluster_.PsLives() == lives) pushes_[mark].lives = lives;
}

// A session must not go on as if a ps still had what it kept for it. It may go
// on with a worker that only relays.
void Client::CheckLives(const std::array<Life, kNumPs>& ps_lives,
                        const std::optional<Life>& relay_life,
                        OpenSession* session) {
  if (!session->ps_lives) session->ps_lives = ps_lives;
  if (*session->ps_lives != ps_lives) {
    cluster_.Violate("a session went on after a restart of its ps");
  }
  if (!relay_life) return;
  if (*session->relay_life != *relay_life) ++taken_in;
  session->relay_life = relay_life;
}

// A client can act on these only (DESIGN D5, D7).
void Client::CheckCode(const absl::Status& status, const std::string& what) {
  if (status.ok() || absl::IsAborted(status) || absl::IsUnavailable(status) ||
      absl::IsDeadlineExceeded(status) ||
      (closing_ && absl::IsCancelled(status))) {
    return;
  }
  cluster_.Violate(
      StrCat("unexpected error of ", what, ": ", status.ToString()));
}

Fiber Client::Close(OpenSession session) {
  while (true) {
    const CallAnswer answer = co_await CloseSession(session);
    CheckCode(answer.status, "CloseSession");
    // Lost, unless it is closed now or was gone already.
    if (answer.status.ok() || absl::IsAborted(answer.status)) co_return;
    co_await Sleep(milliseconds(100), seconds(1));
  }
}

Fiber Client::Train(int w, Cancellation* life) {
  Scheduler& chance = cluster_.scheduler();
  co_await Sleep(nanoseconds(0), seconds(2));
  const int64_t rounds = chance.Between(1, 3);
  for (int64_t round = 0; round < rounds; ++round) {
    const bool filtered = chance.Chance(0.5);
    const bool relays = !filtered && chance.Chance(0.6);
    OpenSession session{cluster_.worker(w).address(), ""};
    while (session.handle.empty()) {
      CallAnswer opening = co_await OpenOn(w, filtered, life);
      if (life->cancelled()) co_return;
      auto opened = opening.As<pb::CreateSessionResponse>();
      CheckCode(opened.status(), "CreateSession");
      if (opened.ok()) {
        session.handle = opened->session_handle();
        session.version = opened->graph_version();
      }
      co_await Sleep(milliseconds(1), milliseconds(500));
    }
    ++sessions;
    const std::unique_ptr<Lease> lease = Hold(session);
    absl::Status status;
    for (int64_t left = chance.Between(2, 12);
         left > 0 && (status.ok() || chance.Chance(0.7)); --left) {
      // After a failure some go on, when a lost task may be back.
      co_await Sleep(nanoseconds(0),
                     status.ok() ? milliseconds(300) : seconds(4));
      if (life->cancelled()) co_return;
      const int64_t dice = chance.Between(1, 14);
      if (dice > 10) {
        Fiber part = dice == 11 && !session.extended
                         ? Extend(&session, life, &status)
                     : dice <= 12 ? RunInParts(session, life, &status)
                                  : RunCallable(session, life, &status);
        while (!part.done()) {
          co_await Sleep(milliseconds(1), milliseconds(20));
        }
        if (life->cancelled()) co_return;
        continue;
      }
      const nanoseconds timeout = chance.Chance(0.2)
                                      ? chance.Between(seconds(5), seconds(40))
                                      : nanoseconds(0);
      pb::RunStepRequest request;
      std::string what;
      std::set<int> known;
      const auto lives = cluster_.PsLives();
      Task& relay = cluster_.worker((w + 1) % kNumWorkers);
      std::optional<Life> relay_life;
      const std::optional<int> mark =
          dice <= 6 ? NewMark() : std::optional<int>();
      if (mark) {
        const bool relayed = relays && chance.Chance(0.8);
        if (relayed) {
          relay_life = relay.life();
          if (!session.relay_life) session.relay_life = relay_life;
        }
        request = PushOf(session, *mark, relayed);
        what = StrCat("push ", *mark);
      } else if (dice <= 8) {
        request = StepOf(session);
        for (int p = 0; p < kNumPs; ++p) request.add_fetch(StrCat("pull", p));
        known = Known(lives);
        what = "pull";
      } else {
        request = StepOf(session);
        AddFeed("token:0", Tensor::Scalar<int32_t>(next_token_++), &request);
        request.add_target("enqueue");
        what = "enqueue";
      }
      CallAnswer answer = co_await Call(session.address, paths::kRunStep,
                                        request, what, timeout,
                                        /*may_wait=*/false, life);
      if (life->cancelled()) co_return;
      // A client that lost its connection may ask for the same step again.
      if (absl::IsUnavailable(answer.status) && chance.Chance(0.5)) {
        co_await Sleep(milliseconds(1), seconds(1));
        answer = co_await Call(session.address, paths::kRunStep, request,
                               StrCat(what, " again"), nanoseconds(0),
                               /*may_wait=*/false, life);
        if (life->cancelled()) co_return;
      }
      auto result = StepResult(std::move(answer));
      status = result.status();
      CheckCode(status, what);
      if (status.ok() && what != "enqueue" && lives == cluster_.PsLives() &&
          (!relay_life || *relay_life == relay.life())) {
        CheckLives(lives, relay_life, &session);
      }
      if (status.ok() && mark) {
        Acknowledge(*mark, lives);
      } else if (status.ok() && what == "pull") {
        CheckPull(*result, known, lives);
      }
    }
    Fiber closing = Close(session);
    while (!closing.done()) co_await Sleep(milliseconds(10), milliseconds(20));
  }
}

Fiber Client::Extend(OpenSession* session, Cancellation* life,
                     absl::Status* status) {
  pb::ExtendSessionRequest request;
  request.set_session_handle(session->handle);
  request.set_current_graph_version(session->version);
  *request.mutable_graph_def() = MakeExtension(graphs_->front());
  CallAnswer answer =
      co_await Call(session->address, paths::kExtendSession, request,
                    "ExtendSession", nanoseconds(0), /*may_wait=*/false, life);
  if (life->cancelled()) co_return;
  auto extended = answer.As<pb::ExtendSessionResponse>();
  *status = extended.status();
  CheckCode(*status, "ExtendSession");
  session->extended = extended.ok();
}

Fiber Client::RunInParts(OpenSession session, Cancellation* life,
                         absl::Status* status) {
  const int32_t first =
      static_cast<int32_t>(cluster_.scheduler().Between(1, 1000));
  const int32_t second =
      static_cast<int32_t>(cluster_.scheduler().Between(1, 1000));
  pb::PartialRunSetupRequest setup;
  setup.set_session_handle(session.handle);
  setup.add_feed("first:0");
  setup.add_feed("second:0");
  setup.add_fetch("echo:0");
  setup.add_fetch("sum:0");
  setup.set_request_id(static_cast<int64_t>(RandomId()));
  CallAnswer answer = co_await Call(session.address, paths::kPartialRunSetup,
                                    setup, "PartialRunSetup", nanoseconds(0),
                                    /*may_wait=*/false, life);
  if (life->cancelled()) co_return;
  auto begun = answer.As<pb::PartialRunSetupResponse>();
  *status = begun.status();
  CheckCode(*status, "PartialRunSetup");
  for (const bool last : {false, true}) {
    if (!status->ok() || (last && cluster_.scheduler().Chance(0.2))) co_return;
    pb::RunStepRequest part = StepOf(session);
    part.set_partial_run_handle(begun->partial_run_handle());
    AddFeed(last ? "second:0" : "first:0",
            Tensor::Scalar<int32_t>(last ? second : first), &part);
    part.add_fetch(last ? "sum:0" : "echo:0");
    answer = co_await Call(session.address, paths::kRunStep, part,
                           last ? "second part" : "first part", nanoseconds(0),
                           /*may_wait=*/false, life);
    if (life->cancelled()) co_return;
    auto result = StepResult(std::move(answer));
    *status = result.status();
    CheckCode(*status, "a part of a step");
    if (!status->ok()) co_return;
    const absl::StatusOr<Tensor> value =
        result->tensor_size() == 1 ? TensorFromProto(result->tensor(0).tensor())
                                   : Internal("no value");
    if (!value.ok() ||
        value->scalar<int32_t>() != first + (last ? second : 0)) {
      cluster_.Violate("a part of a step gave another value");
    }
  }
}

Fiber Client::RunCallable(OpenSession session, Cancellation* life,
                          absl::Status* status) {
  pb::MakeCallableRequest make;
  make.set_session_handle(session.handle);
  make.set_request_id(static_cast<int64_t>(RandomId()));
  make.mutable_options()->add_feed("mark:0");
  for (int p = 0; p < kNumPs; ++p) {
    make.mutable_options()->add_target(StrCat("push", p));
  }
  CallAnswer answer =
      co_await Call(session.address, paths::kMakeCallable, make, "MakeCallable",
                    nanoseconds(0), /*may_wait=*/false, life);
  if (life->cancelled()) co_return;
  auto made = answer.As<pb::MakeCallableResponse>();
  *status = made.status();
  CheckCode(*status, "MakeCallable");
  for (int i = 0; i < 2 && status->ok(); ++i) {
    const std::optional<int> mark = NewMark();
    if (!mark) break;
    const auto lives = cluster_.PsLives();
    pb::RunCallableRequest run;
    run.set_session_handle(session.handle);
    run.set_handle(made->handle());
    run.set_request_id(static_cast<int64_t>(RandomId()));
    TensorToProto(MarkAt(*mark), run.add_feed());
    answer = co_await Call(session.address, paths::kRunCallable, run,
                           StrCat("push ", *mark, " by a callable"),
                           nanoseconds(0), /*may_wait=*/false, life);
    if (life->cancelled()) co_return;
    *status = answer.status;
    CheckCode(*status, "RunCallable");
    if (status->ok()) Acknowledge(*mark, lives);
  }
  if (!status->ok()) co_return;
  pb::ReleaseCallableRequest release;
  release.set_session_handle(session.handle);
  release.set_handle(made->handle());
  answer = co_await Call(session.address, paths::kReleaseCallable, release,
                         "ReleaseCallable", nanoseconds(0), /*may_wait=*/false,
                         life);
  if (life->cancelled()) co_return;
  *status = answer.status;
  // It may come twice, and the second time there is none any more.
  if (!absl::IsInvalidArgument(*status)) CheckCode(*status, "ReleaseCallable");
}

std::set<int> Client::Known(const std::array<Life, kNumPs>& lives) const {
  std::set<int> known;
  for (size_t i = 0; i < pushes_.size(); ++i) {
    if (pushes_[i].acknowledged && pushes_[i].lives == lives) {
      known.insert(static_cast<int>(i));
    }
  }
  return known;
}

void Client::CheckPull(const pb::RunStepResponse& response,
                       const std::set<int>& known,
                       const std::array<Life, kNumPs>& lives) {
  if (response.tensor_size() != kNumPs) {
    cluster_.Violate("a pull without its values");
    return;
  }
  for (int p = 0; p < kNumPs; ++p) {
    const absl::StatusOr<Tensor> marks =
        TensorFromProto(response.tensor(p).tensor());
    if (!marks.ok() || marks->size() != kMarks) {
      cluster_.Violate("a pull of something else");
      return;
    }
    if (cluster_.PsLives() != lives) continue;
    for (const int mark : known) {
      if (marks->data<int32_t>()[mark] != 1) {
        cluster_.Violate(StrCat("a pull from ps ", p, " does not show push ",
                                mark, ", which was acknowledged before"));
      }
    }
  }
}

Fiber Client::Consume(int w, Cancellation* life) {
  Scheduler& chance = cluster_.scheduler();
  while (!closing_) {
    co_await Sleep(milliseconds(1), seconds(1));
    if (life->cancelled()) co_return;
    OpenSession session{cluster_.worker(w).address(), ""};
    CallAnswer opening = co_await OpenOn(w, /*filtered=*/true, life);
    if (life->cancelled()) co_return;
    auto opened = opening.As<pb::CreateSessionResponse>();
    CheckCode(opened.status(), "CreateSession");
    if (!opened.ok()) continue;
    session.handle = opened->session_handle();
    ++sessions;
    const std::unique_ptr<Lease> lease = Hold(session);
    const auto at = consuming_.insert(consuming_.end(), session);
    absl::Status status;
    while (status.ok() && !closing_) {
      pb::RunStepRequest request = StepOf(session);
      request.add_fetch("taken");
      const nanoseconds timeout = !calm_ && chance.Chance(0.3)
                                      ? chance.Between(seconds(3), seconds(30))
                                      : nanoseconds(0);
      const CallAnswer answer =
          co_await Call(session.address, paths::kRunStep, request, "dequeue",
                        timeout, /*may_wait=*/true, life);
      if (life->cancelled()) break;
      auto result = StepResult(answer);
      status = result.status();
      CheckCode(status, "dequeue");
      if (status.ok()) Take(*result);
    }
    consuming_.erase(at);
    if (life->cancelled()) co_return;
    Fiber closing = Close(session);
    while (!closing.done()) co_await Sleep(milliseconds(10), milliseconds(20));
  }
}

void Client::Take(const pb::RunStepResponse& response) {
  const absl::StatusOr<Tensor> token =
      response.tensor_size() == 1 ? TensorFromProto(response.tensor(0).tensor())
                                  : Internal("no token");
  if (!token.ok()) {
    cluster_.Violate("a dequeue without its value");
    return;
  }
  const int value = token->scalar<int32_t>();
  if (value <= 0 || value >= next_token_) {
    cluster_.Violate(StrCat("token ", value, " was never enqueued"));
  } else if (!taken_.insert(value).second) {
    cluster_.Violate(StrCat("token ", value, " was dequeued twice"));
  }
}

Fiber Client::SweepMaster(std::string address) {
  while (true) {
    CallAnswer opening =
        co_await Call(address, paths::kCreateSession,
                      pb::CreateSessionRequest(), "CreateSession of a sweep");
    auto opened = opening.As<pb::CreateSessionResponse>();
    CheckCode(opened.status(), "CreateSession");
    if (!opened.ok()) continue;
    Fiber closing = Close({address, opened->session_handle()});
    while (!closing.done()) co_await Sleep(milliseconds(10), milliseconds(20));
    co_return;
  }
}

void Client::StartTrainer(int w, std::optional<nanoseconds> dies) {
  fibers_.push_back(Train(w, NewLife(dies)));
}
void Client::StartConsumer(int w, std::optional<nanoseconds> dies) {
  consumers_.push_back(Consume(w, NewLife(dies)));
}

void Client::CloseConsumers() {
  closing_ = true;
  for (const OpenSession& session : consuming_) {
    fibers_.push_back(Close(session));
  }
}

void Client::Sweep() {
  for (const auto& task : cluster_.tasks()) {
    fibers_.push_back(SweepMaster(task->address()));
  }
}

bool Client::busy() const {
  return !std::ranges::all_of(fibers_, &Fiber::done);
}

bool Client::consuming() const {
  return !std::ranges::all_of(consumers_, &Fiber::done);
}

void Client::CheckUpdates() {
  std::array<Marks, kNumPs> marks;
  for (int p = 0; p < kNumPs; ++p) marks[p] = cluster_.MarksOf(p);
  for (size_t i = 0; i < pushes_.size(); ++i) {
    int applied = 0;
    for (int p = 0; p < kNumPs; ++p) {
      if (marks[p][i] > 1) {
        cluster_.Violate(StrCat("doubled: push ", i, " was applied ",
                                marks[p][i], " times to ps ", p));
      }
      applied += marks[p][i] > 0 ? 1 : 0;
    }
    if (!pushes_[i].acknowledged || applied == kNumPs) continue;
    cluster_.Violate(StrCat(applied == 0 ? "lost" : "half-reported", ": push ",
                            i, " was acknowledged and is on ", applied, " of ",
                            kNumPs, " ps"));
  }
}

}  // namespace sluice::sim
