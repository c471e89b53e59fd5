#include "sluice/session/session.h"

#include <algorithm>
#include <cstdlib>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/graph/build_context.h"
#include "sluice/master/device_count.h"
#include "sluice/session/session_client.h"

namespace sluice {
namespace {

constexpr char kGrpcPrefix[] = "grpc://";

// What a Run call asks for, by identity: nodes are append-only, so pointers
// never come to mean something else.
using RunKey = absl::InlinedVector<uintptr_t, 16>;

void Append(Output output, RunKey* key) {
  key->push_back(reinterpret_cast<uintptr_t>(output.node));
  key->push_back(output.index);
}

RunKey KeyOf(const std::vector<Session::Feed>& feeds,
             const std::vector<Output>& fetches,
             const std::vector<Node*>& targets) {
  RunKey key;
  for (const auto& [output, tensor] : feeds) Append(output, &key);
  key.push_back(0);
  for (const Output& fetch : fetches) Append(fetch, &key);
  key.push_back(0);
  for (const Node* node : targets) {
    key.push_back(reinterpret_cast<uintptr_t>(node));
  }
  return key;
}

absl::Status NoFactory(const std::string& target) {
  return NotFound(
      "No session factory registered for the given session options: {target: "
      "\"",
      target,
      "\" config: } Registered factories are {DIRECT_SESSION, GRPC_SESSION}.");
}

// The masters of this process's local sessions, for those who reset them all.
class LocalSessions {
 public:
  static LocalSessions& Get() {
    static LocalSessions* sessions = new LocalSessions;
    return *sessions;
  }
  void Add(const std::shared_ptr<Master>& master) {
    MutexLock lock(mu_);
    std::erase_if(masters_, [](const auto& known) { return known.expired(); });
    masters_.push_back(master);
  }
  std::vector<std::shared_ptr<Master>> Masters() {
    std::vector<std::shared_ptr<Master>> masters;
    MutexLock lock(mu_);
    for (const auto& known : masters_) {
      if (auto master = known.lock()) masters.push_back(std::move(master));
    }
    return masters;
  }

 private:
  Mutex mu_;
  std::vector<std::weak_ptr<Master>> masters_ SLUICE_GUARDED_BY(mu_);
};

// What `sluice run --soft-placement` sets for programs that do not ask
// themselves.
bool SoftPlacementByDefault() {
  const char* value = std::getenv("SLUICE_SOFT_PLACEMENT");
  return value != nullptr && std::string_view(value) == "1";
}

// "x" is the tensor "x:0".
std::string FullName(const std::string& tensor) {
  return tensor.find(':') == std::string::npos ? tensor + ":0" : tensor;
}

// A step that fetches a tensor more than once: asks for it once.
class RepeatingStep : public PreparedStep {
 public:
  RepeatingStep(std::shared_ptr<PreparedStep> step, size_t num_distinct,
                std::vector<size_t> sources)
      : step_(std::move(step)),
        num_distinct_(num_distinct),
        sources_(std::move(sources)) {}

  absl::Status Run(std::span<const Tensor> feeds, std::span<Tensor> fetches,
                   const RunOptions& options, RunMetadata* metadata) override {
    std::vector<Tensor> values(num_distinct_);
    SLUICE_RETURN_IF_ERROR(step_->Run(feeds, values, options, metadata));
    for (size_t i = 0; i < fetches.size(); ++i) {
      fetches[i] = values[sources_[i]];
    }
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<PreparedStep> step_;
  const size_t num_distinct_;
  const std::vector<size_t> sources_;  // Of each fetch.
};

}  // namespace

struct Session::State {
  SessionConfig config;
  Graph* graph;
  std::unique_ptr<SessionClient> client;

  Mutex mu;
  bool closed SLUICE_GUARDED_BY(mu) = false;
  absl::flat_hash_map<RunKey, std::shared_ptr<PreparedStep>> steps
      SLUICE_GUARDED_BY(mu);

  absl::Status CheckOpen() SLUICE_EXCLUDES(mu) {
    MutexLock lock(mu);
    if (!closed) return absl::OkStatus();
    return FailedPrecondition("Attempted to use a closed Session.");
  }
};

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}

Session::~Session() { Close().IgnoreError(); /* Nobody is left to tell. */ }

absl::StatusOr<std::unique_ptr<Session>> Session::Create(SessionConfig config,
                                                         Graph& graph) {
  if (SoftPlacementByDefault()) config.options.allow_soft_placement = true;
  if (config.options.cluster) config.options.cluster->target = config.target;
  auto state = std::make_unique<State>();
  state->config = config;
  state->graph = &graph;
  if (config.target.empty()) {
    SLUICE_RETURN_IF_ERROR(CheckDeviceCount(config.options.num_cpus));
    std::shared_ptr<Master> master = MakePrivateMaster(config.options);
    LocalSessions::Get().Add(master);
    state->client = MakeDirectClient(std::move(master), config);
  } else if (auto local = FindLocalMaster(config.target);
             local != nullptr && !config.options.use_rpc) {
    state->client = MakeDirectClient(std::move(local), config);
  } else if (config.target.starts_with(kGrpcPrefix)) {
    SLUICE_ASSIGN_OR_RETURN(state->client, MakeRemoteClient(config));
  } else {
    return NoFactory(config.target);
  }
  return std::unique_ptr<Session>(new Session(std::move(state)));
}

absl::StatusOr<std::shared_ptr<PreparedStep>> Session::Prepare(
    const StepSignature& signature, const RunOptions& options) {
  SLUICE_RETURN_IF_ERROR(state_->CheckOpen());
  SLUICE_RETURN_IF_ERROR(state_->client->Sync(*state_->graph, options));
  StepSignature distinct = signature;
  distinct.fetches.clear();
  std::vector<size_t> sources;
  absl::flat_hash_map<std::string, size_t> known;
  for (const std::string& name : signature.fetches) {
    const auto [it, is_new] =
        known.emplace(FullName(name), distinct.fetches.size());
    sources.push_back(it->second);
    if (is_new) distinct.fetches.push_back(name);
  }
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<PreparedStep> step,
                          state_->client->Prepare(distinct, options));
  if (distinct.fetches.size() == sources.size()) return step;
  return std::make_shared<RepeatingStep>(
      std::move(step), distinct.fetches.size(), std::move(sources));
}

