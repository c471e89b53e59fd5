// Sessions on a master in another process.
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"
#include "sluice/base/random.h"
#include "sluice/base/status.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/config.pb.h"
#include "sluice/proto/master.pb.h"
#include "sluice/proto/worker.pb.h"
#include "sluice/rpc/config.h"
#include "sluice/rpc/master_stub.h"
#include "sluice/rpc/paths.h"
#include "sluice/session/session_client.h"
#include "sluice/session/turn.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

// How long a step waits for a master that is gone; longer when the session was
// never opened. A master that comes back has forgotten the session, and says
// so.
constexpr int64_t kReconnectMs = 30000;
constexpr char kTimedOut[] = "Operation timed out.";

class RemoteClient : public SessionClient {
 public:
  RemoteClient(std::unique_ptr<MasterStub> stub, const SessionConfig& config)
      : stub_(std::move(stub)), config_(config) {}

  absl::Status Sync(const Graph& graph, const RunOptions& options) override {
    SLUICE_RETURN_IF_ERROR(TakeTurn(options));
    absl::Status status =
        handle_.empty() ? Open(graph) : Extend(graph, options);
    turn_.GiveBack();
    return status;
  }

  absl::StatusOr<std::shared_ptr<PreparedStep>> Prepare(
      const StepSignature& signature, const RunOptions& options) override;

  absl::StatusOr<std::string> SetUpPartialRun(
      const StepSignature& signature) override {
    pb::PartialRunSetupRequest request;
    request.set_session_handle(handle_);
    for (const std::string& name : signature.feeds) request.add_feed(name);
    for (const std::string& name : signature.fetches) request.add_fetch(name);
    for (const std::string& name : signature.targets) request.add_target(name);
    request.set_request_id(static_cast<int64_t>(RandomId()));
    pb::PartialRunSetupResponse response;
    SLUICE_RETURN_IF_ERROR(Call(paths::kPartialRunSetup, request, &response,
                                config_.options.operation_timeout_ms,
                                kReconnectMs));
    return response.partial_run_handle();
  }

  absl::Status RunPartially(const std::string& name,
                            PartialRunArgs args) override {
    {
      MutexLock lock(mu_);
      if (handle_.empty()) return NoSuchPartialRun(/*local_session=*/false);
    }
    const StepSignature step = {args.feed_names, args.fetch_names, {}};
    return RunStep(step, args.feeds, args.fetches, {}, nullptr, name);
  }

  absl::StatusOr<int64_t> MakeCallable(const StepSignature& signature,
                                       const RunOptions& run_options) {
    pb::MakeCallableRequest request;
    request.set_session_handle(handle_);
    pb::CallableOptions* options = request.mutable_options();
    for (const std::string& name : signature.feeds) options->add_feed(name);
    for (const std::string& name : signature.fetches) options->add_fetch(name);
    for (const std::string& name : signature.targets) options->add_target(name);
    for (const auto& [from, to] : signature.connections) {
      pb::TensorConnection* connection = options->add_tensor_connection();
      connection->set_from_tensor(from);
      connection->set_to_tensor(to);
    }
    RunOptionsToProto(run_options, options->mutable_run_options());
    request.set_request_id(static_cast<int64_t>(RandomId()));
    pb::MakeCallableResponse response;
    SLUICE_RETURN_IF_ERROR(Call(paths::kMakeCallable, request, &response,
                                TimeoutOf(run_options), kReconnectMs));
    return response.handle();
  }

  absl::Status RunCallable(int64_t callable, std::span<const Tensor> feeds,
                           std::span<Tensor> fetches, const RunOptions& options,
                           RunMetadata* metadata) {
    SLUICE_RETURN_IF_ERROR(CheckSize(feeds));
    pb::RunCallableRequest request;
    request.set_session_handle(handle_);
    request.set_handle(callable);
    for (const Tensor& feed : feeds) TensorToProto(feed, request.add_feed());
    request.set_request_id(static_cast<int64_t>(RandomId()));
    pb::RunCallableResponse response;
    SLUICE_RETURN_IF_ERROR(Call(paths::kRunCallable, request, &response,
                                TimeoutOf(options), kReconnectMs));
    if (static_cast<size_t>(response.fetch_size()) != fetches.size()) {
      return Internal("The master sent ", response.fetch_size(),
                      " values instead of ", fetches.size());
    }
    for (size_t i = 0; i < fetches.size(); ++i) {
      SLUICE_ASSIGN_OR_RETURN(
          fetches[i], TensorFromProto(std::move(
                          *response.mutable_fetch(static_cast<int>(i)))));
    }
    return TakeMetadata(response.metadata(), metadata);
  }

