#include <atomic>

#include "absl/container/flat_hash_map.h"
#include "sluice/base/blocking_pool.h"
#include "sluice/base/hash.h"
#include "sluice/base/logging.h"
#include "sluice/base/random.h"
#include "sluice/base/status.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/collective.pb.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/config.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/recent_ids.h"
#include "sluice/rpc/services.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

using CallPtr = std::shared_ptr<ServerCall>;

// Answers with `response`, or with the error.
void Answer(const CallPtr& call, const absl::Status& status,
            const google::protobuf::MessageLite& response) {
  if (status.ok()) {
    call->Reply(ToByteBuffer(response));
  } else {
    call->Fail(status);
  }
}

// A graph registered by a master elsewhere, with the keys of its client edges.
struct ServedGraph {
  std::shared_ptr<RegisteredGraph> graph;
  std::shared_ptr<const Graph> definition;
  std::string session;
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
};

class WorkerService : public std::enable_shared_from_this<WorkerService> {
 public:
  WorkerService(std::shared_ptr<Worker> worker, const pb::ClusterDef& cluster)
      : worker_(std::move(worker)), cluster_(cluster) {}

  bool Handle(CallPtr call) {
    auto it = Table().find(call->path());
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
        {paths::kTracing,
         &WorkerService::Ignore<pb::TracingRequest, pb::TracingResponse>},
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
    if (Parse(call, &request)) call->Reply(ToByteBuffer(Response()));
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
    call->Reply(ToByteBuffer(response));
  }

  void CreateWorkerSession(CallPtr call) {
    pb::CreateWorkerSessionRequest request;
    if (!Parse(call, &request)) return;
    worker_->CreateSession(
        request.session_handle(), request.isolate_session_state(),
        [call](absl::Status status) {
          Answer(call, status, pb::CreateWorkerSessionResponse());
        });
  }

  void DeleteWorkerSession(CallPtr call) {
    pb::DeleteWorkerSessionRequest request;
    if (!Parse(call, &request)) return;
    {
      MutexLock lock(mu_);
      absl::erase_if(graphs_, [&](const auto& entry) {
        return entry.second->session == request.session_handle();
      });
    }
    worker_->DeleteSession(
        request.session_handle(), [call](absl::Status status) {
          Answer(call, status, pb::DeleteWorkerSessionResponse());
        });
  }

  // Importing and compiling a large graph takes a while.
  void RegisterGraph(CallPtr call) {
    RunBlocking([self = shared_from_this(), call = std::move(call)] {
      pb::RegisterGraphRequest proto;
      if (Parse(call, &proto)) self->Register(proto, call);
    });
  }

  void Register(const pb::RegisterGraphRequest& proto, const CallPtr& call) {
    auto graph = std::make_shared<Graph>();
    ImportOptions options;
    options.allow_internal = true;
    options.validate_colocation = false;
    absl::Status imported =
        ImportGraphDef(proto.graph_def(), options, graph.get());
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
    Worker::ListClientEdges(*graph, &served->feeds, &served->fetches);
    request.feeds = served->feeds;
    request.fetches = served->fetches;
    served->definition = graph;
    request.graph = std::move(graph);
    worker_->RegisterGraph(
        std::move(request),
        [self = shared_from_this(), served,
         call](absl::StatusOr<std::shared_ptr<RegisteredGraph>> graph) {
          pb::RegisterGraphResponse response;
          if (graph.ok()) {
            served->graph = *graph;
            response.set_graph_handle(StrCat(self->next_handle_.fetch_add(1)));
            MutexLock lock(self->mu_);
            self->graphs_[response.graph_handle()] = served;
          }
          Answer(call, graph.status(), response);
        });
  }

  void DeregisterGraph(CallPtr call) {
    pb::DeregisterGraphRequest request;
    if (!Parse(call, &request)) return;
    bool found;
    {
      MutexLock lock(mu_);
      found = graphs_.erase(request.graph_handle()) > 0;
    }
    Answer(call,
           found
               ? absl::OkStatus()
               : Aborted("Graph handle is not found: ", request.graph_handle(),
                         ". Possibly, this worker just restarted."),
           pb::DeregisterGraphResponse());
  }

