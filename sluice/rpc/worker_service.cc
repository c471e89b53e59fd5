#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "sluice/base/hash.h"
#include "sluice/base/logging.h"
#include "sluice/base/random.h"
#include "sluice/base/status.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/collective.pb.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/answer.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/config.h"
#include "sluice/rpc/fused_nodes.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/recent_ids.h"
#include "sluice/rpc/request_tensors.h"
#include "sluice/rpc/services.h"
#include "sluice/rpc/tensor_sender.h"
#include "sluice/rpc/utf8.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

using CallPtr = std::shared_ptr<ServerCall>;

// A graph registered by a master elsewhere, with the keys of its client edges.
struct ServedGraph {
  std::shared_ptr<RegisteredGraph> graph;
  std::shared_ptr<SessionUse> use;  // Null in the session that all share.
  std::string session;
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
};

// Who opened a session, if it said so; else the incarnation is 0.
struct MasterLife {
  std::string task;
  int64_t incarnation;
};

// Why the steps of a session end with it.
absl::Status Closed() { return Derived(Cancelled("The session was closed")); }

class WorkerService : public std::enable_shared_from_this<WorkerService> {
 public:
  WorkerService(std::shared_ptr<Worker> worker, const pb::ClusterDef& cluster,
                std::shared_ptr<TaskActivity> activity, const Limits& limits)
      : worker_(std::move(worker)),
        cluster_(cluster),
        activity_(std::move(activity)),
        limits_(limits),
        sender_(std::make_shared<TensorSender>(worker_, activity_->transfers)) {
    worker_->set_step_over([transfers = activity_->transfers](int64_t step_id) {
      transfers->Forget(step_id);
    });
  }

  bool Handle(CallPtr call) {
    auto it = Table().find(paths::Canonical(call->path()));
    if (it == Table().end()) return false;
    (this->*it->second)(std::move(call));
    return true;
  }

 private:
  using Method = void (WorkerService::*)(CallPtr);

  static const absl::flat_hash_map<std::string, Method>& Table() {
    static const auto* table = new absl::flat_hash_map<std::string, Method>{
        {paths::kGetStatus, &WorkerService::GetStatus},
        {paths::kCreateWorkerSession, &WorkerService::CreateWorkerSession},
        {paths::kDeleteWorkerSession, &WorkerService::DeleteWorkerSession},
        {paths::kRegisterGraph, &WorkerService::RegisterGraph},
        {paths::kDeregisterGraph, &WorkerService::DeregisterGraph},
        {paths::kRunGraph, &WorkerService::RunGraph},
        {paths::kCleanupGraph, &WorkerService::CleanupGraph},
        {paths::kCleanupAll, &WorkerService::CleanupAll},
        {paths::kRecvTensor, &WorkerService::RecvTensor},
        {paths::kLogging,
         &WorkerService::Ignore<pb::LoggingRequest, pb::LoggingResponse>},
        {paths::kTracing, &WorkerService::Tracing},
        {paths::kMarkRecvFinished,
         &WorkerService::Ignore<pb::MarkRecvFinishedRequest,
                                pb::MarkRecvFinishedResponse>},
        {paths::kGetStepSequence, &WorkerService::GetStepSequence},
    };
    return *table;
  }

  // False, and the call is answered, if the request cannot be read.
  static bool Parse(const CallPtr& call,
                    google::protobuf::MessageLite* request) {
    if (FromByteBuffer(&call->request(), request)) return true;
    call->Fail(InvalidArgument("The bytes sent to ", call->path(),
                               " are no such request"));
    return false;
  }

  // What needs nothing but an answer.
  template <typename Request, typename Response>
  void Ignore(CallPtr call) {
    Request request;
    if (Parse(call, &request)) Answer(*call, Response());
  }

  // As TensorFlow's worker answers it.
  void Tracing(CallPtr call) {
    pb::TracingRequest request;
    if (Parse(call, &request)) call->Fail(Unimplemented("Tracing"));
  }

