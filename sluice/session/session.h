// Session: runs steps of a graph, in this process or on a server.
//
//   Graph graph;
//   Scope scope(graph);
//   Output y = …;
//   auto session = Session::Create({}, graph);
//   absl::StatusOr<Tensor> value = (*session)->Eval(y, {{x, fed}});
//   std::vector<Tensor> out;
//   absl::Status status = (*session)->Run({{x, fed}}, {y}, {}, &out);
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/graph/graph.h"
#include "sluice/master/options.h"
#include "sluice/master/partial_run.h"
#include "sluice/passes/step_graph.h"
#include "sluice/rpc/tls.h"

namespace sluice {

struct SessionConfig {
  // "" runs in this process with devices of its own; "grpc://host:port" on the
  // master there (directly, if that server lives in this process).
  std::string target;
  SessionOptions options = {};
  // A serialized ConfigProto to send to a remote master in place of `options`.
  std::string config_proto = {};
  // How long Session::Create waits for a sign of life of a master in another
  // process, after which it fails with DEADLINE_EXCEEDED. 0: it does not ask.
  int64_t connect_timeout_ms = 0;
  // For a master in another process. Empty: the environment's.
  TlsOptions tls = {};
  // Asked now and then on a thread that a call of the session blocks, without
  // any lock; true ends that call with CANCELLED. May be empty.
  std::function<bool()> interrupted = {};
  // Held while the session reads the graph, never while it waits: for a graph
  // that grows meanwhile. May be null.
  std::mutex* graph_mu = nullptr;
};

// A kind of step, prepared once. Thread-safe; the session outlives it.
class PreparedStep {
 public:
  virtual ~PreparedStep() = default;
  // Feeds and fetches in the order of the signature. `fetches` has one element
  // per fetch. `metadata` may be null.
  virtual absl::Status Run(std::span<const Tensor> feeds,
                           std::span<Tensor> fetches, const RunOptions& options,
                           RunMetadata* metadata) = 0;
};

// Thread-safe: many threads may run steps at once. The graph may grow between
// runs; whoever grows it while others run must lock SessionConfig::graph_mu.
class Session {
 public:
  using Feed = std::pair<Output, Tensor>;

  // `graph` must outlive the session. Without `connect_timeout_ms` no
  // connection is made before the first step, so a client may start before its
  // master.
  static absl::StatusOr<std::unique_ptr<Session>> Create(SessionConfig config,
                                                         Graph& graph);
  // Closes without waiting for steps of other threads.
  ~Session();

  // Runs what `fetches` and `targets` need. `fetched` (may be null) gets one
  // tensor per fetch. Reports the first error of the scopes that built the
  // graph.
  absl::Status Run(const std::vector<Feed>& feeds,
                   const std::vector<Output>& fetches,
                   const std::vector<Node*>& targets,
                   std::vector<Tensor>* fetched);
  absl::Status Run(const std::vector<Feed>& feeds,
                   const std::vector<Output>& fetches,
                   const std::vector<Node*>& targets, const RunOptions& options,
                   std::vector<Tensor>* fetched, RunMetadata* metadata);
  // The value of one tensor.
  absl::StatusOr<Tensor> Eval(Output fetch,
                              const std::vector<Feed>& feeds = {});
  // Runs one node for what it does.
  absl::Status Run(Node* target, const std::vector<Feed>& feeds = {});
  // Prepares a step; sends new nodes of the graph first. A prepared step stays
  // valid when the graph grows. `options` limit the time it takes; a step with
  // connections on a remote master is traced or not by them.
  absl::StatusOr<std::shared_ptr<PreparedStep>> Prepare(
      const StepSignature& signature, const RunOptions& options = {});

  // A step in several calls: names what will be fed and fetched, then runs as
  // far as each call's feeds and fetches go. It is over when all have come, or
  // with the first error.
  absl::StatusOr<std::string> SetUpPartialRun(const StepSignature& signature);
  absl::Status RunPartially(const std::string& name, PartialRunArgs args);

  absl::StatusOr<std::vector<DeviceInfo>> ListDevices();
  // Where its steps are run; empty in this process.
  const std::string& target() const;

  // Ends running steps with CANCELLED; later calls fail. Idempotent. ABORTED if
  // the master has forgotten the session. A master that is away and steps that
  // do not end are no error: after the operation timeout, or 10 s if that is
  // less, it returns and leaves them alone.
  absl::Status Close();

  // Ends whatever Run of this session blocks in, from another thread (Ctrl-C).
  void Interrupt();

  // Closes all sessions of the master at the target and clears containers.
  static absl::Status Reset(const SessionConfig& config,
                            const std::vector<std::string>& containers);

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace sluice