  // Without an answer: if it gets lost, the callable goes with the session.
  void ReleaseCallable(int64_t callable) {
    {
      MutexLock lock(mu_);
      if (closing_) return;
    }
    pb::ReleaseCallableRequest request;
    request.set_session_handle(handle_);
    request.set_handle(callable);
    stub_->Send(paths::kReleaseCallable, request);
  }

  absl::StatusOr<std::vector<DeviceInfo>> ListDevices() override {
    pb::ListDevicesRequest request;
    request.set_session_handle(handle_);
    pb::ListDevicesResponse response;
    SLUICE_RETURN_IF_ERROR(Call(paths::kListDevices, request, &response,
                                TimeoutOf({}), kReconnectMs));
    std::vector<DeviceInfo> devices;
    for (const auto* list :
         {&response.local_device(), &response.remote_device()}) {
      for (const pb::DeviceAttributes& proto : *list) {
        SLUICE_ASSIGN_OR_RETURN(DeviceInfo device, DeviceFromProto(proto));
        devices.push_back(std::move(device));
      }
    }
    return devices;
  }

  absl::Status Close() override {
    // First whatever waits, then the session itself.
    {
      MutexLock lock(mu_);
      closing_ = true;
    }
    CancelCalls(ClosedByClient());
    const int64_t timeout_ms =
        CloseTimeout(config_.options.operation_timeout_ms);
    Cancellation call;
    absl::Status status = turn_.Take(
        {DeadlineIn(timeout_ms), kTimedOut, config_.interrupted}, call);
    if (status.ok()) {
      if (!handle_.empty()) status = CloseInTurn(timeout_ms);
      turn_.GiveBack();
    }
    if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
      SLUICE_LOG(WARNING) << "Closing session " << handle_ << ": "
                          << status.message();
      return absl::OkStatus();
    }
    return status;
  }

  void Interrupt() override { CancelCalls(Cancelled("Interrupted")); }

  absl::Status RunStep(const StepSignature& signature,
                       std::span<const Tensor> feeds, std::span<Tensor> fetches,
                       const RunOptions& options, RunMetadata* metadata,
                       const std::string& partial_run = "") {
    SLUICE_RETURN_IF_ERROR(CheckSize(feeds));
    pb::RunStepRequest request;
    request.set_session_handle(handle_);
    request.set_partial_run_handle(partial_run);
    for (size_t i = 0; i < feeds.size(); ++i) {
      pb::NamedTensorProto* feed = request.add_feed();
      feed->set_name(signature.feeds[i]);
      TensorToProto(feeds[i], feed->mutable_tensor());
    }
    for (const std::string& name : signature.fetches) request.add_fetch(name);
    for (const std::string& name : signature.targets) request.add_target(name);
    RunOptionsToProto(options, request.mutable_options());
    request.mutable_options()->set_timeout_in_ms(TimeoutOf(options));
    request.set_store_errors_in_response_body(true);
    request.set_request_id(static_cast<int64_t>(RandomId()));
    pb::RunStepResponse response;
    SLUICE_RETURN_IF_ERROR(Call(paths::kRunStep, request, &response,
                                TimeoutOf(options), kReconnectMs,
                                /*repeatable=*/true));
    if (response.status_code() != 0) {
      return absl::Status(static_cast<absl::StatusCode>(response.status_code()),
                          response.status_error_message());
    }
    SLUICE_RETURN_IF_ERROR(TakeMetadata(response.metadata(), metadata));
    return TakeFetches(signature, &response, fetches);
  }

 private:
  int64_t TimeoutOf(const RunOptions& options) const {
    return options.timeout_ms > 0 ? options.timeout_ms
                                  : config_.options.operation_timeout_ms;
  }

  static absl::Status CheckSize(std::span<const Tensor> feeds) {
    // Protobuf's limit, with room for names.
    constexpr size_t kMost = INT_MAX - (1 << 20);
    size_t bytes = 0;
    for (const Tensor& feed : feeds) bytes += feed.bytes();
    if (bytes <= kMost) return absl::OkStatus();
    return InvalidArgument(
        "The feeds of this step have ", bytes,
        " bytes; a request to a master in another process has at most ", kMost,
        " (2 GiB). Feed less at a time, let a task of the cluster read the "
        "data, or run this program as a task and open the session on its own "
        "server's target.");
  }

  absl::Status TakeTurn(const RunOptions& options) {
    const auto call = std::make_shared<Cancellation>();
    {
      MutexLock lock(mu_);
      if (closing_) return ClosedByClient();
      open_.insert(call);
    }
    absl::Status status = turn_.Take(
        {DeadlineIn(TimeoutOf(options)), kTimedOut, config_.interrupted},
        *call);
    MutexLock lock(mu_);
    open_.erase(call);
    return status;
  }

  absl::Status Extend(const Graph& graph, const RunOptions& run_options) {
    pb::ExtendSessionRequest request;
    request.set_session_handle(handle_);
    request.set_current_graph_version(version_);
    int now;
    {
      const auto held = LockGraph(config_);
      now = graph.num_nodes();
      if (sent_ == now) return absl::OkStatus();
      ExportOptions options;
      options.from_node = sent_;
      ExportGraphDef(graph, options, request.mutable_graph_def());
    }
    pb::ExtendSessionResponse response;
    SLUICE_RETURN_IF_ERROR(Call(paths::kExtendSession, request, &response,
                                TimeoutOf(run_options), kReconnectMs));
    version_ = response.new_graph_version();
    sent_ = now;
    return absl::OkStatus();
  }

  absl::Status CloseInTurn(int64_t timeout_ms) {
    lease_ = nullptr;
    MasterStub::Options options;
    options.timeout_ms = timeout_ms;
    if (config_.interrupted) options.interrupted = &config_.interrupted;
    return stub_->Close(handle_, options);
  }

  void CancelCalls(const absl::Status& why) {
    std::vector<std::shared_ptr<Cancellation>> open;
    {
      MutexLock lock(mu_);
      open.assign(open_.begin(), open_.end());
    }
    for (const auto& call : open) call->Cancel(why);
  }

  // The time of a step begins when its session is open, as in TensorFlow.
  absl::Status Open(const Graph& graph) {
    pb::CreateSessionRequest request;
    if (config_.config_proto.empty()) {
      SessionOptionsToConfig(config_.options, request.mutable_config());
    } else if (!request.mutable_config()->ParseFromString(
                   config_.config_proto)) {
      return InvalidArgument("The session's configuration cannot be read");
    }
    TaskDeadlineToConfig(config_.options, request.mutable_config());
    request.set_target(config_.target);
    int now;
    {
      const auto held = LockGraph(config_);
      now = graph.num_nodes();
      ExportGraphDef(graph, {}, request.mutable_graph_def());
    }
    pb::CreateSessionResponse response;
    SLUICE_RETURN_IF_ERROR(Call(paths::kCreateSession, request, &response,
                                config_.options.operation_timeout_ms,
                                config_.options.task_deadline.count()));
    {
      MutexLock lock(mu_);
      handle_ = response.session_handle();
    }
    version_ = response.graph_version();
    sent_ = now;
    lease_ = stub_->Hold(handle_);
    return absl::OkStatus();
  }

  // `metadata` may be null.
  static absl::Status TakeMetadata(const pb::RunMetadata& proto,
                                   RunMetadata* metadata) {
    if (metadata == nullptr) return absl::OkStatus();
    StepStatsCollector collector;
    StepStatsFromProto(proto.step_stats(), &collector);
    metadata->step_stats = collector.Take();
    metadata->cost_graph = CostGraphFromProto(proto.cost_graph());
    for (const pb::GraphDef& def : proto.partition_graphs()) {
      auto graph = std::make_shared<Graph>();
      ImportOptions import;
      import.allow_internal = true;
      import.validate_colocation = false;
      SLUICE_RETURN_IF_ERROR(ImportGraphDef(def, import, graph.get()));
      metadata->partition_graphs.push_back(std::move(graph));
    }
    return absl::OkStatus();
  }

  static absl::Status TakeFetches(const StepSignature& signature,
                                  pb::RunStepResponse* response,
                                  std::span<Tensor> fetches) {
    absl::flat_hash_map<std::string, pb::TensorProto*> by_name;
    for (pb::NamedTensorProto& t : *response->mutable_tensor()) {
      by_name[t.name()] = t.mutable_tensor();
    }
    for (size_t i = 0; i < fetches.size(); ++i) {
      auto it = by_name.find(signature.fetches[i]);
      if (it == by_name.end()) {
        return Internal("The master sent no value for ", signature.fetches[i]);
      }
      SLUICE_ASSIGN_OR_RETURN(fetches[i],
                              TensorFromProto(std::move(*it->second)));
    }
    return absl::OkStatus();
  }

  // `repeatable`: the request has an id, by which the master knows it again.
  absl::Status Call(const char* method,
                    const google::protobuf::MessageLite& request,
                    google::protobuf::MessageLite* response, int64_t timeout_ms,
                    int64_t wait_ms, bool repeatable = false) {
    auto cancellation = std::make_shared<Cancellation>();
    {
      MutexLock lock(mu_);
      if (closing_) return ClosedByClient();
      open_.insert(cancellation);
    }
    MasterStub::Options options;
    options.timeout_ms = timeout_ms;
    options.wait_ms = wait_ms;
    options.repeatable = repeatable;
    options.cancellation = cancellation.get();
    if (config_.interrupted) options.interrupted = &config_.interrupted;
    absl::Status status = stub_->Call(method, request, response, options);
    MutexLock lock(mu_);
    open_.erase(cancellation);
    return status;
  }

  const std::unique_ptr<MasterStub> stub_;
  const SessionConfig config_;
  Turn turn_;  // To open, extend or close the session.
  // Set once under mu_, by the first Sync; steps come after it and need no
  // lock.
  std::string handle_;
  // Only who has the turn looks at these.
  int64_t version_ = 0;
  int sent_ = 0;
  std::unique_ptr<Lease> lease_;
  Mutex mu_;
  bool closing_ SLUICE_GUARDED_BY(mu_) = false;
  absl::flat_hash_set<std::shared_ptr<Cancellation>> open_
      SLUICE_GUARDED_BY(mu_);
};