  void GetStatus(CallPtr call) {
    pb::GetStatusRequest request;
    if (!Parse(call, &request)) return;
    pb::GetStatusResponse response;
    for (const DeviceInfo& device : worker_->devices()) {
      DeviceToProto(device, response.add_device_attributes());
    }
    *response.mutable_sluice_cluster() = cluster_;
    response.set_sluice_groups(true);
    response.set_sluice_lane(activity_->lane);
    Answer(*call, response);
  }

  void CreateWorkerSession(CallPtr call) {
    pb::CreateWorkerSessionRequest request;
    if (!Parse(call, &request)) return;
    const std::string handle = request.session_handle();
    if (handle.empty()) {  // The session that all share is no one's.
      call->Fail(InvalidArgument("Session must be non-empty."));
      return;
    }
    const MasterLife life{request.master_task(), request.master_incarnation()};
    ForgetFormerLives(life);
    CreateSessionRequest session{request.session_handle(),
                                 request.isolate_session_state()};
    session.max_sessions = limits_.sessions;
    const pb::ServerDef& server = request.server_def();
    if (server.cluster().job_size() > 0) {
      session.task = StrCat("/job:", server.job_name(),
                            "/replica:0/task:", server.task_index());
      session.cluster = TasksFromProto(server.cluster());
    }
    worker_->CreateSession(
        std::move(session), [self = shared_from_this(), call, handle,
                             life](const absl::Status& status) {
          if (status.ok()) self->Opened(handle, life, call->peer());
          Answer(*call, status, pb::CreateWorkerSessionResponse());
        });
  }

  // A master that tries once more must not lose who holds the session.
  void Opened(const std::string& handle, const MasterLife& life,
              std::string master) {
    if (life.incarnation != 0) {
      MutexLock lock(mu_);
      masters_[handle] = life;
    }
    if (activity_->masters.Find(handle) != nullptr) return;
    activity_->masters.Add(
        handle, std::move(master), [weak = weak_from_this(), handle] {
          if (auto service = weak.lock()) {
            service->DeleteSession(handle, [](absl::Status) {});
          }
        });
  }

  void DeleteWorkerSession(CallPtr call) {
    pb::DeleteWorkerSessionRequest request;
    if (!Parse(call, &request)) return;
    if (request.session_handle().empty()) {
      call->Fail(InvalidArgument("Session must be non-empty."));
      return;
    }
    DeleteSession(request.session_handle(), [call](absl::Status status) {
      Answer(*call, status, pb::DeleteWorkerSessionResponse());
    });
  }

  void DeleteSession(const std::string& handle, WorkerInterface::Done done) {
    activity_->masters.Remove(handle);
    // First the session, so that no graph is registered in it any more.
    worker_->DeleteSession(handle, [](absl::Status) {});
    std::vector<std::shared_ptr<ServedGraph>> gone;
    std::vector<std::shared_ptr<Running>> unfinished;
    {
      MutexLock lock(mu_);
      masters_.erase(handle);
      absl::erase_if(partial_steps_, [&](const auto& entry) {
        if (entry.second->run->graph->session != handle) return false;
        unfinished.push_back(entry.second->run);
        return true;
      });
      for (const auto& [step_id, run] : running_) {
        if (run->graph->session == handle) unfinished.push_back(run);
      }
      absl::erase_if(graphs_, [&](const auto& entry) {
        if (entry.second->session != handle) return false;
        gone.push_back(entry.second);
        return true;
      });
    }
    for (const auto& run : unfinished) run->cancellation.Cancel(Closed());
    gone.clear();
    done(absl::OkStatus());
  }

  // A master that was killed cannot close its sessions; its next life shows
  // that they are over.
  void ForgetFormerLives(const MasterLife& life) {
    if (life.incarnation == 0) return;
    std::vector<std::string> gone;
    {
      MutexLock lock(mu_);
      for (const auto& [handle, master] : masters_) {
        if (master.task == life.task && master.incarnation != life.incarnation)
          gone.push_back(handle);
      }
    }
    for (const std::string& handle : gone) {
      SLUICE_LOG(INFO) << "Dropping session " << handle << " of " << life.task
                       << ", which has restarted";
      DeleteSession(handle, [](absl::Status) {});
    }
  }

