#include <atomic>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "sluice/base/blocking_pool.h"
#include "sluice/base/hash.h"
#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/base/time_limit.h"
#include "sluice/base/timer.h"
#include "sluice/graph/functions.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/master.pb.h"
#include "sluice/rpc/answer.h"
#include "sluice/rpc/byte_buffer.h"
#include "sluice/rpc/config.h"
#include "sluice/rpc/paths.h"
#include "sluice/rpc/recent_ids.h"
#include "sluice/rpc/request_tensors.h"
#include "sluice/rpc/services.h"
#include "sluice/rpc/step_replies.h"
#include "sluice/rpc/utf8.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

using CallPtr = std::shared_ptr<ServerCall>;

// Of the functions that came with earlier calls. A client may send them again.
int64_t NodesOfOtherFunctions(const Graph& graph, const pb::GraphDef& def) {
  if (graph.functions().empty()) return 0;
  absl::flat_hash_set<std::string> again;
  for (const pb::FunctionDef& function : def.library().function()) {
    again.insert(function.signature().name());
  }
  pb::FunctionDefLibrary earlier;
  graph.functions().ToProto(&earlier);
  int64_t nodes = 0;
  for (const pb::FunctionDef& function : earlier.function()) {
    if (again.contains(function.signature().name())) continue;
    nodes += function.node_def_size();
  }
  return nodes;
}

// The version of whoever wrote it; old writers have a field of its own.
int ProducerOf(const pb::GraphDef& def) {
  return def.has_versions() ? def.versions().producer() : def.version();
}

MasterSession::Extension ExtensionBy(const pb::GraphDef& def,
                                     const Limits& limits) {
  MasterSession::Extension extension;
  extension.library_bytes = static_cast<int64_t>(def.library().ByteSizeLong());
  extension.node_bytes =
      static_cast<int64_t>(def.ByteSizeLong()) - extension.library_bytes;
  extension.most_bytes = limits.graph_bytes;
  return extension;
}

// Adds a client's nodes. A node that is there already came with an earlier
// call.
absl::Status AddNodes(const pb::GraphDef& def, const Limits& limits,
                      Graph* graph) {
  const int producer = graph->versions().producer;
  if (graph->num_nodes() > 0 && ProducerOf(def) != producer) {
    return InvalidArgument("Can't extend GraphDef at version ", producer,
                           " with graph at version ", ProducerOf(def), ".");
  }
  const int64_t known = graph->num_nodes() + NodesOfOtherFunctions(*graph, def);
  SLUICE_RETURN_IF_ERROR(CheckGraphSize(def, known, limits));
  for (const pb::NodeDef& node : def.node()) {
    if (graph->FindNode(node.name()) != nullptr) {
      return InvalidArgument(
          "GraphDef argument to Extend includes node '", node.name(),
          "', which was created by a previous call to Create or Extend in this "
          "session.");
    }
  }
  ImportOptions options;
  options.extend = true;
  options.validate_colocation = false;
  return ImportGraphDef(def, options, graph);
}

// Of what a step is asked for, without the values of its feeds.
uint64_t ContentOf(const pb::RunStepRequest& request) {
  uint64_t hash = Hash64(request.partial_run_handle());
  const auto add = [&](const std::string& name) {
    hash = hash * 31 + Hash64(name);
  };
  for (const pb::NamedTensorProto& feed : request.feed()) add(feed.name());
  hash += 1;
  for (const std::string& name : request.fetch()) add(name);
  hash += 1;
  for (const std::string& name : request.target()) add(name);
  return hash;
}

// Ids are the clients' own: those of two sessions have nothing to do with each
// other.
int64_t IdInSession(int64_t request_id, const std::string& session) {
  if (request_id == 0) return 0;
  const auto id = static_cast<uint64_t>(request_id) ^ Hash64(session);
  return static_cast<int64_t>(id == 0 ? 1 : id);
}

