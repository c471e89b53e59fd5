// SessionRunHook: code that a monitored session calls around every step, and
// that may fetch and feed tensors in it.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/graph/graph.h"
#include "sluice/session/session.h"
#include "sluice/train/coordinator.h"

namespace sluice {

// What a step is asked for.
struct SessionRunArgs {
  std::vector<Output> fetches = {};
  std::vector<Session::Feed> feeds = {};
  // Record what the step does; SessionRunContext::metadata has it then.
  bool trace = false;
};

// One step, as hooks see it.
class SessionRunContext {
 public:
  SessionRunContext(Session& session, const SessionRunArgs& original)
      : session_(session), original_(original) {}

  // The session itself, to run steps without hooks.
  Session& session() const { return session_; }
  // What the caller of the step asked for.
  const SessionRunArgs& original() const { return original_; }
  // The training stops after this step.
  void RequestStop() { stop_requested_ = true; }
  bool stop_requested() const { return stop_requested_; }
  // Of the step, in AfterRun, if some hook asked for a trace.
  const RunMetadata& metadata() const { return metadata_; }

 private:
  friend class MonitoredSession;
  Session& session_;
  const SessionRunArgs& original_;
  RunMetadata metadata_;
  bool stop_requested_ = false;
};

// All calls come from the thread that runs the session. An error ends the
// training with it, unless it is one a session recovers from.
class SessionRunHook {
 public:
  virtual ~SessionRunHook() = default;

  // Once, before the first session: the last chance to add to the graph.
  virtual absl::Status Begin(Graph& graph);
  // After each session that is made, also when one is made anew.
  virtual absl::Status AfterCreateSession(std::shared_ptr<Session> session,
                                          Coordinator& coordinator);
  // What to fetch and feed in the next step.
  virtual absl::StatusOr<SessionRunArgs> BeforeRun(SessionRunContext& context);
  // `results` are what BeforeRun asked for. Not called when the step failed.
  virtual absl::Status AfterRun(SessionRunContext& context,
                                const std::vector<Tensor>& results);
  // At the end, unless that is an error.
  virtual absl::Status End(Session& session);
};

}  // namespace sluice
