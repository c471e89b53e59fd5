#include "sluice/train/session_run_hook.h"

namespace sluice {

absl::Status SessionRunHook::Begin(Graph&) { return absl::OkStatus(); }

absl::Status SessionRunHook::AfterCreateSession(std::shared_ptr<Session>,
                                                Coordinator&) {
  return absl::OkStatus();
}

absl::StatusOr<SessionRunArgs> SessionRunHook::BeforeRun(SessionRunContext&) {
  return SessionRunArgs();
}

absl::Status SessionRunHook::AfterRun(SessionRunContext&,
                                      const std::vector<Tensor>&) {
  return absl::OkStatus();
}

absl::Status SessionRunHook::End(Session&) { return absl::OkStatus(); }

}  // namespace sluice