  // Importing and compiling a large graph takes a while.
  void RegisterGraph(CallPtr call) {
    RunBlockingFor(call, [self = shared_from_this(), call] {
      pb::RegisterGraphRequest proto;
      if (Parse(call, &proto)) self->Register(proto, call);
    });
  }

  void Register(pb::RegisterGraphRequest& proto, const CallPtr& call) {
    auto graph = std::make_shared<Graph>();
    ImportOptions options;
    options.allow_internal = true;
    options.validate_colocation = false;
    absl::Status imported = TakeApart(proto.mutable_graph_def());
    if (imported.ok()) {
      imported = CheckGraphSize(proto.graph_def(), /*known=*/0, limits_);
    }
    if (imported.ok()) {
      imported = ImportGraphDef(proto.graph_def(), options, graph.get());
    }
    if (!imported.ok()) {
      call->Fail(imported);
      return;
    }
    for (int id = 0; id < graph->num_nodes(); ++id) {
      graph->node(id)->set_assigned_device(graph->node(id)->device());
    }
    RegisterGraphRequest request;
    request.session_handle = proto.session_handle();
    request.has_session = proto.create_worker_session_called();
    auto served = std::make_shared<ServedGraph>();
    served->session = request.has_session ? request.session_handle : "";
    served->use = activity_->masters.Find(served->session);
    if (served->use != nullptr) served->use->Touch();
    Worker::ListClientEdges(*graph, &served->feeds, &served->fetches);
    request.feeds = served->feeds;
    request.fetches = served->fetches;
    request.graph = std::move(graph);
    worker_->RegisterGraph(
        std::move(request),
        [self = shared_from_this(), served,
         call](absl::StatusOr<std::shared_ptr<RegisteredGraph>> graph) {
          pb::RegisterGraphResponse response;
          if (graph.ok()) {
            served->graph = *graph;
            // Random, so that no handle of a former life means another graph.
            response.set_graph_handle(absl::StrFormat("%016x", RandomId()));
          }
          absl::Status status = graph.status();
          {
            MutexLock lock(self->mu_);
            if (status.ok() && !self->worker_->HasSession(served->session)) {
              status = self->worker_->NoSession(served->session);
            }
            if (status.ok()) self->graphs_[response.graph_handle()] = served;
          }
          Answer(*call, status, response);
        });
  }

  void DeregisterGraph(CallPtr call) {
    pb::DeregisterGraphRequest request;
    if (!Parse(call, &request)) return;
    std::shared_ptr<ServedGraph> found;
    {
      MutexLock lock(mu_);
      found = FindGraph(request);
      if (found != nullptr) graphs_.erase(request.graph_handle());
    }
    Answer(*call,
           found != nullptr
               ? absl::OkStatus()
               : Aborted("Graph handle is not found: ", request.graph_handle(),
                         ". Possibly, this worker just restarted."),
           pb::DeregisterGraphResponse());
  }

  // The graph that a request names, if it is of the request's session.
  template <typename Request>
  std::shared_ptr<ServedGraph> FindGraph(const Request& request) const
      SLUICE_REQUIRES(mu_) {
    const auto it = graphs_.find(request.graph_handle());
    if (it == graphs_.end()) return nullptr;
    const bool own_session = request.create_worker_session_called();
    const std::string& session = it->second->session;
    return session == (own_session ? request.session_handle() : "") ? it->second
                                                                    : nullptr;
  }

  // A step in progress for a master elsewhere.
  struct Running {
    CallPtr call;
    std::shared_ptr<ServedGraph> graph;
    Cancellation cancellation;
    StepStatsCollector stats;
    bool traced = false;
    bool wants_graphs = false;
    std::vector<std::shared_ptr<const Graph>> graphs;
    bool errors_in_body = false;
    std::vector<Tensor> feeds;
    std::vector<Tensor> fetches;
    std::vector<std::pair<std::string, int>> wanted;  // Key, fetch index.
    std::atomic<bool> abandoned{false};  // The master wants no answer.
  };

  static absl::StatusOr<int> EdgeIndex(const std::string& key,
                                       const std::vector<std::string>& names) {
    SLUICE_ASSIGN_OR_RETURN(RendezvousKey parsed, RendezvousKey::Parse(key));
    const auto it = std::ranges::find(names, parsed.edge);
    if (it == names.end()) {
      return InvalidArgument("The graph has no client edge ", parsed.edge);
    }
    return static_cast<int>(it - names.begin());
  }

