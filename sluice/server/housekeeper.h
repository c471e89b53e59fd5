// Housekeeper: what a started task does now and then by itself: it ends the
// sessions of processes that are gone, and says which steps are stuck.
#pragma once

#include <memory>

#include "sluice/rpc/session_uses.h"
#include "sluice/server/stalls.h"
#include "sluice/server/status.h"

namespace sluice {

struct HousekeeperOptions {
  // A step that waits this long gets a line; 0: none does.
  double stall_seconds = 60;
  SessionUses::Limits sessions;
  // What other tasks are asked with; empty: the environment's.
  TlsOptions tls = {};

  // SLUICE_STALL_SECONDS, SLUICE_SESSION_GRACE_SECONDS and
  // SLUICE_SESSION_IDLE_SECONDS overrule.
  static HousekeeperOptions FromEnvironment();
};

// Thread-safe. Stops when the last reference goes.
class Housekeeper : public std::enable_shared_from_this<Housekeeper> {
 public:
  static std::shared_ptr<Housekeeper> Start(TaskParts task,
                                            const HousekeeperOptions& options);

 private:
  Housekeeper(TaskParts task, const HousekeeperOptions& options)
      : task_(std::move(task)),
        options_(options),
        stalls_(options.stall_seconds) {}
  void Tick();
  void Schedule();
  void CollectSessions();
  void LookForStalls();

  const TaskParts task_;
  const HousekeeperOptions options_;
  StallWatch
      stalls_;  // Used by Tick alone, which is never called twice at once.
};

}  // namespace sluice