// Why the steps of a session end that nobody holds any more.
absl::Status Collected() {
  return Cancelled(
      "Step was cancelled because the session was garbage collected due to "
      "inactivity.");
}

class MasterService : public std::enable_shared_from_this<MasterService> {
 public:
  MasterService(std::shared_ptr<Master> master,
                std::shared_ptr<TaskActivity> activity, const Limits& limits)
      : master_(std::move(master)),
        activity_(std::move(activity)),
        limits_(limits) {}

  bool Handle(CallPtr call) {
    auto it = Table().find(paths::Canonical(call->path()));
    if (it == Table().end()) return false;
    (this->*it->second)(std::move(call));
    return true;
  }

 private:
  using Method = void (MasterService::*)(CallPtr);

  static const absl::flat_hash_map<std::string, Method>& Table() {
    static const auto* table = new absl::flat_hash_map<std::string, Method>{
        {paths::kCreateSession, &MasterService::CreateSession},
        {paths::kExtendSession, &MasterService::ExtendSession},
        {paths::kRunStep, &MasterService::RunStep},
        {paths::kCloseSession, &MasterService::CloseSession},
        {paths::kListDevices, &MasterService::ListDevices},
        {paths::kReset, &MasterService::Reset},
        {paths::kPartialRunSetup, &MasterService::PartialRunSetup},
        {paths::kMakeCallable, &MasterService::MakeCallable},
        {paths::kRunCallable, &MasterService::RunCallable},
        {paths::kReleaseCallable, &MasterService::ReleaseCallable},
    };
    return *table;
  }

  static bool Parse(const CallPtr& call,
                    google::protobuf::MessageLite* request) {
    if (FromByteBuffer(&call->request(), request)) return true;
    call->Fail(InvalidArgument("The bytes sent to ", call->path(),
                               " are no such request"));
    return false;
  }

  void CreateSession(CallPtr call) {
    RunBlockingFor(call, [self = shared_from_this(), call] {
      auto request = std::make_shared<pb::CreateSessionRequest>();
      if (Parse(call, request.get())) self->Create(request, call);
    });
  }

  void Create(const std::shared_ptr<pb::CreateSessionRequest>& request,
              const CallPtr& call) {
    if (absl::Status s = CheckRemoteConfig(request->config()); !s.ok()) {
      call->Fail(s);
      return;
    }
    auto cancellation = std::make_shared<Cancellation>();
    call->OnCancel([cancellation] {
      cancellation->Cancel(Cancelled("The client went away"));
    });
    SessionOptions options =
        SessionOptionsFromConfig(request->config(), request->target());
    options.remote = true;
    for (const pb::NodeDef& node : request->graph_def().node()) {
      options.wanted_devices.insert(node.device());
    }
    master_->CreateSession(
        std::move(options), cancellation,
        [self = shared_from_this(), request,
         call](absl::StatusOr<std::shared_ptr<MasterSession>> session) {
          if (!session.ok()) {
            call->Fail(session.status());
            return;
          }
          // This may be a thread that polls the network.
          RunBlockingFor(call, [self, request, call, session = *session] {
            self->Opened(*request, session, call);
          });
        });
  }

  void Opened(const pb::CreateSessionRequest& request,
              const std::shared_ptr<MasterSession>& session,
              const CallPtr& call) {
    const std::string handle = session->handle();
    const absl::Status added = AddFirst(request, *session);
    if (!added.ok()) {
      master_->CloseSession(handle, added, [](absl::Status) {});
      call->Fail(added);
      return;
    }
    activity_->clients.Add(
        handle, call->peer(), [weak = weak_from_this(), handle] {
          if (auto service = weak.lock()) {
            service->Close(handle, Collected(), [](absl::Status) {});
          }
        });
    // Who has gone away meanwhile does not even know its name.
    call->OnCancel([self = shared_from_this(), handle] {
      self->Close(handle, Collected(), [](absl::Status) {});
    });
    pb::CreateSessionResponse response;
    response.set_session_handle(handle);
    response.set_graph_version(session->graph_version());
    Answer(*call, response);
  }