class RemoteStep : public PreparedStep {
 public:
  RemoteStep(RemoteClient& client, StepSignature signature)
      : client_(client), signature_(std::move(signature)) {}
  absl::Status Run(std::span<const Tensor> feeds, std::span<Tensor> fetches,
                   const RunOptions& options, RunMetadata* metadata) override {
    return client_.RunStep(signature_, feeds, fetches, options, metadata);
  }

 private:
  RemoteClient& client_;
  const StepSignature signature_;
};

// A step that RunStep cannot describe, made known to the master beforehand.
class RemoteCallable : public PreparedStep {
 public:
  RemoteCallable(RemoteClient& client, int64_t handle)
      : client_(client), handle_(handle) {}
  ~RemoteCallable() override { client_.ReleaseCallable(handle_); }
  absl::Status Run(std::span<const Tensor> feeds, std::span<Tensor> fetches,
                   const RunOptions& options, RunMetadata* metadata) override {
    return client_.RunCallable(handle_, feeds, fetches, options, metadata);
  }

 private:
  RemoteClient& client_;
  const int64_t handle_;
};

absl::StatusOr<std::shared_ptr<PreparedStep>> RemoteClient::Prepare(
    const StepSignature& signature, const RunOptions& options) {
  if (!signature.connections.empty()) {
    SLUICE_ASSIGN_OR_RETURN(const int64_t handle,
                            MakeCallable(signature, options));
    return std::make_shared<RemoteCallable>(*this, handle);
  }
  return std::make_shared<RemoteStep>(*this, signature);
}

}  // namespace