  // A step in progress for a master elsewhere.
  struct Running {
    CallPtr call;
    std::shared_ptr<ServedGraph> graph;
    Cancellation cancellation;
    StepStatsCollector stats;
    bool traced = false;
    bool wants_graph = false;
    bool errors_in_body = false;
    std::vector<Tensor> feeds;
    std::vector<Tensor> fetches;
    std::vector<std::pair<std::string, int>> wanted;  // Key, fetch index.
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
      auto it = graphs_.find(request->graph_handle());
      if (it != graphs_.end()) run->graph = it->second;
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
      return Aborted("The same RunGraph request was received twice. ",
                     request->ShortDebugString());
    }
    run->feeds.resize(run->graph->feeds.size());
    run->fetches.resize(run->graph->fetches.size());
    for (pb::NamedTensorProto& feed : *request->mutable_send()) {
      SLUICE_ASSIGN_OR_RETURN(int at,
                              EdgeIndex(feed.name(), run->graph->feeds));
      SLUICE_ASSIGN_OR_RETURN(
          run->feeds[at], TensorFromProto(std::move(*feed.mutable_tensor())));
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
    run->wants_graph = request.exec_opts().record_partition_graphs();
    if (absl::Status status = Prepare(&request, run.get()); !status.ok()) {
      Finish(*run, status);
      return;
    }
    const int64_t step_id = request.step_id();
    if (request.is_partial()) {
      RunPartially(run, step_id, request.is_last_partial_run());
      return;
    }
    call->OnCancel([run, step_id, worker = worker_] {
      SLUICE_VLOG(1) << "Cancellation requested for RunGraph.";
      const absl::Status why =
          Derived(Cancelled("RunGraph was cancelled by its master"));
      run->cancellation.Cancel(why);
      worker->AbortStep(step_id, why);
    });
    RunGraphRequest direct;
    direct.graph = run->graph->graph.get();
    direct.step_id = step_id;
    direct.feeds = run->feeds;
    direct.fetches = run->fetches;
    direct.cancellation = &run->cancellation;
    direct.stats = run->traced ? &run->stats : nullptr;
    worker_->RunGraph(direct,
                      [run](absl::Status status) { Finish(*run, status); });
  }

  // A part of a partial run without feeds and fetches: the first call starts
  // it, the last one waits for its end.
  struct PartialStep {
    Mutex mu;
    bool ended SLUICE_GUARDED_BY(mu) = false;
    absl::Status status SLUICE_GUARDED_BY(mu);
    std::shared_ptr<Running> last SLUICE_GUARDED_BY(mu);
  };

  void RunPartially(const std::shared_ptr<Running>& run, int64_t step_id,
                    bool last) {
    std::shared_ptr<PartialStep> step;
    bool first;
    {
      MutexLock lock(mu_);
      auto [it, added] = partial_steps_.try_emplace(step_id);
      if (added) it->second = std::make_shared<PartialStep>();
      first = added;
      step = it->second;
      if (last) partial_steps_.erase(it);
    }
    if (first) {
      RunGraphRequest direct;
      direct.graph = run->graph->graph.get();
      direct.step_id = step_id;
      direct.cancellation = &run->cancellation;
      worker_->RunGraph(direct, [run, step](absl::Status status) {
        std::shared_ptr<Running> waiting;
        {
          MutexLock lock(step->mu);
          step->ended = true;
          step->status = status;
          waiting = std::move(step->last);
        }
        if (waiting != nullptr) Finish(*waiting, status);
      });
    }
    absl::Status status;
    {
      MutexLock lock(step->mu);
      if (last && !step->ended) {
        step->last = run;
        return;
      }
      if (last) status = step->status;
    }
    Finish(*run, status);
  }

  static void Finish(Running& run, const absl::Status& status) {
    if (!status.ok() && !run.errors_in_body) {
      run.call->Fail(status);
      return;
    }
    pb::RunGraphResponse response;
    if (!status.ok()) {
      response.set_status_code(static_cast<pb::error::Code>(status.code()));
      response.set_status_error_message(std::string(status.message()));
    } else {
      for (const auto& [key, at] : run.wanted) {
        pb::NamedTensorProto* recv = response.add_recv();
        recv->set_name(key);
        TensorToProto(run.fetches[at], recv->mutable_tensor());
      }
    }
    if (run.wants_graph && run.graph != nullptr) {
      ExportOptions options;
      options.assigned_devices = true;
      ExportGraphDef(*run.graph->definition, options,
                     response.add_partition_graph());
    }
    if (run.traced) {
      StepStatsToProto(run.stats.Take(), response.mutable_step_stats());
    }
    run.call->Reply(ToByteBuffer(response));
  }

  void CleanupGraph(CallPtr call) {
    pb::CleanupGraphRequest request;
    if (!Parse(call, &request)) return;
    for (int64_t step : request.sluice_more_step_id()) Forget(step);
    Forget(request.step_id());
    Answer(call, absl::OkStatus(), pb::CleanupGraphResponse());
  }

