#include "sluice/rpc/remote_worker.h"

#include <atomic>
#include <map>
#include <new>

#include "absl/container/flat_hash_map.h"
#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"
#include "sluice/base/random.h"
#include "sluice/base/simulation.h"
#include "sluice/base/status.h"
#include "sluice/base/timer.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/client_call.h"
#include "sluice/rpc/config.h"
#include "sluice/rpc/lease.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/recv_chunks.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

// Shorter than the time to the first waiting line, which says what came of it.
constexpr char kGrpcsOwnTimeout[] = "Deadline Exceeded";
constexpr auto kProbeTimeout = std::chrono::seconds(2);
constexpr auto kProbePause = std::chrono::milliseconds(300);
// Calls that only tidy up must not keep anybody waiting for a dead peer.
constexpr auto kTidyTimeout = std::chrono::seconds(10);
// How long the end of a step may wait to be told together with others.
constexpr auto kTidyPause = std::chrono::milliseconds(20);
// What a peer did not hear is told again, for some ten minutes.
constexpr auto kTidyRetryPause = std::chrono::seconds(5);
constexpr int kTidyTries = 100;

class RemoteWorker;

// Tells the worker when nobody needs the graph any more, unless the session
// goes as well.
struct RemoteGraph : RegisteredGraph {
  std::shared_ptr<RpcChannel> channel;
  std::shared_ptr<std::atomic<bool>> session_open;
  std::string handle;
  std::string session;

  ~RemoteGraph() override {
    if (!session_open->load()) return;
    pb::DeregisterGraphRequest request;
    request.set_graph_handle(handle);
    request.set_session_handle(session);
    request.set_create_worker_session_called(true);
    RpcChannel::Options options;
    options.deadline = TheClock().Now() + kTidyTimeout;
    // A worker that is gone has no graphs.
    channel->Call(paths::kDeregisterGraph, request, options,
                  [](absl::Status, grpc::ByteBuffer) {});
  }
};

