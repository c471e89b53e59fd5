// Supervisor: prepares a session as older training programs do it, with threads
// that save, record summaries and count steps.
//
//   Supervisor supervisor(graph, {.is_chief = task == 0, .logdir = dir});
//   absl::Status status = supervisor.ManagedSession(
//       server->target(), [&](Session& session) -> absl::Status {
//         while (!supervisor.ShouldStop()) …
//       });
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/session/session.h"
#include "sluice/train/coordinator.h"
#include "sluice/train/saver.h"
#include "sluice/train/scaffold.h"
#include "sluice/train/summary_writer.h"

namespace sluice {

struct SupervisorOptions {
  // Others wait for the chief; logdir and the services are the chief's.
  bool is_chief = true;
  // Empty: nothing is saved or recorded.
  std::string logdir = {};
  // Ops that are not given come from the graph's collections or are made.
  Node* init_op = nullptr;
  std::vector<Session::Feed> init_feeds = {};
  std::function<absl::Status(Session&)> init_fn = {};
  Node* local_init_op = nullptr;
  Output ready_op = {};
  // Not made when missing.
  Output ready_for_local_init_op = {};
  Output summary_op = {};
  std::shared_ptr<Saver> saver = {};
  // Any integer variable; none: the graph's global step, if it has one.
  Variable global_step = {};
  // 0: never.
  double save_summaries_secs = 120;
  double save_model_secs = 600;
  double recovery_wait_secs = 30;
  double stop_grace_secs = 120;
  std::string checkpoint_basename = "model.ckpt";
  // When it stops, and not because of an error, it saves once more; if it saves
  // at all.
  bool save_on_stop = true;
  // A chief that was started anew goes on from the model in the parameter
  // servers if other workers have brought that further than the checkpoint.
  bool continue_live_training = true;
  // ManagedSession outlives the loss of a task (ABORTED, UNAVAILABLE): its body
  // is called again with a new session, restored or waited for as the first
  // one was.
  bool recover = false;
};

struct PrepareOptions {
  // The chief's services, and queue runners.
  bool start_services = true;
  // The chief waits for a checkpoint in place of initialising the model.
  bool wait_for_checkpoint = false;
  double max_wait_secs = 7200;
};

struct StopOptions {
  bool close_summary_writer = true;
  // Threads that do not stop in time are logged and no error.
  bool ignore_live_threads = false;
};

// Closes the graph to new nodes. Errors of its making come from
// PrepareOrWaitForSession. One thread drives it; the graph outlives it.
class Supervisor {
 public:
  explicit Supervisor(Graph& graph, SupervisorOptions options = {});
  // Stops.
  ~Supervisor();

  // A session on a model that is ready: the chief restores or initialises it,
  // others wait. Starts services and queue runners unless told not to.
  absl::StatusOr<std::shared_ptr<Session>> PrepareOrWaitForSession(
      const SessionConfig& config, const PrepareOptions& options = {});
  // Prepares a session, calls `body`, stops, closes. Returns the first error of
  // body or a thread; OUT_OF_RANGE is none. A body runs until ShouldStop, and
  // with `recover` perhaps more than once.
  absl::Status ManagedSession(
      const SessionConfig& config,
      const std::function<absl::Status(Session&)>& body);

  // Threads that save, record and count, at once and then on time.
  absl::Status StartStandardServices(std::shared_ptr<Session> session);
  // Those of the graph; they stop with the others.
  absl::Status StartQueueRunners(const std::shared_ptr<Session>& session);
  // Calls `body` every `interval_secs` (0: back to back) until all stop.
  void Loop(double interval_secs, std::function<absl::Status()> body);
  void RequestStop(absl::Status error = absl::OkStatus());
  bool ShouldStop() const { return coordinator_.ShouldStop(); }
  // Blocks until somebody asks for it.
  void WaitForStop() const;
  // Waits for the threads, saves if that is wanted and closes the event file.
  absl::Status Stop(const StopOptions& options = {});

  // Records a summary that the program computed itself; without a step, for
  // the one that the session is at.
  absl::Status SummaryComputed(Session& session, const Tensor& summary,
                               std::optional<int64_t> step = std::nullopt);

  bool is_chief() const { return options_.is_chief; }
  Node* init_op() const { return ops_.init_op; }
  Node* local_init_op() const { return ops_.local_init_op; }
  Output ready_op() const { return ops_.ready_op; }
  Output ready_for_local_init_op() const {
    return ops_.ready_for_local_init_op;
  }
  Coordinator& coordinator() { return coordinator_; }
  Saver* saver() const { return ops_.saver.get(); }
  const Variable& global_step() const { return options_.global_step; }
  Output summary_op() const { return ops_.summary_op; }
  // Null without a logdir and on workers.
  SummaryWriter* summary_writer() const { return writer_.get(); }
  const std::string& save_path() const { return save_path_; }

 private:
  absl::Status Setup();
  // One session of ManagedSession; says whether another is to follow.
  absl::Status RunOnce(const SessionConfig& config,
                       const std::function<absl::Status(Session&)>& body,
                       bool* goes_on);
  absl::Status WriteGraphOnce();
  absl::Status SaveOnce(Session& session);
  absl::Status SaveAtTheEnd();
  absl::Status RecordSummaries(Session& session);

  Graph& graph_;
  SupervisorOptions options_;
  Scaffold ops_;
  absl::Status setup_;
  std::string save_path_;
  std::shared_ptr<SummaryWriter> writer_;
  bool graph_written_ = false;
  // Whether a thread saves, and what it saved last.
  bool saves_ = false;
  std::optional<int64_t> saved_step_;
  Coordinator coordinator_;
  // The service threads use it until they stop.
  std::shared_ptr<Session> session_;
};

// Calls `step` until the supervisor is to stop, in new sessions when a task is
// lost, whether the supervisor recovers or not.
absl::Status BasicTrainLoop(Supervisor& supervisor, const SessionConfig& config,
                            const std::function<absl::Status(Session&)>& step);

}  // namespace sluice