  // The step is over on every task.
  void Forget(int64_t step_id) {
    {
      MutexLock lock(mu_);
      partial_steps_.erase(step_id);
    }
    worker_->CleanupGraph(step_id, [](absl::Status) {});
  }

  void CleanupAll(CallPtr call) {
    pb::CleanupAllRequest request;
    if (!Parse(call, &request)) return;
    worker_->CleanupAll(
        {request.container().begin(), request.container().end()},
        [call](absl::Status status) {
          Answer(call, status, pb::CleanupAllResponse());
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
    call->Reply(ToByteBuffer(response));
  }

  void RecvTensor(CallPtr call) {
    pb::RecvTensorRequest request;
    if (!Parse(call, &request)) return;
    if (!ids_.Add(request.request_id())) {
      call->Fail(
          Aborted("The same RecvTensor (WorkerServiceImpl) request was "
                  "received twice. ",
                  request.ShortDebugString()));
      return;
    }
    if (request.sluice_more_key_size() > 0) {
      RecvGroup(std::move(call), request);
      return;
    }
    const int64_t start = RealClock().WallMicros();
    worker_->RecvTensor(
        request.step_id(), request.rendezvous_key(),
        [call, start](absl::StatusOr<Parcel> parcel) {
          if (!parcel.ok()) {
            call->Fail(parcel.status());
            return;
          }
          call->Reply(EncodeRecvTensor(parcel->tensor, parcel->dead, start));
        });
  }

  void RecvGroup(CallPtr call, const pb::RecvTensorRequest& request) {
    std::vector<std::string> keys = {request.rendezvous_key()};
    keys.insert(keys.end(), request.sluice_more_key().begin(),
                request.sluice_more_key().end());
    worker_->RecvTensors(
        request.step_id(), keys,
        [call](absl::StatusOr<std::vector<Parcel>> parcels) {
          if (!parcels.ok()) {
            call->Fail(parcels.status());
            return;
          }
          pb::RecvTensorResponse response;
          for (size_t i = 0; i < parcels->size(); ++i) {
            pb::RecvTensorResponse* one =
                i == 0 ? &response : response.add_sluice_more();
            const Parcel& parcel = (*parcels)[i];
            one->set_is_dead(parcel.dead);
            if (!parcel.dead) {
              TensorToProto(parcel.tensor, one->mutable_tensor());
            }
          }
          call->Reply(ToByteBuffer(response));
        });
  }

  const std::shared_ptr<Worker> worker_;
  const pb::ClusterDef cluster_;
  std::atomic<uint64_t> next_handle_{1};
  const uint64_t sequence_seed_ = RandomId();
  RecentIds ids_{100000};
  Mutex mu_;
  absl::flat_hash_map<std::string, std::shared_ptr<ServedGraph>> graphs_
      SLUICE_GUARDED_BY(mu_);
  absl::flat_hash_map<int64_t, std::shared_ptr<PartialStep>> partial_steps_
      SLUICE_GUARDED_BY(mu_);
};

}  // namespace

ServiceHandler MakeWorkerService(std::shared_ptr<Worker> worker,
                                 const pb::ClusterDef& cluster) {
  auto service = std::make_shared<WorkerService>(std::move(worker), cluster);
  return [service](CallPtr call) { return service->Handle(std::move(call)); };
}

namespace {

std::string_view WhyNotServed(std::string_view path) {
  const std::string_view method = path.substr(path.rfind('/') + 1);
  if (method == "RecvBuf" || method == "CompleteGroup" ||
      method == "CompleteInstance") {
    return "it has no collective operations";
  }
  if (path.find("EagerService") != path.npos) {
    return "it runs graphs, not single operations";
  }
  return "there is no such method";
}

}  // namespace

CallHandler MakeTaskHandler(std::shared_ptr<Worker> worker,
                            std::shared_ptr<Master> master,
                            const pb::ClusterDef& cluster) {
  ServiceHandler on_worker = MakeWorkerService(std::move(worker), cluster);
  ServiceHandler on_master = MakeMasterService(std::move(master));
  return [on_worker, on_master](CallPtr call) {
    try {
      if (on_worker(call) || on_master(call)) return;
    } catch (const std::bad_alloc&) {
      call->Fail(ResourceExhausted("Out of memory while reading a request"));
      return;
    }
    call->Fail(Unimplemented("Sluice does not serve ", call->path(), ": ",
                             WhyNotServed(call->path())));
  };
}

}  // namespace sluice