absl::Status Session::Run(const std::vector<Feed>& feeds,
                          const std::vector<Output>& fetches,
                          const std::vector<Node*>& targets,
                          std::vector<Tensor>* fetched) {
  return Run(feeds, fetches, targets, RunOptions(), fetched, nullptr);
}

absl::Status Session::Run(const std::vector<Feed>& feeds,
                          const std::vector<Output>& fetches,
                          const std::vector<Node*>& targets,
                          const RunOptions& options,
                          std::vector<Tensor>* fetched, RunMetadata* metadata) {
  const RunKey key = KeyOf(feeds, fetches, targets);
  std::shared_ptr<PreparedStep> step;
  {
    MutexLock lock(state_->mu);
    if (state_->closed) {
      return FailedPrecondition("Attempted to use a closed Session.");
    }
    if (auto it = state_->steps.find(key); it != state_->steps.end()) {
      step = it->second;
    }
  }
  if (step == nullptr) {
    // First, as it is why a fetch may be missing.
    SLUICE_RETURN_IF_ERROR(*state_->graph->build().error());
    StepSignature signature;
    for (const auto& [output, tensor] : feeds) {
      if (!output) return InvalidArgument("A feed names no tensor");
      signature.feeds.push_back(TensorName(output));
    }
    for (const Output& fetch : fetches) {
      if (!fetch) return InvalidArgument("A fetch names no tensor");
      signature.fetches.push_back(TensorName(fetch));
    }
    for (const Node* node : targets) {
      if (node == nullptr) return InvalidArgument("A target names no node");
      signature.targets.push_back(node->name());
    }
    SLUICE_ASSIGN_OR_RETURN(step, Prepare(signature, options));
    MutexLock lock(state_->mu);
    if (!state_->closed) state_->steps.emplace(key, step);
  }
  absl::InlinedVector<Tensor, 4> values;
  for (const auto& [output, tensor] : feeds) values.push_back(tensor);
  std::vector<Tensor> unused;
  std::vector<Tensor>& results = fetched != nullptr ? *fetched : unused;
  results.clear();
  results.resize(fetches.size());
  return step->Run({values.data(), values.size()}, results, options, metadata);
}

absl::StatusOr<std::string> Session::SetUpPartialRun(
    const StepSignature& signature) {
  SLUICE_RETURN_IF_ERROR(state_->CheckOpen());
  SLUICE_RETURN_IF_ERROR(state_->client->Sync(*state_->graph, {}));
  return state_->client->SetUpPartialRun(signature);
}

absl::Status Session::RunPartially(const std::string& name,
                                   PartialRunArgs args) {
  SLUICE_RETURN_IF_ERROR(state_->CheckOpen());
  if (args.feed_names.size() != args.feeds.size() ||
      args.fetch_names.size() != args.fetches.size()) {
    return InvalidArgument("Each feed and fetch needs a name and a tensor");
  }
  return state_->client->RunPartially(name, std::move(args));
}

absl::StatusOr<Tensor> Session::Eval(Output fetch,
                                     const std::vector<Feed>& feeds) {
  std::vector<Tensor> fetched;
  SLUICE_RETURN_IF_ERROR(Run(feeds, {fetch}, {}, &fetched));
  return std::move(fetched[0]);
}

absl::Status Session::Run(Node* target, const std::vector<Feed>& feeds) {
  return Run(feeds, {}, {target}, nullptr);
}

absl::StatusOr<std::vector<DeviceInfo>> Session::ListDevices() {
  // As TensorFlow says it here.
  if (!state_->CheckOpen().ok()) return Cancelled("Session has been closed.");
  SLUICE_RETURN_IF_ERROR(state_->client->Sync(*state_->graph, {}));
  return state_->client->ListDevices();
}

const std::string& Session::target() const { return state_->config.target; }

absl::Status Session::Close() {
  // Steps hold kernels, and kernels what is the session's own, as its queues.
  absl::flat_hash_map<RunKey, std::shared_ptr<PreparedStep>> steps;
  {
    MutexLock lock(state_->mu);
    if (state_->closed) return absl::OkStatus();
    state_->closed = true;
    steps.swap(state_->steps);
  }
  steps.clear();
  return state_->client->Close();
}

void Session::Interrupt() { state_->client->Interrupt(); }

absl::Status Session::Reset(const SessionConfig& config,
                            const std::vector<std::string>& containers) {
  if (config.target.empty()) {
    for (const auto& local : LocalSessions::Get().Masters()) {
      SLUICE_RETURN_IF_ERROR(ResetDirectly(*local, config, containers));
    }
    return absl::OkStatus();
  }
  if (std::shared_ptr<Master> local = FindLocalMaster(config.target)) {
    return ResetDirectly(*local, config, containers);
  }
  if (!config.target.starts_with(kGrpcPrefix)) return NoFactory(config.target);
  return ResetRemotely(config, containers);
}

}  // namespace sluice