  // The session goes if its graph is too large for the memory.
  absl::Status AddFirst(const pb::CreateSessionRequest& request,
                        MasterSession& session) const {
    const pb::GraphDef& graph_def = request.graph_def();
    try {
      return session.Extend(
          [&](Graph& graph) { return AddNodes(graph_def, limits_, &graph); },
          ExtensionBy(graph_def, limits_));
    } catch (const std::bad_alloc&) {
      return ResourceExhausted("Out of memory while reading a graph");
    }
  }

  void ExtendSession(CallPtr call) {
    RunBlockingFor(call, [self = shared_from_this(), call] {
      pb::ExtendSessionRequest request;
      if (!Parse(call, &request)) return;
      pb::ExtendSessionResponse response;
      Answer(*call, self->Extend(request, &response), response);
    });
  }

  absl::Status Extend(const pb::ExtendSessionRequest& request,
                      pb::ExtendSessionResponse* response) {
    SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<MasterSession> session,
                            master_->FindSession(request.session_handle()));
    const pb::GraphDef& graph_def = request.graph_def();
    MasterSession::Extension extension = ExtensionBy(graph_def, limits_);
    extension.from_version = request.current_graph_version();
    SLUICE_RETURN_IF_ERROR(session->Extend(
        [&](Graph& graph) { return AddNodes(graph_def, limits_, &graph); },
        extension));
    response->set_new_graph_version(*extension.from_version + 1);
    return absl::OkStatus();
  }

  // A client's step.
  struct Running {
    std::shared_ptr<StepAudience> audience;
    pb::RunStepRequest request;
    std::shared_ptr<MasterSession> session;
    StepSignature signature;
    std::vector<Tensor> feeds;
    std::vector<Tensor> fetches;
    RunMetadata metadata;
  };

  void RunStep(CallPtr call) {
    auto run = std::make_shared<Running>();
    if (!Parse(call, &run->request)) return;
    const pb::RunStepRequest& request = run->request;
    auto session = master_->FindSession(request.session_handle());
    // What comes to no session is nobody's request.
    const StepReplies::Found found = replies_.FindOrAdd(
        request.session_handle(), session.ok() ? request.request_id() : 0,
        ContentOf(request));
    if (found.audience == nullptr) {
      call->Fail(Twice("RunStep", request));
      return;
    }
    run->audience = found.audience;
    found.audience->Join(std::move(call));
    if (!found.first) return;
    if (!session.ok()) {
      Finish(*run, session.status());
      return;
    }
    run->session = *std::move(session);
    OrFail(run, [&] { Start(run); });
  }

  // Calls `work`, for which there may not be enough memory: then the step
  // fails, and not the server.
  template <typename Work>
  static void OrFail(const std::shared_ptr<Running>& run, Work work) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      run->audience->Fail(
          ResourceExhausted("Out of memory while running a "
                            "step"));
    }
  }

  void Start(const std::shared_ptr<Running>& run) {
    if (absl::Status status = Prepare(run.get()); !status.ok()) {
      Finish(*run, status);
      return;
    }
    if (!run->request.partial_run_handle().empty()) {
      // It may have to wait while the graph is extended.
      RunBlocking([self = shared_from_this(), run] {
        OrFail(run, [&] { self->RunPartially(run); });
      });
      return;
    }
    // Cutting a large graph into parts takes a while.
    if (auto plan = run->session->FindPlan(run->signature)) {
      Run(run, std::move(plan));
      return;
    }
    RunBlocking([self = shared_from_this(), run] {
      OrFail(run, [&] { self->Plan(run); });
    });
  }

  void Plan(const std::shared_ptr<Running>& run) {
    run->session->PlanAsync(run->signature, [self = shared_from_this(),
                                             run](MasterSession::PlanOr plan) {
      OrFail(run, [&] {
        if (plan.ok()) {
          self->Run(run, *std::move(plan));
        } else {
          Finish(*run, plan.status());
        }
      });
    });
  }

  // Its feeds may be gigabytes, so that it is not shown as a whole.
  template <typename Request>
  static absl::Status Twice(const char* method, const Request& request) {
    return Aborted(
        "The same ", method, " (Master) request was received twice. Request ",
        request.request_id(), " of session ", request.session_handle());
  }

  absl::Status Prepare(Running* run) {
    pb::RunStepRequest& request = run->request;
    // If not, its answer is forgotten by now.
    SLUICE_RETURN_IF_ERROR(CheckNew(request, "RunStep"));
    RequestTensors tensors(limits_);
    for (pb::NamedTensorProto& feed : *request.mutable_feed()) {
      run->signature.feeds.push_back(feed.name());
      SLUICE_ASSIGN_OR_RETURN(Tensor value,
                              tensors.Read(std::move(*feed.mutable_tensor())));
      run->feeds.push_back(std::move(value));
    }
    run->signature.fetches.assign(request.fetch().begin(),
                                  request.fetch().end());
    run->signature.targets.assign(request.target().begin(),
                                  request.target().end());
    run->fetches.resize(run->signature.fetches.size());
    return absl::OkStatus();
  }

  void Run(std::shared_ptr<Running> run, std::shared_ptr<const StepPlan> plan) {
    MasterSession::RunArgs args;
    args.feeds = run->feeds;
    args.fetches = run->fetches;
    args.options = RunOptionsFromProto(run->request.options());
    args.metadata = &run->metadata;
    MasterSession& session = *run->session;
    const int64_t id =
        session.Run(std::move(plan), args, [run](absl::Status status) {
          OrFail(run, [&] { Finish(*run, status); });
        });
    run->audience->OnAbandoned([session = run->session, id] {
      SLUICE_LOG(INFO)
          << "Client requested cancellation for RunStep, cancelling "
             "worker operations.";
      session->CancelStep(id, Cancelled("RunStep was cancelled by its client"));
    });
  }

  void RunPartially(const std::shared_ptr<Running>& run) {
    const std::string& handle = run->request.partial_run_handle();
    const auto over = std::make_shared<std::atomic<bool>>(false);
    run->session->RunPartially(handle,
                               {run->signature.feeds, run->feeds,
                                run->signature.fetches, run->fetches},
                               [run, over](absl::Status status) {
                                 over->store(true);
                                 OrFail(run, [&] { Finish(*run, status); });
                               });
    if (const int64_t limit = run->session->TimeoutOf(
            RunOptionsFromProto(run->request.options()));
        limit > 0 && !over->load()) {
      CallLater(TimeLimit(limit), [over, session = run->session, handle] {
        if (over->load()) return;
        session->CancelPartialRun(handle,
                                  DeadlineExceeded("Operation timed out."));
      });
    }
    run->audience->OnAbandoned([session = run->session, handle] {
      session->CancelPartialRun(
          handle, Cancelled("RunStep was cancelled by its client"));
    });
  }

  static void Finish(Running& run, absl::Status status) {
    pb::RunStepResponse response;
    if (status.ok()) status = CheckSize(run.fetches);
    if (status.ok()) {
      for (size_t i = 0; i < run.fetches.size(); ++i) {
        pb::NamedTensorProto* tensor = response.add_tensor();
        tensor->set_name(run.signature.fetches[i]);
        TensorToProto(run.fetches[i], tensor->mutable_tensor());
      }
      MetadataToProto(run.request.options(), &run.metadata,
                      response.mutable_metadata());
    } else if (run.request.store_errors_in_response_body()) {
      response.set_status_code(static_cast<pb::error::Code>(status.code()));
      response.set_status_error_message(Utf8(ToStd(status.message())));
    } else {
      run.audience->Fail(status);
      return;
    }
    absl::StatusOr<grpc::ByteBuffer> bytes = ToByteBuffer(response);
    if (bytes.ok()) {
      run.audience->Reply(*std::move(bytes));
    } else {
      run.audience->Fail(bytes.status());
    }
  }

  static absl::Status CheckSize(std::span<const Tensor> fetches) {
    size_t bytes = 0;
    for (const Tensor& fetch : fetches) bytes += fetch.bytes();
    if (bytes <= kMaxMessageBytes) return absl::OkStatus();
    return InvalidArgument(
        "The fetches of this step have ", bytes,
        " bytes; an answer to a client in another process has at most ",
        kMaxMessageBytes,
        " (2 GiB). Fetch less at a time, for example slices, or save large "
        "values to files.");
  }

  // What was asked for; a client always gets the message.
  static void MetadataToProto(const pb::RunOptions& options,
                              RunMetadata* metadata, pb::RunMetadata* proto) {
    if (!options.output_partition_graphs()) metadata->partition_graphs.clear();
    if (metadata->step_stats.empty() && metadata->partition_graphs.empty() &&
        metadata->cost_graph.empty()) {
      return;
    }
    RunMetadataToProto(*metadata, proto);
  }

  void PartialRunSetup(CallPtr call) {
    RunBlockingFor(call, [self = shared_from_this(), call] {
      pb::PartialRunSetupRequest request;
      if (!Parse(call, &request)) return;
      if (absl::Status s = self->SetUpPartialRun(request, call); !s.ok()) {
        call->Fail(s);
      }
    });
  }

  // Makes the plan of a step to come and then calls `finish`, which finds it:
  // no thread waits for the tasks that take its parts.
  static void PlanFirst(const std::shared_ptr<MasterSession>& session,
                        const StepSignature& signature, const CallPtr& call,
                        std::function<void()> finish) {
    session->PlanAsync(signature, [call, finish = std::move(finish)](
                                      const MasterSession::PlanOr& plan) {
      if (plan.ok()) {
        RunBlockingFor(call, finish);
      } else {
        call->Fail(plan.status());
      }
    });
  }

  absl::Status SetUpPartialRun(const pb::PartialRunSetupRequest& request,
                               const CallPtr& call) {
    SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<MasterSession> session,
                            master_->FindSession(request.session_handle()));
    SLUICE_RETURN_IF_ERROR(CheckNew(request, "PartialRunSetup"));
    StepSignature signature;
    signature.feeds.assign(request.feed().begin(), request.feed().end());
    signature.fetches.assign(request.fetch().begin(), request.fetch().end());
    signature.targets.assign(request.target().begin(), request.target().end());
    signature.partial = true;
    PlanFirst(session, signature, call, [session, signature, call] {
      pb::PartialRunSetupResponse response;
      absl::StatusOr<std::string> handle = session->SetUpPartialRun(signature);
      if (handle.ok()) response.set_partial_run_handle(*handle);
      Answer(*call, handle.status(), response);
    });
    return absl::OkStatus();
  }

  template <typename Request>
  absl::Status CheckNew(const Request& request, const char* method) {
    if (ids_.Add(IdInSession(request.request_id(), request.session_handle()))) {
      return absl::OkStatus();
    }
    return Twice(method, request);
  }

  void MakeCallable(CallPtr call) {
    RunBlockingFor(call, [self = shared_from_this(), call] {
      pb::MakeCallableRequest request;
      if (!Parse(call, &request)) return;
      if (absl::Status s = self->AddCallable(request, call); !s.ok()) {
        call->Fail(s);
      }
    });
  }

  absl::Status AddCallable(const pb::MakeCallableRequest& request,
                           const CallPtr& call) {
    SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<MasterSession> session,
                            master_->FindSession(request.session_handle()));
    SLUICE_RETURN_IF_ERROR(CheckNew(request, "MakeCallable"));
    const pb::CallableOptions& options = request.options();
    if (options.feed_devices_size() > 0 || options.fetch_devices_size() > 0) {
      return Unimplemented(
          "feed_devices and fetch_devices do not exist in distributed "
          "sessions");
    }
    StepSignature signature;
    signature.feeds.assign(options.feed().begin(), options.feed().end());
    signature.fetches.assign(options.fetch().begin(), options.fetch().end());
    signature.targets.assign(options.target().begin(), options.target().end());
    for (const pb::TensorConnection& c : options.tensor_connection()) {
      signature.connections.emplace_back(c.from_tensor(), c.to_tensor());
    }
    const RunOptions run_options = RunOptionsFromProto(options.run_options());
    PlanFirst(session, signature, call,
              [session, signature, call, run_options] {
                pb::MakeCallableResponse response;
                const absl::StatusOr<int64_t> handle =
                    session->MakeCallable(signature, run_options);
                if (handle.ok()) response.set_handle(*handle);
                Answer(*call, handle.status(), response);
              });
    return absl::OkStatus();
  }

  // A callable's step.
  struct RunningCallable {
    CallPtr call;
    std::vector<Tensor> feeds;
    std::vector<Tensor> fetches;
    RunMetadata metadata;
    RunOptions options;
  };

  void RunCallable(CallPtr call) {
    pb::RunCallableRequest request;
    if (!Parse(call, &request)) return;
    auto run = std::make_shared<RunningCallable>();
    run->call = call;
    if (absl::Status status = Start(&request, run); !status.ok()) {
      call->Fail(status);
    }
  }

  absl::Status Start(pb::RunCallableRequest* request,
                     const std::shared_ptr<RunningCallable>& run) {
    SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<MasterSession> session,
                            master_->FindSession(request->session_handle()));
    SLUICE_RETURN_IF_ERROR(CheckNew(*request, "RunCallable"));
    SLUICE_ASSIGN_OR_RETURN(
        const std::shared_ptr<const MasterSession::Callable> callable,
        session->FindCallable(request->handle()));
    const size_t num_feeds = callable->signature.feeds.size();
    if (static_cast<size_t>(request->feed_size()) != num_feeds) {
      return InvalidArgument("Callable ", request->handle(), " takes ",
                             num_feeds, " feeds, but got ",
                             request->feed_size());
    }
    RequestTensors tensors(limits_);
    for (pb::TensorProto& feed : *request->mutable_feed()) {
      SLUICE_ASSIGN_OR_RETURN(Tensor value, tensors.Read(std::move(feed)));
      run->feeds.push_back(std::move(value));
    }
    run->fetches.resize(callable->signature.fetches.size());
    run->options = callable->options;
    if (!MasterSession::IsDoubtful(*callable->plan)) {
      Run(session, run, callable->plan);
      return absl::OkStatus();
    }
    RunBlockingFor(run->call, [session, run, callable,
                               handle = request->handle()] {
      session->PlanAsync(callable->signature,
                         [session, run, handle](MasterSession::PlanOr plan) {
                           if (!plan.ok()) {
                             run->call->Fail(plan.status());
                             return;
                           }
                           RunInMemory(*run->call, [&] {
                             session->RenewCallable(handle, *plan);
                             Run(session, run, *std::move(plan));
                           });
                         });
    });
    return absl::OkStatus();
  }

  static void Run(const std::shared_ptr<MasterSession>& session,
                  const std::shared_ptr<RunningCallable>& run,
                  std::shared_ptr<const StepPlan> plan) {
    MasterSession::RunArgs args;
    args.feeds = run->feeds;
    args.fetches = run->fetches;
    args.options = run->options;
    args.metadata = &run->metadata;
    const int64_t id =
        session->Run(std::move(plan), args, [run](const absl::Status& status) {
          AnswerInMemory(*run->call, [&] { return Encode(*run, status); });
        });
    run->call->OnCancel([session, id] {
      session->CancelStep(id,
                          Cancelled("RunCallable was cancelled by its client"));
    });
  }

  static absl::StatusOr<grpc::ByteBuffer> Encode(RunningCallable& run,
                                                 const absl::Status& status) {
    SLUICE_RETURN_IF_ERROR(status);
    SLUICE_RETURN_IF_ERROR(CheckSize(run.fetches));
    pb::RunCallableResponse response;
    for (const Tensor& fetch : run.fetches) {
      TensorToProto(fetch, response.add_fetch());
    }
    pb::RunOptions options;
    RunOptionsToProto(run.options, &options);
    MetadataToProto(options, &run.metadata, response.mutable_metadata());
    return ToByteBuffer(response);
  }

  void ReleaseCallable(CallPtr call) {
    pb::ReleaseCallableRequest request;
    if (!Parse(call, &request)) return;
    auto session = master_->FindSession(request.session_handle());
    Answer(*call,
           session.ok() ? (*session)->ReleaseCallable(request.handle())
                        : session.status(),
           pb::ReleaseCallableResponse());
  }

  void CloseSession(CallPtr call) {
    pb::CloseSessionRequest request;
    if (!Parse(call, &request)) return;
    Close(request.session_handle(), ClosedByClient(),
          [call](absl::Status status) {
            Answer(*call, status, pb::CloseSessionResponse());
          });
  }

  void Close(const std::string& handle, const absl::Status& why,
             MasterSession::Done done) {
    activity_->clients.Remove(handle);
    master_->CloseSession(handle, why, std::move(done));
    replies_.Forget(handle);
  }

  void ListDevices(CallPtr call) {
    pb::ListDevicesRequest request;
    if (!Parse(call, &request)) return;
    if (!request.session_handle().empty()) {
      auto session = master_->FindSession(request.session_handle());
      if (!session.ok()) {
        call->Fail(InvalidArgument("Session ", request.session_handle(),
                                   " is not found. Possibly, this master has "
                                   "restarted."));
        return;
      }
      pb::ListDevicesResponse response;
      for (const DeviceInfo& device : (*session)->devices()) {
        DeviceToProto(device, response.add_local_device());
      }
      Answer(*call, response);
      return;
    }
    master_->ListDevices([self = shared_from_this(), call](
                             absl::StatusOr<std::vector<DeviceInfo>> devices) {
      pb::ListDevicesResponse response;
      if (devices.ok()) {
        for (const DeviceInfo& device : *devices) {
          const bool own =
              device.name.TaskName() == self->master_->env().own_task;
          DeviceToProto(device, own ? response.add_local_device()
                                    : response.add_remote_device());
        }
      }
      Answer(*call, devices.status(), response);
    });
  }

  void Reset(CallPtr call) {
    pb::ResetRequest request;
    if (!Parse(call, &request)) return;
    master_->Reset(
        {request.container().begin(), request.container().end()},
        {request.device_filters().begin(), request.device_filters().end()},
        [call](absl::Status status) {
          Answer(*call, status, pb::ResetResponse());
        });
    // Its sessions are closed, unless it was refused.
    for (const std::shared_ptr<SessionUse>& use : activity_->clients.List()) {
      if (master_->FindSession(use->handle()).ok()) continue;
      activity_->clients.Remove(use->handle());
      replies_.Forget(use->handle());
    }
  }

  const std::shared_ptr<Master> master_;
  const std::shared_ptr<TaskActivity> activity_;
  const Limits limits_;
  RecentIds ids_;
  StepReplies replies_{{}, [activity = activity_](const std::string& handle) {
                         const auto use = activity->clients.Find(handle);
                         return use != nullptr && use->held();
                       }};
};

}  // namespace

ServiceHandler MakeMasterService(std::shared_ptr<Master> master,
                                 std::shared_ptr<TaskActivity> activity,
                                 const Limits& limits) {
  auto service = std::make_shared<MasterService>(std::move(master),
                                                 std::move(activity), limits);
  return [service](CallPtr call) { return service->Handle(std::move(call)); };
}

}  // namespace sluice