  absl::Status Prepare(pb::RunGraphRequest* request, Running* run) {
    {
      MutexLock lock(mu_);
      run->graph = FindGraph(*request);
    }
    if (run->graph == nullptr) {
      if (request->create_worker_session_called() &&
          !worker_->HasSession(request->session_handle())) {
        return worker_->NoSession(request->session_handle());
      }
      return Aborted("Graph handle is not found: ", request->graph_handle(),
                     ". Possibly, this worker (\"", worker_->task().ToString(),
                     "\") just restarted.");
    }
    if (request->is_partial() &&
        !(run->graph->feeds.empty() && run->graph->fetches.empty())) {
      return Unimplemented(
          "The client's feeds and fetches of a partial run enter and leave on "
          "its master's own task, not here");
    }
    if (!ids_.Add(request->request_id())) {
      return Aborted("The same RunGraph request was received twice. Request ",
                     request->request_id(), " of step ", request->step_id(),
                     " and graph ", request->graph_handle());
    }
    run->feeds.resize(run->graph->feeds.size());
    run->fetches.resize(run->graph->fetches.size());
    RequestTensors tensors(limits_);
    for (pb::NamedTensorProto& feed : *request->mutable_send()) {
      SLUICE_ASSIGN_OR_RETURN(int at,
                              EdgeIndex(feed.name(), run->graph->feeds));
      if (run->feeds[at].initialized()) {
        return InvalidArgument(feed.name(), " was sent twice");
      }
      SLUICE_ASSIGN_OR_RETURN(run->feeds[at],
                              tensors.Read(std::move(*feed.mutable_tensor())));
    }
    for (size_t i = 0; i < run->feeds.size(); ++i) {
      if (!run->feeds[i].initialized()) {
        return InvalidArgument("No value was sent for ", run->graph->feeds[i]);
      }
    }
    for (const std::string& key : request->recv_key()) {
      SLUICE_ASSIGN_OR_RETURN(int at, EdgeIndex(key, run->graph->fetches));
      run->wanted.emplace_back(key, at);
    }
    return absl::OkStatus();
  }

  void RunGraph(CallPtr call) {
    pb::RunGraphRequest request;
    if (!Parse(call, &request)) return;
    for (int64_t step : request.sluice_finished_step()) Forget(step);
    auto run = std::make_shared<Running>();
    run->call = call;
    run->errors_in_body = request.store_errors_in_response_body();
    run->traced = request.exec_opts().record_timeline();
    run->wants_graphs = request.exec_opts().record_partition_graphs();
    if (absl::Status status = Prepare(&request, run.get()); !status.ok()) {
      Finish(*run, status);
      return;
    }
    const int64_t step_id = request.step_id();
    if (request.is_partial()) {
      RunPartially(run, step_id, request.is_last_partial_run());
      return;
    }
    CancelWith(*call, step_id, run);
    RunGraphRequest direct;
    direct.graph = run->graph->graph.get();
    direct.step_id = step_id;
    direct.feeds = run->feeds;
    direct.fetches = run->fetches;
    direct.cancellation = &run->cancellation;
    direct.stats = run->traced ? &run->stats : nullptr;
    direct.device_graphs = run->wants_graphs ? &run->graphs : nullptr;
    Begin(step_id, run);
    worker_->RunGraph(direct, [self = shared_from_this(), run,
                               step_id](const absl::Status& status) {
      self->End(step_id, *run);
      Finish(*run, status);
    });
  }

  // Ends the step that `run` has started when the call is cancelled.
  void CancelWith(ServerCall& call, int64_t step_id,
                  std::shared_ptr<Running> run) {
    call.OnCancel([run = std::move(run), step_id, worker = worker_] {
      SLUICE_LOG(INFO) << "Cancellation requested for RunGraph.";
      const absl::Status why =
          Derived(Cancelled("RunGraph was cancelled by its master"));
      run->abandoned.store(true);
      run->cancellation.Cancel(why);
      worker->AbortStep(step_id, why);
    });
  }