namespace {

absl::StatusOr<std::unique_ptr<MasterStub>> Connect(
    const SessionConfig& config) {
  SLUICE_ASSIGN_OR_RETURN(
      const TlsIdentityPtr tls,
      LoadTls(config.tls.empty() ? TlsOptions::FromEnvironment() : config.tls,
              TlsRole::kClient));
  return MasterStub::Create(config.target, tls);
}

// Waits for a sign of life.
absl::Status CheckMaster(MasterStub& stub, const SessionConfig& config) {
  MasterStub::Options call;
  call.timeout_ms = config.connect_timeout_ms;
  call.wait_ms = config.connect_timeout_ms;
  if (config.interrupted) call.interrupted = &config.interrupted;
  pb::GetStatusResponse response;
  absl::Status status =
      stub.Call(paths::kGetStatus, pb::GetStatusRequest(), &response, call);
  // Any other error is an answer.
  const bool silent = absl::IsUnavailable(status) ||
                      absl::IsDeadlineExceeded(status) ||
                      absl::IsCancelled(status);
  return silent ? status : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<SessionClient>> MakeRemoteClient(
    const SessionConfig& config) {
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<MasterStub> stub, Connect(config));
  if (config.connect_timeout_ms > 0) {
    SLUICE_RETURN_IF_ERROR(CheckMaster(*stub, config));
  }
  return std::make_unique<RemoteClient>(std::move(stub), config);
}

absl::Status ResetRemotely(const SessionConfig& config,
                           const std::vector<std::string>& containers) {
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<MasterStub> stub, Connect(config));
  pb::ResetRequest request;
  for (const std::string& container : containers)
    request.add_container(container);
  for (const std::string& filter : config.options.device_filters)
    request.add_device_filters(filter);
  pb::ResetResponse response;
  MasterStub::Options call;
  call.timeout_ms = config.options.operation_timeout_ms;
  call.wait_ms = call.timeout_ms;
  if (config.interrupted) call.interrupted = &config.interrupted;
  return stub->Call(paths::kReset, request, &response, call);
}

}  // namespace sluice
