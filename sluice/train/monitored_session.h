// MonitoredSession: a session that initialises or restores its model, runs
// hooks around every step, and makes itself anew when a task of the cluster was
// lost (ABORTED, UNAVAILABLE).
//
//   auto session = MonitoredTrainingSession(graph, {.checkpoint_dir = dir});
//   absl::Status status = session.status();
//   while (status.ok() && !(*session)->ShouldStop()) {
//     status = (*session)->Run({}, {}, {train}, nullptr);
//   }
//   return (*session)->Close(status);
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/session/session.h"
#include "sluice/train/coordinator.h"
#include "sluice/train/scaffold.h"
#include "sluice/train/session_run_hook.h"

namespace sluice {

// Makes the sessions of a MonitoredSession.
class SessionCreator {
 public:
  virtual ~SessionCreator() = default;
  virtual absl::StatusOr<std::shared_ptr<Session>> CreateSession() = 0;
  // Says in any of its sessions what of the model has no value, so that a step
  // that misses one is known to have met a lost task. None: it counts as one
  // once between two steps that succeed.
  virtual Output ready_op() const { return {}; }
};

// Restores the newest checkpoint or initialises the model.
class ChiefSessionCreator : public SessionCreator {
 public:
  ChiefSessionCreator(Graph& graph, const std::shared_ptr<Scaffold>& scaffold,
                      SessionConfig config = {},
                      std::string checkpoint_dir = {},
                      std::string checkpoint_path = {},
                      bool continue_live_training = true);
  absl::StatusOr<std::shared_ptr<Session>> CreateSession() override;
  Output ready_op() const override { return scaffold_->ready_op; }

 private:
  Graph& graph_;
  const std::shared_ptr<Scaffold> scaffold_;
  const SessionConfig config_;
  const std::string checkpoint_dir_;
  const std::string checkpoint_path_;
  const bool continue_live_training_;
};

// Waits until the chief has made the model ready.
class WorkerSessionCreator : public SessionCreator {
 public:
  WorkerSessionCreator(Graph& graph, const std::shared_ptr<Scaffold>& scaffold,
                       SessionConfig config = {}, double max_wait_secs = 1800);
  absl::StatusOr<std::shared_ptr<Session>> CreateSession() override;
  Output ready_op() const override { return scaffold_->ready_op; }

 private:
  Graph& graph_;
  const std::shared_ptr<Scaffold> scaffold_;
  const SessionConfig config_;
  const double max_wait_secs_;
};

using Hooks = std::vector<std::shared_ptr<SessionRunHook>>;

struct MonitoredSessionOptions {
  // How long threads may take to end when the session is closed.
  double stop_grace_period_secs = 120;
  // False: an error of a lost task ends the training as any other.
  bool recover = true;
};

// Thread-compatible: one thread runs it.
class MonitoredSession {
 public:
  // The graph must outlive it. Calls Begin of every hook, then makes the first
  // session.
  static absl::StatusOr<std::unique_ptr<MonitoredSession>> Create(
      Graph& graph, std::unique_ptr<SessionCreator> creator, Hooks hooks = {},
      MonitoredSessionOptions options = {});
  // Closes as after an error: hooks do not see an end.
  ~MonitoredSession();

  // Runs a step with all hooks. A step that met a lost task is run again in a
  // new session, so it may be applied twice.
  absl::Status Run(const std::vector<Session::Feed>& feeds,
                   const std::vector<Output>& fetches,
                   const std::vector<Node*>& targets,
                   std::vector<Tensor>* fetched);

  // Handed to the function of RunStepFn.
  class StepContext {
   public:
    // To run without hooks.
    Session& session() const { return *owner_.session_; }
    absl::Status RunWithHooks(const std::vector<Session::Feed>& feeds,
                              const std::vector<Output>& fetches,
                              const std::vector<Node*>& targets,
                              std::vector<Tensor>* fetched);
    // ShouldStop is true from now on.
    void RequestStop() { owner_.stop_ = true; }

   private:
    friend class MonitoredSession;
    explicit StepContext(MonitoredSession& owner) : owner_(owner) {}
    MonitoredSession& owner_;
  };
  // Calls `step`; again in a new session when it met a lost task.
  absl::Status RunStepFn(const std::function<absl::Status(StepContext&)>& step);

  // Whether a hook, a thread or an error asked to stop. May make a new session.
  bool ShouldStop();

  // Ends the training. `reason` is why the loop ended: OK and OUT_OF_RANGE (the
  // input ended) are good and let hooks see the end. Returns what went wrong, a
  // bad reason first. A second call is FAILED_PRECONDITION.
  absl::Status Close(const absl::Status& reason = absl::OkStatus());

  // The session inside; null when closed.
  Session* session() const { return session_.get(); }

 private:
  MonitoredSession(Graph& graph, std::unique_ptr<SessionCreator> creator,
                   Hooks hooks, MonitoredSessionOptions options);
  absl::Status CreateSessionOnce();
  absl::Status CreateSession();
  absl::Status CloseSession();
  absl::Status Recovering(const std::function<absl::Status()>& call);
  absl::Status RunWithHooks(const std::vector<Session::Feed>& feeds,
                            const std::vector<Output>& fetches,
                            const std::vector<Node*>& targets,
                            std::vector<Tensor>* fetched);
  bool IsLost(const absl::Status& status) const;

  Graph& graph_;
  const std::unique_ptr<SessionCreator> creator_;
  const Hooks hooks_;
  const MonitoredSessionOptions options_;
  const bool was_finalized_;
  std::shared_ptr<Session> session_;
  std::unique_ptr<Coordinator> coordinator_;
  bool stop_ = false;
  bool closed_ = false;
  // Whether a step of this session has found all it reads.
  bool has_run_ = false;
};

struct TrainingSessionOptions {
  // "" trains in this process, "grpc://host:port" on the master there.
  std::string master = {};
  SessionOptions config = {};
  // Exactly one task of a cluster initialises, restores and saves.
  bool is_chief = true;
  // Empty: no checkpoints and no summaries.
  std::string checkpoint_dir = {};
  std::shared_ptr<Scaffold> scaffold = {};
  Hooks hooks = {};
  Hooks chief_only_hooks = {};
  // One of each pair; 0 is never. Neither: checkpoints every 600 s, summaries
  // every 100 steps.
  std::optional<double> save_checkpoint_secs = std::nullopt;
  std::optional<int64_t> save_checkpoint_steps = std::nullopt;
  std::optional<double> save_summaries_secs = std::nullopt;
  std::optional<int64_t> save_summaries_steps = std::nullopt;
  double stop_grace_period_secs = 120;
  // 0: steps per second are not logged.
  int64_t log_step_count_steps = 100;
  // How long a worker waits for the chief.
  double max_wait_secs = 7200;
  // Empty: checkpoint_dir.
  std::string summary_dir = {};
  // A chief that was started anew goes on from the model in the parameter
  // servers if other workers have brought that further than the checkpoint.
  bool continue_live_training = true;
};

// A MonitoredSession set up for training, on the chief or on a worker.
absl::StatusOr<std::unique_ptr<MonitoredSession>> MonitoredTrainingSession(
    Graph& graph, TrainingSessionOptions options = {});

}  // namespace sluice