  void Begin(int64_t step_id, const std::shared_ptr<Running>& run) {
    if (run->graph->use != nullptr) run->graph->use->BeginStep(step_id);
    {
      MutexLock lock(mu_);
      running_[step_id] = run;
    }
    // Whoever closed it meanwhile may not have seen the step.
    if (!worker_->HasSession(run->graph->session)) {
      run->cancellation.Cancel(Closed());
    }
  }
  void End(int64_t step_id, const Running& run) {
    if (run.graph->use != nullptr) run.graph->use->EndStep(step_id);
    {
      MutexLock lock(mu_);
      running_.erase(step_id);
    }
    // A master that is gone sends no CleanupGraph.
    if (run.abandoned.load()) {
      worker_->CleanupGraph(step_id, [](absl::Status) {});
    }
  }

  // A part of a partial run without feeds and fetches: the first call starts
  // it, the last one waits for its end.
  struct PartialStep {
    std::shared_ptr<Running> run;
    Mutex mu;
    bool ended SLUICE_GUARDED_BY(mu) = false;
    absl::Status status SLUICE_GUARDED_BY(mu);
    bool last_came SLUICE_GUARDED_BY(mu) = false;
    std::shared_ptr<Running> last SLUICE_GUARDED_BY(mu);  // While it waits.
  };

  // What the call `run` is of; made by the first one.
  absl::StatusOr<std::shared_ptr<PartialStep>> FindPartialStep(
      const std::shared_ptr<Running>& run, int64_t step_id) {
    MutexLock lock(mu_);
    // Whoever closes the session from now on finds the step.
    if (!worker_->HasSession(run->graph->session)) {
      return worker_->NoSession(run->graph->session);
    }
    std::shared_ptr<PartialStep>& step = partial_steps_[step_id];
    if (step == nullptr) {
      step = std::make_shared<PartialStep>();
      step->run = run;
    } else if (step->run->graph != run->graph) {
      return InvalidArgument("Step ", step_id,
                             " runs another graph than the call names");
    }
    return step;
  }

  void EndPartialStep(int64_t step_id, const PartialStep* step) {
    MutexLock lock(mu_);
    const auto it = partial_steps_.find(step_id);
    if (it != partial_steps_.end() && it->second.get() == step) {
      partial_steps_.erase(it);
    }
  }

  void RunPartially(const std::shared_ptr<Running>& run, int64_t step_id,
                    bool last) {
    const auto found = FindPartialStep(run, step_id);
    if (!found.ok()) {
      Finish(*run, found.status());
      return;
    }
    const std::shared_ptr<PartialStep>& step = *found;
    if (step->run == run) {
      RunGraphRequest direct;
      direct.graph = run->graph->graph.get();
      direct.step_id = step_id;
      direct.cancellation = &run->cancellation;
      worker_->RunGraph(direct, [self = shared_from_this(), run, step,
                                 step_id](absl::Status status) {
        std::shared_ptr<Running> waiting;
        {
          MutexLock lock(step->mu);
          step->ended = true;
          step->status = status;
          waiting = std::move(step->last);
        }
        if (waiting == nullptr) return;
        self->EndPartialStep(step_id, step.get());
        Finish(*waiting, status);
      });
    }
    if (last) CancelWith(*run->call, step_id, step->run);
    absl::Status status;
    bool over = false;
    {
      MutexLock lock(step->mu);
      if (last && step->last_came) {
        status = InvalidArgument("Step ", step_id, " has had its last call");
      } else if (last) {
        step->last_came = true;
        over = step->ended;
        if (!over) {
          step->last = run;
          return;
        }
        status = step->status;
      }
    }
    if (over) EndPartialStep(step_id, step.get());
    Finish(*run, status);
  }

  static void Finish(Running& run, const absl::Status& status) {
    if (!status.ok() && !run.errors_in_body) {
      run.call->Fail(status);
      return;
    }
    AnswerInMemory(*run.call, [&] { return Encode(run, status); });
  }