class RemoteWorker : public PeerWorker,
                     public std::enable_shared_from_this<RemoteWorker> {
 public:
  // Without `asker`: a task that goes by another name elsewhere.
  RemoteWorker(std::string task, std::shared_ptr<RpcChannel> channel,
               std::optional<TaskAddress> asker)
      : task_(std::move(task)),
        channel_(std::move(channel)),
        asker_(std::move(asker)) {}

  void GetStatus(bool wait, Cancellation* cancellation,
                 StatusDone done) override {
    auto probe = std::make_shared<Probe>();
    probe->worker = shared_from_this();
    probe->wait = wait;
    probe->cancellation = cancellation;
    probe->done = std::move(done);
    Ask(probe);
  }

  void CreateSession(CreateSessionRequest session, Done done) override {
    pb::CreateWorkerSessionRequest request;
    request.set_session_handle(session.handle);
    request.set_isolate_session_state(session.isolated);
    if (session.task.empty()) {
      request.set_master_task(asker_->task);
      request.set_master_incarnation(static_cast<int64_t>(asker_->incarnation));
    } else {
      absl::StatusOr<DeviceName> name = DeviceName::Parse(session.task);
      if (!name.ok()) {
        done(name.status());
        return;
      }
      pb::ServerDef* server = request.mutable_server_def();
      server->set_job_name(name->job.value_or(""));
      server->set_task_index(name->task.value_or(0));
      server->set_protocol("grpc");
      TasksToProto(session.cluster, server->mutable_cluster());
    }
    const WaitTable::Token wait =
        NameWait("the opening of the session", session.handle);
    RpcChannel::Options options;
    options.deadline = session.deadline;
    Call<pb::CreateWorkerSessionResponse>(
        paths::kCreateWorkerSession, request, options,
        [self = shared_from_this(), handle = session.handle, wait,
         done = std::move(done)](absl::Status status) mutable {
          WaitTable::Global().Remove(wait);
          if (status.ok() && self->TakesGroups()) self->HoldSession(handle);
          done(std::move(status));
        });
  }

  void DeleteSession(const std::string& handle, Done done) override {
    std::unique_ptr<Lease> lease;
    {
      MutexLock lock(mu_);
      auto it = sessions_.find(handle);
      if (it != sessions_.end()) {
        it->second->store(false);
        sessions_.erase(it);
      }
      if (const auto held = leases_.find(handle); held != leases_.end()) {
        lease = std::move(held->second);
        leases_.erase(held);
      }
    }
    pb::DeleteWorkerSessionRequest request;
    request.set_session_handle(handle);
    Tidy(paths::kDeleteWorkerSession, *ToByteBuffer(request), std::move(done));
  }

  // Writing a large graph takes as much memory as the graph.
  void RegisterGraph(RegisterGraphRequest request, RegisterDone done) override {
    const auto registration = std::make_shared<Registration>();
    registration->done = std::move(done);
    try {
      SendGraph(request, registration);
    } catch (const std::bad_alloc&) {
      // If it was answered, whom the answer went to ran out of memory.
      if (!registration->Answer(ResourceExhausted(
              "Out of memory while sending a graph to ", task_))) {
        throw;
      }
    }
  }

  void RunGraph(const RunGraphRequest& request, Done done) override {
    const auto* graph = static_cast<const RemoteGraph*>(request.graph);
    // Masters put the client's ends on their own task.
    if (!request.feeds.empty() || !request.fetches.empty()) {
      done(Unimplemented("RunGraph on ", task_, " brings ",
                         request.feeds.size(), " feeds and asks for ",
                         request.fetches.size(),
                         " fetches; a task elsewhere takes none"));
      return;
    }
    pb::RunGraphRequest proto;
    proto.set_graph_handle(graph->handle);
    proto.set_session_handle(graph->session);
    proto.set_create_worker_session_called(true);
    proto.set_step_id(request.step_id);
    proto.set_store_errors_in_response_body(true);
    proto.set_request_id(static_cast<int64_t>(RandomId()));
    proto.mutable_exec_opts()->set_record_timeline(request.stats != nullptr);
    proto.mutable_exec_opts()->set_record_partition_graphs(
        request.device_graphs != nullptr);
    std::vector<int64_t> told = TakeFinished();
    proto.mutable_sluice_finished_step()->Assign(told.begin(), told.end());
    RpcChannel::Options options;
    options.cancellation = request.cancellation;
    channel_->Call(
        paths::kRunGraph, proto, options,
        [self = shared_from_this(), stats = request.stats,
         graphs = request.device_graphs, told = std::move(told),
         done = std::move(done)](absl::Status status,
                                 grpc::ByteBuffer buffer) mutable {
          // Without an answer nobody knows whether the peer has heard.
          if (!status.ok()) self->AddFinished(told);
          pb::RunGraphResponse response;
          status = self->Parse(std::move(status), &buffer, &response);
          if (status.ok() && response.status_code() != 0) {
            status = self->Locate(absl::Status(
                static_cast<absl::StatusCode>(response.status_code()),
                response.status_error_message()));
          }
          if (stats != nullptr && response.has_step_stats()) {
            StepStatsFromProto(response.step_stats(), stats);
          }
          if (graphs != nullptr && status.ok()) {
            self->TakeGraphs(response, graphs);
          }
          done(std::move(status));
        });
  }

  // Peers of ours hear of it with the next RunGraph, or a little later.
  void CleanupGraph(int64_t step_id, Done done) override {
    if (!TakesGroups()) {
      pb::CleanupGraphRequest request;
      request.set_step_id(step_id);
      Tidy(paths::kCleanupGraph, *ToByteBuffer(request), std::move(done));
      return;
    }
    AddFinished({&step_id, 1});
    done(absl::OkStatus());
  }

  // A cancelled call ends here at once, whenever the peer hears of it. Until
  // then a dequeue of the step may still take what comes after the step.
  void EndStep(int64_t step_id, Done done) override {
    pb::CleanupGraphRequest request;
    request.set_step_id(step_id);
    RpcChannel::Options options;
    options.deadline = TheClock().Now() + std::chrono::milliseconds(500);
    channel_->Call(paths::kCleanupGraph, request, options,
                   [self = shared_from_this(), step_id, done = std::move(done)](
                       const absl::Status& status, grpc::ByteBuffer) mutable {
                     if (status.ok()) {
                       done(status);
                       return;
                     }
                     // Told again, as long as it takes.
                     self->CleanupGraph(step_id, [](absl::Status) {});
                     done(Unavailable(self->NoAnswer()));
                   });
  }

  void CleanupAll(std::vector<std::string> containers, Done done) override {
    pb::CleanupAllRequest request;
    for (std::string& c : containers) request.add_container(std::move(c));
    RpcChannel::Options options;
    options.deadline = TheClock().Now() + kTidyTimeout;
    Call<pb::CleanupAllResponse>(paths::kCleanupAll, request, options,
                                 std::move(done));
  }

  bool TakesGroups() const override { return takes_groups_.load(); }
  std::string address() const override { return channel_->address(); }
  std::optional<SteadyTime> last_answer() const override {
    return channel_->last_answer();
  }
  bool has_lane() const override { return channel_->has_lane(); }

  void RecvTensors(int64_t step_id, std::span<const std::string> keys,
                   Cancellation* cancellation,
                   Rendezvous::GroupDone done) override {
    pb::RecvTensorRequest request;
    request.set_step_id(step_id);
    request.set_rendezvous_key(keys[0]);
    for (const std::string& key : keys.subspan(1)) {
      request.add_sluice_more_key(key);
    }
    request.set_request_id(static_cast<int64_t>(RandomId()));
    RpcChannel::Options options;
    options.cancellation = cancellation;
    channel_->Call(paths::kRecvTensor, request, options,
                   [self = shared_from_this(), done = std::move(done)](
                       absl::Status status, grpc::ByteBuffer buffer) mutable {
                     pb::RecvTensorResponse response;
                     status =
                         self->Parse(std::move(status), &buffer, &response);
                     if (!status.ok()) {
                       done(status);
                     } else {
                       done(ParcelsFromProto(std::move(response)));
                     }
                   });
  }

  void RecvTensor(int64_t step_id, const std::string& key,
                  Cancellation* cancellation,
                  Rendezvous::RecvDone done) override {
    pb::RecvTensorRequest request;
    request.set_step_id(step_id);
    request.set_rendezvous_key(key);
    request.set_request_id(static_cast<int64_t>(RandomId()));
    // Other implementations do not know the field and send all.
    request.set_sluice_chunk_bytes(
        static_cast<int64_t>(channel_->chunk_bytes()));
    auto landing = std::make_unique<TensorLanding>();
    RpcChannel::Options options;
    options.cancellation = cancellation;
    options.landing = landing.get();
    channel_->Call(paths::kRecvTensor, request, options,
                   [self = shared_from_this(), request, cancellation,
                    landing = std::move(landing), done = std::move(done)](
                       absl::Status status, grpc::ByteBuffer buffer) mutable {
                     if (!status.ok()) {
                       done(self->Explain(status));
                       return;
                     }
                     absl::StatusOr<ReceivedTensor> received =
                         landing->Take(&buffer);
                     if (!received.ok()) {
                       done(received.status());
                       return;
                     }
                     if (received->chunk) {
                       buffer.Clear();
                       self->RecvRest(request, *std::move(received),
                                      cancellation, std::move(done));
                       return;
                     }
                     if (received->require_ack)
                       self->Acknowledge(request.request_id());
                     done(Parcel{std::move(received->tensor), received->dead,
                                 received->send_start_micros});
                   });
  }

 private:
  // A graph on its way to the task. Answered by what comes first: the task, or
  // an error here.
  struct Registration {
    RegisterDone done;
    WaitTable::Token wait = 0;
    std::atomic<bool> answered{false};

    // False if it was answered before.
    bool Answer(absl::StatusOr<std::shared_ptr<RegisteredGraph>> graph) {
      if (answered.exchange(true)) return false;
      WaitTable::Global().Remove(wait);
      // A call that is kept somewhere must not keep what `done` holds.
      std::exchange(done, nullptr)(std::move(graph));
      return true;
    }
  };

  void SendGraph(const RegisterGraphRequest& request,
                 const std::shared_ptr<Registration>& registration) {
    pb::RegisterGraphRequest proto;
    proto.set_session_handle(request.session_handle);
    proto.set_create_worker_session_called(request.has_session);
    ExportOptions options;
    options.assigned_devices = true;
    ExportGraphDef(*request.graph, options, proto.mutable_graph_def());
    registration->wait =
        NameWait("the registration of a graph", request.session_handle);
    RpcChannel::Options call;
    call.deadline = request.deadline;
    // Asked now: the session may be closed before the answer comes.
    channel_->Call(paths::kRegisterGraph, proto, call,
                   [self = shared_from_this(), registration,
                    session = request.session_handle,
                    open = SessionOpen(request.session_handle)](
                       absl::Status status, grpc::ByteBuffer buffer) mutable {
                     pb::RegisterGraphResponse response;
                     status =
                         self->Parse(std::move(status), &buffer, &response);
                     if (!status.ok()) {
                       registration->Answer(std::move(status));
                       return;
                     }
                     auto graph = std::make_shared<RemoteGraph>();
                     graph->channel = self->channel_;
                     graph->session_open = std::move(open);
                     graph->handle = response.graph_handle();
                     graph->session = session;
                     registration->Answer(std::move(graph));
                   });
  }

  // A graph with ops that this process does not know must not fail the step
  // that it only tells about.
  void TakeGraphs(const pb::RunGraphResponse& response,
                  std::vector<std::shared_ptr<const Graph>>* graphs) const {
    ImportOptions options;
    options.allow_internal = true;
    options.validate_colocation = false;
    for (const pb::GraphDef& def : response.partition_graph()) {
      auto graph = std::make_shared<Graph>();
      const absl::Status read = ImportGraphDef(def, options, graph.get());
      if (read.ok()) {
        graphs->push_back(std::move(graph));
      } else {
        SLUICE_LOG(WARNING) << "A partition graph of " << task_
                            << " is left out: " << read.message();
      }
    }
  }

  // So that the task may forget the session when this process is gone.
  void HoldSession(const std::string& handle) {
    auto lease = std::make_unique<Lease>(channel_, handle);
    // One of an earlier life of the peer ends after the lock: that is a call.
    MutexLock lock(mu_);
    leases_[handle].swap(lease);
  }

  // Until it is removed, the table says that a session waits for this task.
  WaitTable::Token NameWait(const char* what, const std::string& session) {
    return WaitTable::Global().Add({StrCat(what, " on ", task_),
                                    StrCat("session ", session), 0,
                                    TheClock().Now(), task_});
  }

  struct Probe {
    std::shared_ptr<RemoteWorker> worker;
    bool wait;
    Cancellation* cancellation;
    StatusDone done;
    WaitTable::Token token = 0;
    std::string why;

    void Waiting(const std::string& reason) {
      if (reason == why) return;
      if (token != 0) WaitTable::Global().Remove(token);
      why = reason;
      token = WaitTable::Global().Add(
          {reason, worker->task_, 0, TheClock().Now(), worker->task_});
    }
    void Finish(absl::StatusOr<std::vector<DeviceInfo>> result) {
      if (token != 0) WaitTable::Global().Remove(token);
      done(std::move(result));
    }
  };

  // Asks until there is an answer that fits, if the caller wants to wait.
  void Ask(std::shared_ptr<Probe> probe) {
    RpcChannel::Options options;
    options.deadline = TheClock().Now() + kProbeTimeout;
    channel_->Call(
        paths::kGetStatus, pb::GetStatusRequest(), options,
        [probe](absl::Status status, grpc::ByteBuffer buffer) {
          RemoteWorker& self = *probe->worker;
          pb::GetStatusResponse response;
          status = self.Parse(std::move(status), &buffer, &response);
          std::string why;
          if (status.ok()) {
            auto devices = self.Devices(response);
            if (devices.ok()) {
              probe->Finish(std::move(devices));
              return;
            }
            status = devices.status();
            why = std::string(status.message());
          } else {
            why = WhyUnreachable(self.channel_->address(), status);
          }
          const bool over = !probe->wait || (probe->cancellation != nullptr &&
                                             probe->cancellation->cancelled());
          if (over) {
            probe->Finish(Unavailable(self.task_, ": ", why));
            return;
          }
          probe->Waiting(why);
          CallLater(kProbePause, [probe] { probe->worker->Ask(probe); });
        });
  }

  void RecvRest(const pb::RecvTensorRequest& request, ReceivedTensor first,
                Cancellation* cancellation, Rendezvous::RecvDone done) {
    RecvChunks(channel_, request, std::move(first.tensor), *first.chunk,
               cancellation,
               [self = shared_from_this(), sent = first.send_start_micros,
                done = std::move(done)](absl::StatusOr<Tensor> tensor) mutable {
                 if (tensor.ok()) {
                   done(Parcel{*std::move(tensor), false, sent});
                 } else {
                   done(self->Explain(tensor.status()));
                 }
               });
  }

  template <typename... Args>
  absl::Status OtherCluster(const Args&... why) const {
    return FailedPrecondition("the server at ", channel_->address(),
                              " belongs to another cluster: ", why...);
  }

  // The peer must know the asker, to take tensors from it: hosts may have
  // several names, but not ports.
  absl::Status CheckCluster(const pb::ClusterDef& cluster) const {
    const std::string port = Port(asker_->address);
    for (const pb::JobDef& job : cluster.job()) {
      for (const auto& [index, address] : job.tasks()) {
        if (asker_->task !=
            StrCat("/job:", job.name(), "/replica:0/task:", index)) {
          continue;
        }
        if (Port(address) == port || Port(address) == "0" || port == "0") {
          return absl::OkStatus();
        }
        return OtherCluster("there ", asker_->task, " is at ", address,
                            ", not at ", asker_->address);
      }
    }
    return OtherCluster("it knows of no ", asker_->task);
  }
  static std::string Port(const std::string& address) {
    return address.substr(address.rfind(':') + 1);
  }

  absl::StatusOr<std::vector<DeviceInfo>> Devices(
      const pb::GetStatusResponse& response) {
    std::vector<DeviceInfo> devices;
    for (const pb::DeviceAttributes& proto : response.device_attributes()) {
      absl::StatusOr<DeviceInfo> device = DeviceFromProto(proto);
      if (!device.ok() || (asker_ && device->name.TaskName() != task_)) {
        return OtherCluster("it has ", proto.name());
      }
      // 1.15 also lists devices of a compiler that we do not use.
      if (device->name.type == "CPU" || device->name.type == "GPU") {
        devices.push_back(*std::move(device));
      }
    }
    takes_groups_.store(response.sluice_groups());
    if (asker_ && response.has_sluice_cluster()) {
      SLUICE_RETURN_IF_ERROR(CheckCluster(response.sluice_cluster()));
    }
    return devices;
  }

  // Says which task a broken connection leads to, and which gives no answer.
  absl::Status Explain(const absl::Status& status) const {
    if (IsDerived(status)) return status;
    if (absl::IsDeadlineExceeded(status) &&
        status.message() == kGrpcsOwnTimeout) {
      return DeadlineExceeded("Operation timed out. ", NoAnswer());
    }
    if (WasAnswered(status)) return AsGiven(status);
    if (!absl::IsUnavailable(status)) return Locate(status);
    std::string why(status.message());
    // gRPC's words for a peer that is silent.
    if (why.find("watchdog timeout") != std::string::npos) {
      why = WhyUnreachable(channel_->address(), status);
    }
    return WithMessage(status, StrCat("Lost connection to ", task_, " at ",
                                      channel_->address(), ": ", why));
  }

  std::string NoAnswer() const {
    return StrCat("No answer from ", task_, " at ", channel_->address(), ".");
  }

  // Says where a task is that was restarted.
  absl::Status Locate(const absl::Status& status) const {
    if (!MeansRestart(status)) return status;
    return WithMessage(status, StrCat(status.message(), " (", task_, " is at ",
                                      channel_->address(), ")"));
  }

  absl::Status Parse(absl::Status status, grpc::ByteBuffer* buffer,
                     google::protobuf::MessageLite* response) const {
    if (!status.ok()) return Explain(status);
    if (FromByteBuffer(buffer, response)) return absl::OkStatus();
    return Internal("The answer of ", task_, " at ", channel_->address(),
                    " could not be read");
  }

  template <typename Response>
  void Call(const char* path, const google::protobuf::MessageLite& request,
            const RpcChannel::Options& options, Done done) {
    channel_->Call(path, request, options,
                   [self = shared_from_this(), done = std::move(done)](
                       absl::Status status, grpc::ByteBuffer buffer) mutable {
                     Response response;
                     done(self->Parse(std::move(status), &buffer, &response));
                   });
  }

  static absl::StatusOr<std::vector<Parcel>> ParcelsFromProto(
      pb::RecvTensorResponse response) {
    std::vector<Parcel> parcels;
    const auto add = [&](pb::RecvTensorResponse* one) -> absl::Status {
      Parcel& parcel = parcels.emplace_back();
      parcel.sent_micros = response.send_start_micros();
      parcel.dead = one->is_dead();
      if (parcel.dead) return absl::OkStatus();
      SLUICE_ASSIGN_OR_RETURN(
          parcel.tensor, TensorFromProto(std::move(*one->mutable_tensor())));
      return absl::OkStatus();
    };
    SLUICE_RETURN_IF_ERROR(add(&response));
    for (pb::RecvTensorResponse& more : *response.mutable_sluice_more()) {
      SLUICE_RETURN_IF_ERROR(add(&more));
    }
    return parcels;
  }

  std::shared_ptr<std::atomic<bool>> SessionOpen(const std::string& handle) {
    MutexLock lock(mu_);
    auto& open = sessions_[handle];
    if (open == nullptr) open = std::make_shared<std::atomic<bool>>(true);
    return open;
  }

  std::vector<int64_t> TakeFinished() {
    MutexLock lock(mu_);
    return std::exchange(finished_, {});
  }

  void AddFinished(std::span<const int64_t> steps) {
    if (steps.empty()) return;
    bool wake = false;
    {
      MutexLock lock(mu_);
      finished_.insert(finished_.end(), steps.begin(), steps.end());
      std::swap(wake, timer_off_);
    }
    if (wake) {
      CallLater(kTidyPause,
                [self = shared_from_this()] { self->TellFinished(); });
    }
  }

  // For the steps that no RunGraph has told of since.
  void TellFinished() {
    pb::CleanupGraphRequest request;
    {
      MutexLock lock(mu_);
      timer_off_ = true;
      if (finished_.empty()) return;
      request.set_step_id(finished_[0]);
      request.mutable_sluice_more_step_id()->Assign(finished_.begin() + 1,
                                                    finished_.end());
      finished_.clear();
    }
    Tidy(paths::kCleanupGraph, *ToByteBuffer(request), [](absl::Status) {});
  }

  // Tells the peer what it may forget, until it has heard. `done` gets the
  // outcome of the first try: nobody waits for a peer that is gone.
  void Tidy(const char* path, const grpc::ByteBuffer& request, Done done,
            int tries = kTidyTries) {
    RpcChannel::Options options;
    options.deadline = TheClock().Now() + kTidyTimeout;
    channel_->Call(
        path, request, options,
        [self = shared_from_this(), path, request, done = std::move(done),
         tries](absl::Status status, const grpc::ByteBuffer&) mutable {
          const bool unheard =
              absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
          if (unheard && tries > 1) self->TidyLater(path, request, tries - 1);
          done(self->Explain(status));
        });
  }
  void TidyLater(const char* path, const grpc::ByteBuffer& request, int tries) {
    CallLater(kTidyRetryPause, [weak = weak_from_this(), path, request, tries] {
      if (auto self = weak.lock()) {
        self->Tidy(
            path, request, [](absl::Status) {}, tries);
      }
    });
  }

  void Acknowledge(int64_t request_id) {
    pb::MarkRecvFinishedRequest request;
    request.set_request_id(request_id);
    channel_->Call(paths::kMarkRecvFinished, request, {},
                   [](absl::Status, grpc::ByteBuffer) {});
  }

  const std::string task_;
  const std::shared_ptr<RpcChannel> channel_;
  const std::optional<TaskAddress> asker_;
  std::atomic<bool> takes_groups_{false};
  Mutex mu_;
  // Whether they are open, by handle; those that have graphs there.
  std::map<std::string, std::shared_ptr<std::atomic<bool>>> sessions_
      SLUICE_GUARDED_BY(mu_);
  // Steps that are over, which the peer was not told yet.
  std::vector<int64_t> finished_ SLUICE_GUARDED_BY(mu_);
  bool timer_off_ SLUICE_GUARDED_BY(mu_) = true;
  // Of the sessions opened there.
  absl::flat_hash_map<std::string, std::unique_ptr<Lease>> leases_
      SLUICE_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::shared_ptr<PeerWorker>> MakeRemoteWorker(
    const TaskAddress& peer, const TaskAddress& asker,
    const ChannelMaker& connect) {
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<RpcChannel> channel,
                          connect(peer.address));
  return std::make_shared<RemoteWorker>(peer.task, std::move(channel), asker);
}

absl::StatusOr<std::shared_ptr<PeerWorker>> MakeRenamedWorker(
    const TaskAddress& peer, const ChannelMaker& connect) {
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<RpcChannel> channel,
                          connect(peer.address));
  return std::make_shared<RemoteWorker>(peer.task, std::move(channel),
                                        std::nullopt);
}

}  // namespace sluice
