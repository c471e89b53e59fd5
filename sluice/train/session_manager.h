// SessionManager: sessions on a model that is ready: initialised or restored
// here, or by somebody else.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/client/variable.h"
#include "sluice/graph/graph.h"
#include "sluice/session/session.h"
#include "sluice/train/saver.h"

namespace sluice {

// Asks `op` (ready_op and its like) what is not initialised: empty if nothing.
// `what` begins the line that is logged for an error.
absl::StatusOr<std::string> FindUninitialized(Session& session, Output op,
                                              std::string_view what);

// How a model becomes ready. All may be missing.
struct ReadyOps {
  Node* local_init_op = nullptr;
  // Vectors of the names of what is not initialised yet.
  Output ready_op;
  Output ready_for_local_init_op;  // Needs a local_init_op.
};

struct InitOptions {
  Node* init_op = nullptr;
  std::vector<Session::Feed> init_feeds = {};
  // Called after init_op.
  std::function<absl::Status(Session&)> init_fn = {};
};

struct RestoreOptions {
  Saver* saver = nullptr;
  // The newest checkpoint of a directory, or one checkpoint.
  std::string checkpoint_dir = {};
  std::string checkpoint_path = {};
  // Wait for a checkpoint that is not there yet.
  bool wait_for_checkpoint = false;
  double max_wait_secs = 7200;
  // A chief that was started anew does not take back what other workers have
  // trained meanwhile: a model in the cluster that is further than the newest
  // checkpoint, or moves, stays as it is.
  bool continue_live_training = true;
  // None: the graph's.
  Variable global_step = {};
};

// Thread-compatible.
class SessionManager {
 public:
  // Looks for readiness and checkpoints come more and more slowly, at most
  // `recovery_wait_secs` apart.
  SessionManager(Graph& graph, ReadyOps ops, double recovery_wait_secs = 30);

  // Restores the model if there is a checkpoint, else initialises it. The
  // newest checkpoint that is damaged gives way to the one before it.
  absl::StatusOr<std::shared_ptr<Session>> PrepareSession(
      const SessionConfig& config, const InitOptions& init,
      const RestoreOptions& restore = {});
  // Restores, never initialises; says whether the model is ready.
  absl::StatusOr<std::pair<std::shared_ptr<Session>, bool>> RecoverSession(
      const SessionConfig& config, const RestoreOptions& restore);
  // Waits until somebody else made the model ready; DEADLINE_EXCEEDED after
  // `max_wait_secs`.
  absl::StatusOr<std::shared_ptr<Session>> WaitForSession(
      const SessionConfig& config,
      double max_wait_secs = std::numeric_limits<double>::infinity());

 private:
  // Empty if ready, else why not.
  using Readiness = absl::StatusOr<std::string>;

  absl::StatusOr<bool> Restore(Session& session, const RestoreOptions& options);
  absl::StatusOr<bool> RestoreFromDir(Session& session,
                                      const RestoreOptions& options);
  // The global step of a model that is whole in a cluster; none otherwise.
  absl::StatusOr<std::optional<int64_t>> LiveStep(
      Session& session, const RestoreOptions& options);
  // Whether the cluster holds a later model than the checkpoint.
  absl::StatusOr<bool> IsAhead(Session& session, const RestoreOptions& options,
                               const std::string& checkpoint);
  // Whether others train the model at this moment.
  absl::StatusOr<bool> IsBeingTrained(Session& session,
                                      const RestoreOptions& options);
  Readiness ModelReady(Session& session);
  Readiness TryLocalInit(Session& session);

  Graph& graph_;
  const ReadyOps ops_;
  const double recovery_wait_secs_;
};

}  // namespace sluice