  static absl::StatusOr<grpc::ByteBuffer> Encode(Running& run,
                                                 const absl::Status& status) {
    pb::RunGraphResponse response;
    if (!status.ok()) {
      response.set_status_code(static_cast<pb::error::Code>(status.code()));
      response.set_status_error_message(Utf8(ToStd(status.message())));
    } else {
      for (const auto& [key, at] : run.wanted) {
        pb::NamedTensorProto* recv = response.add_recv();
        recv->set_name(key);
        TensorToProto(run.fetches[at], recv->mutable_tensor());
      }
    }
    for (const std::shared_ptr<const Graph>& graph : run.graphs) {
      ExportOptions options;
      options.assigned_devices = true;
      ExportGraphDef(*graph, options, response.add_partition_graph());
    }
    if (run.traced) {
      StepStatsToProto(run.stats.Take(), response.mutable_step_stats());
    }
    return ToByteBuffer(response);
  }

  void CleanupGraph(CallPtr call) {
    pb::CleanupGraphRequest request;
    if (!Parse(call, &request)) return;
    for (int64_t step : request.sluice_more_step_id()) Forget(step);
    Forget(request.step_id());
    Answer(*call, absl::OkStatus(), pb::CleanupGraphResponse());
  }

  // The step is over for its master. If it still runs here, its cancellation is
  // on the way; it must not take anything from the steps that come after.
  void Forget(int64_t step_id) {
    std::shared_ptr<Running> late;
    {
      MutexLock lock(mu_);
      const auto it = running_.find(step_id);
      if (it != running_.end()) late = it->second;
      const auto partial = partial_steps_.find(step_id);
      if (partial != partial_steps_.end()) {
        late = partial->second->run;
        partial_steps_.erase(partial);
      }
    }
    if (late != nullptr) {
      late->cancellation.Cancel(Derived(Cancelled("The step is over")));
    }
    worker_->CleanupGraph(step_id, [](absl::Status) {});
  }

  void CleanupAll(CallPtr call) {
    pb::CleanupAllRequest request;
    if (!Parse(call, &request)) return;
    worker_->CleanupAll(
        {request.container().begin(), request.container().end()},
        [call](absl::Status status) {
          Answer(*call, status, pb::CleanupAllResponse());
        });
  }

  // Step ids that the members of a collective agree on: every one asks the same
  // task, and gets the same id for the same graph.
  void GetStepSequence(CallPtr call) {
    pb::GetStepSequenceRequest request;
    if (!Parse(call, &request)) return;
    pb::GetStepSequenceResponse response;
    for (const int64_t key : request.graph_key()) {
      pb::StepSequence* sequence = response.add_step_sequence();
      sequence->set_graph_key(key);
      // The top bits stay free, as those of all step ids.
      sequence->set_next_step_id(
          static_cast<int64_t>(Hash64(StrCat(sequence_seed_, ";", key)) >> 8));
    }
    Answer(*call, response);
  }

  void RecvTensor(CallPtr call) {
    pb::RecvTensorRequest request;
    if (Parse(call, &request)) sender_->Send(std::move(call), request);
  }

  const std::shared_ptr<Worker> worker_;
  const pb::ClusterDef cluster_;
  const std::shared_ptr<TaskActivity> activity_;
  const Limits limits_;
  const uint64_t sequence_seed_ = RandomId();
  const std::shared_ptr<TensorSender> sender_;
  RecentIds ids_;
  Mutex mu_;
  absl::flat_hash_map<std::string, std::shared_ptr<ServedGraph>> graphs_
      SLUICE_GUARDED_BY(mu_);
  // Steps of other masters, by id.
  absl::flat_hash_map<int64_t, std::shared_ptr<Running>> running_
      SLUICE_GUARDED_BY(mu_);
  absl::flat_hash_map<int64_t, std::shared_ptr<PartialStep>> partial_steps_
      SLUICE_GUARDED_BY(mu_);
  std::map<std::string, MasterLife> masters_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace

ServiceHandler MakeWorkerService(std::shared_ptr<Worker> worker,
                                 const pb::ClusterDef& cluster,
                                 std::shared_ptr<TaskActivity> activity,
                                 const Limits& limits) {
  auto service = std::make_shared<WorkerService>(std::move(worker), cluster,
                                                 std::move(activity), limits);
  return [service](CallPtr call) { return service->Handle(std::move(call)); };
}

}  // namespace sluice
