// SyncReplicasChief: the threads of the chief of a synchronous training. One
// runs the updates; the other sees to it that they do not wait for ever.
// TokenWait: tells when another worker waits long for the chief.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/clock.h"
#include "sluice/base/mutex.h"
#include "sluice/graph/graph.h"
#include "sluice/session/session.h"
#include "sluice/train/coordinator.h"

namespace sluice {

struct SyncReplicasOptions {
  // A step that has waited so long for gradients, and much longer than steps
  // usually do, names those it waits for and lets other workers compute what is
  // missing, as the token of a worker that died is lost. 0: it waits for ever.
  double step_timeout_secs = 30;
  // Above 0: later steps are then made of fewer gradients, but not of fewer
  // than these.
  int least_replicas = 0;
};

// What it runs. Nodes belong to the graph.
struct SyncReplicasOps {
  Node* update = nullptr;        // Takes gradients, updates, hands out tokens.
  std::vector<Output> required;  // How many gradients it takes, by variable.
  std::vector<Output> counts;    // How many there are, by variable.
  std::vector<std::string> names;  // Of the accumulators.
  Output step;
  Node* hand_out = nullptr;  // One more token of the present step.
  Node* close = nullptr;     // No more tokens come.
};

// Lives until its threads have ended. Thread-safe.
class SyncReplicasChief
    : public std::enable_shared_from_this<SyncReplicasChief> {
 public:
  SyncReplicasChief(SyncReplicasOps ops, int replicas,
                    SyncReplicasOptions options);

  // Both end when the coordinator stops.
  void Start(const std::shared_ptr<Session>& session, Coordinator& coordinator);
  // This session is the training's last: when it stops, workers that wait for a
  // token are told that there is none.
  void TrainingEnded();

 private:
  absl::Status Update(Session& session);
  void Watch(Session& session, const Coordinator& coordinator);
  absl::Status Look(Session& session);
  int required() const;
  bool StoppedWithin(std::chrono::milliseconds time);

  const SyncReplicasOps ops_;
  const int replicas_;
  const SyncReplicasOptions options_;

  mutable Mutex mu_;
  CondVar stopped_;
  bool ended_ SLUICE_GUARDED_BY(mu_) = false;
  bool updating_ SLUICE_GUARDED_BY(mu_) = false;
  int required_ SLUICE_GUARDED_BY(mu_);
  double typical_secs_ SLUICE_GUARDED_BY(mu_) = 0;
  // The step under way, and when something was last said or done about it.
  SteadyTime began_ SLUICE_GUARDED_BY(mu_);
  SteadyTime said_ SLUICE_GUARDED_BY(mu_);
  SteadyTime acted_ SLUICE_GUARDED_BY(mu_);
};

// Lives until its thread has ended. Thread-safe.
class TokenWait : public std::enable_shared_from_this<TokenWait> {
 public:
  // Looks at the steps of a session on `target` until the coordinator stops.
  void Start(std::string target, Coordinator& coordinator);
  void Begin();
  void End();

 private:
  void Look(const std::string& target);

  Mutex mu_;
  std::optional<SteadyTime> began_ SLUICE_GUARDED_BY(mu_);
  SteadyTime said_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace sluice
