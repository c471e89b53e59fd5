// Sessions on a master in another process.
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"
#include "sluice/base/random.h"
#include "sluice/base/status.h"
#include "sluice/graph/graph_def.h"
#include "sluice/proto/master.pb.h"
#include "sluice/rpc/config.h"
#include "sluice/rpc/master_stub.h"
#include "sluice/rpc/paths.h"
#include "sluice/session/session_client.h"
#include "sluice/tensor/codec.h"

namespace sluice {
namespace {

// A dead master must not keep a program from ending.
constexpr int64_t kCloseMs = 10000;
// How long a step waits for a master that is gone; longer when the session was
// never opened. A master that comes back has forgotten the session, and says
// so.
constexpr int64_t kReconnectMs = 30000;

class RemoteClient : public SessionClient {
 public:
  RemoteClient(std::unique_ptr<MasterStub> stub, const SessionConfig& config)
      : stub_(std::move(stub)), config_(config) {}

  absl::Status Sync(const Graph& graph) override {
    MutexLock lock(sync_mu_);
    if (handle_.empty()) return Open(graph);
    if (sent_ == graph.num_nodes()) return absl::OkStatus();
    pb::ExtendSessionRequest request;
    request.set_session_handle(handle_);
    request.set_current_graph_version(version_);
    ExportOptions options;
    options.from_node = sent_;
    ExportGraphDef(graph, options, request.mutable_graph_def());
    pb::ExtendSessionResponse response;
    SLUICE_RETURN_IF_ERROR(
        Call(paths::kExtendSession, request, &response, 0, kReconnectMs));
    version_ = response.new_graph_version();
    sent_ = graph.num_nodes();
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<PreparedStep>> Prepare(
      const StepSignature& signature) override;

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
    const StepSignature step = {args.feed_names, args.fetch_names, {}};
    return RunStep(step, args.feeds, args.fetches, {}, nullptr, name);
  }

  absl::StatusOr<std::vector<DeviceInfo>> ListDevices() override {
    pb::ListDevicesRequest request;
    request.set_session_handle(handle_);
    pb::ListDevicesResponse response;
    SLUICE_RETURN_IF_ERROR(
        Call(paths::kListDevices, request, &response, 0, kReconnectMs));
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
    MutexLock lock(sync_mu_);
    if (handle_.empty()) return absl::OkStatus();
    pb::CloseSessionRequest request;
    request.set_session_handle(handle_);
    pb::CloseSessionResponse response;
    MasterStub::Options options;
    options.timeout_ms = kCloseMs;
    const absl::Status status =
        stub_->Call(paths::kCloseSession, request, &response, options);
    if (absl::IsAborted(status) || absl::IsUnavailable(status) ||
        absl::IsDeadlineExceeded(status)) {
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
    request.set_store_errors_in_response_body(true);
    request.set_request_id(static_cast<int64_t>(RandomId()));
    pb::RunStepResponse response;
    const int64_t timeout = options.timeout_ms > 0
                                ? options.timeout_ms
                                : config_.options.operation_timeout_ms;
    SLUICE_RETURN_IF_ERROR(
        Call(paths::kRunStep, request, &response, timeout, kReconnectMs));
    if (response.status_code() != 0) {
      return absl::Status(static_cast<absl::StatusCode>(response.status_code()),
                          response.status_error_message());
    }
    if (metadata != nullptr) {
      StepStatsCollector collector;
      StepStatsFromProto(response.metadata().step_stats(), &collector);
      metadata->step_stats = collector.Take();
      for (const pb::GraphDef& def : response.metadata().partition_graphs()) {
        auto graph = std::make_shared<Graph>();
        ImportOptions import;
        import.allow_internal = true;
        import.validate_colocation = false;
        SLUICE_RETURN_IF_ERROR(ImportGraphDef(def, import, graph.get()));
        metadata->partition_graphs.push_back(std::move(graph));
      }
    }
    return TakeFetches(signature, &response, fetches);
  }

 private:
  void CancelCalls(const absl::Status& why) {
    std::vector<std::shared_ptr<Cancellation>> open;
    {
      MutexLock lock(mu_);
      open.assign(open_.begin(), open_.end());
    }
    for (const auto& call : open) call->Cancel(why);
  }

  absl::Status Open(const Graph& graph) SLUICE_REQUIRES(sync_mu_) {
    pb::CreateSessionRequest request;
    if (!request.mutable_config()->ParseFromString(config_.config_proto)) {
      return InvalidArgument("The session's configuration cannot be read");
    }
    request.set_target(config_.target);
    ExportGraphDef(graph, {}, request.mutable_graph_def());
    pb::CreateSessionResponse response;
    SLUICE_RETURN_IF_ERROR(Call(paths::kCreateSession, request, &response,
                                config_.options.operation_timeout_ms,
                                config_.options.task_deadline.count()));
    handle_ = response.session_handle();
    version_ = response.graph_version();
    sent_ = graph.num_nodes();
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

  absl::Status Call(const char* method,
                    const google::protobuf::MessageLite& request,
                    google::protobuf::MessageLite* response, int64_t timeout_ms,
                    int64_t wait_ms) {
    auto cancellation = std::make_shared<Cancellation>();
    {
      MutexLock lock(mu_);
      if (closing_) return ClosedByClient();
      open_.insert(cancellation);
    }
    MasterStub::Options options;
    options.timeout_ms = timeout_ms;
    options.wait_ms = wait_ms;
    options.cancellation = cancellation.get();
    if (config_.interrupted) options.interrupted = &config_.interrupted;
    absl::Status status = stub_->Call(method, request, response, options);
    MutexLock lock(mu_);
    open_.erase(cancellation);
    return status;
  }

  const std::unique_ptr<MasterStub> stub_;
  const SessionConfig config_;
  // Held while the session is opened or extended; taken before mu_.
  Mutex sync_mu_;
  // Set once, by the first Sync; steps come after it and need no lock.
  std::string handle_;
  int64_t version_ SLUICE_GUARDED_BY(sync_mu_) = 0;
  int sent_ SLUICE_GUARDED_BY(sync_mu_) = 0;
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

absl::StatusOr<std::shared_ptr<PreparedStep>> RemoteClient::Prepare(
    const StepSignature& signature) {
  return std::make_shared<RemoteStep>(*this, signature);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SessionClient>> MakeRemoteClient(
    const SessionConfig& config) {
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<MasterStub> stub,
                          MasterStub::Create(config.target));
  return std::make_unique<RemoteClient>(std::move(stub), config);
}

absl::Status Session::Reset(const std::string& target,
                            const std::vector<std::string>& containers,
                            const SessionOptions& options) {
  if (std::shared_ptr<Master> local = FindLocalMaster(target)) {
    Notification finished;
    absl::Status result;
    local->Reset(containers, [&](absl::Status status) {
      result = std::move(status);
      finished.Notify();
    });
    finished.Wait();
    return result;
  }
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<MasterStub> stub,
                          MasterStub::Create(target));
  pb::ResetRequest request;
  for (const std::string& container : containers)
    request.add_container(container);
  pb::ResetResponse response;
  MasterStub::Options call;
  call.timeout_ms = options.operation_timeout_ms;
  return stub->Call(paths::kReset, request, &response, call);
}

}  // namespace sluice
