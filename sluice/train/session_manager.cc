#include "sluice/train/session_manager.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "absl/strings/str_join.h"
#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/client/collections.h"
#include "sluice/io/bundle_reader.h"
#include "sluice/io/checkpoint_state.h"
#include "sluice/train/global_step.h"

namespace sluice {
namespace {

using Seconds = std::chrono::duration<double>;
using SteadyClock = std::chrono::steady_clock;

constexpr Seconds kFirstWait(0.05);
constexpr Seconds kLongestWait(2);
// A model that others train makes a step in this time.
constexpr Seconds kMovesWithin(0.2);
// Between lines that say that somebody waits.
constexpr Seconds kSayInterval(10);

// Sleeps longer each time, up to a limit; says so now and then.
class Waiting {
 public:
  explicit Waiting(double longest)
      : longest_(std::min(kLongestWait, Seconds(longest))),
        next_(std::min(kFirstWait, longest_)) {}

  void Sleep(const std::string& why) {
    const auto now = SteadyClock::now();
    if (!said_ || now - last_ >= kSayInterval) {
      said_ = true;
      last_ = now;
      SLUICE_LOG(INFO) << why;
    }
    std::this_thread::sleep_for(next_);
    next_ = std::min(next_ * 2, longest_);
  }

 private:
  const Seconds longest_;
  Seconds next_;
  bool said_ = false;
  SteadyClock::time_point last_;
};

// A task is away, or was started anew.
bool IsLost(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsUnavailable(status);
}

std::string NameOf(const Node* node) {
  return node == nullptr ? "None" : node->name();
}

}  // namespace

absl::StatusOr<std::string> FindUninitialized(Session& session, Output op,
                                              std::string_view what) {
  if (!op) return std::string();
  std::vector<Tensor> missing;
  const absl::Status status = session.Run({}, {op}, {}, &missing);
  if (absl::IsFailedPrecondition(status)) {
    if (status.message().find("uninitialized") != absl::string_view::npos) {
      return std::string(status.message());
    }
    SLUICE_LOG(WARNING) << what << " : error [" << status.message() << "]";
  }
  SLUICE_RETURN_IF_ERROR(status);
  // Old programs give an int32 in its place, which says nothing.
  if (missing[0].dtype() != DType::kString || missing[0].size() == 0) {
    return std::string();
  }
  return StrCat("Variables not initialized: ",
                absl::StrJoin(missing[0].data<std::string>(), ", "));
}

SessionManager::SessionManager(Graph& graph, ReadyOps ops,
                               double recovery_wait_secs)
    : graph_(graph), ops_(ops), recovery_wait_secs_(recovery_wait_secs) {}

SessionManager::Readiness SessionManager::ModelReady(Session& session) {
  return FindUninitialized(session, ops_.ready_op, "Model not ready");
}

SessionManager::Readiness SessionManager::TryLocalInit(Session& session) {
  if (ops_.local_init_op == nullptr) return std::string();
  SLUICE_ASSIGN_OR_RETURN(
      std::string why, FindUninitialized(session, ops_.ready_for_local_init_op,
                                         "Model not ready for local init"));
  if (!why.empty()) return why;
  SLUICE_LOG(INFO) << "Running local_init_op.";
  SLUICE_RETURN_IF_ERROR(session.Run({}, {}, {ops_.local_init_op}, nullptr));
  SLUICE_LOG(INFO) << "Done running local_init_op.";
  return std::string();
}

absl::StatusOr<std::optional<int64_t>> SessionManager::LiveStep(
    Session& session, const RestoreOptions& options) {
  const Variable step =
      options.global_step ? options.global_step : GetGlobalStep(graph_);
  const Output ready = ops_.ready_for_local_init_op
                           ? ops_.ready_for_local_init_op
                           : ops_.ready_op;
  if (!options.continue_live_training || session.target().empty() || !step ||
      !ready) {
    return std::nullopt;
  }
  std::vector<Tensor> missing;
  absl::Status status = session.Run({}, {ready}, {}, &missing);
  if (IsLost(status)) return status;
  if (!status.ok() || missing[0].dtype() != DType::kString) return std::nullopt;
  // An earlier session of this task took its local variables along.
  std::set<std::string> local;
  for (const Variable& var : LocalVariables(graph_)) local.insert(var.name());
  for (const std::string& name : missing[0].data<std::string>()) {
    if (!local.contains(name)) return std::nullopt;
  }
  const absl::StatusOr<int64_t> value = GlobalStep(session, step);
  if (IsLost(value.status())) return value.status();
  if (!value.ok()) return std::nullopt;
  return *value;
}

absl::StatusOr<bool> SessionManager::IsAhead(Session& session,
                                             const RestoreOptions& options,
                                             const std::string& checkpoint) {
  SLUICE_ASSIGN_OR_RETURN(const std::optional<int64_t> live,
                          LiveStep(session, options));
  if (!live) return false;
  const Variable step =
      options.global_step ? options.global_step : GetGlobalStep(graph_);
  const auto reader = BundleReader::Open(RealFileSystem(), checkpoint);
  if (!reader.ok()) return false;
  const absl::StatusOr<Tensor> saved = (*reader)->Lookup(step.name());
  if (!saved.ok()) return false;
  const absl::StatusOr<int64_t> at = IntegerOf(*saved);
  if (!at.ok() || *live <= *at) return false;
  SLUICE_LOG(INFO) << "Going on from step " << *live
                   << ", which the parameter servers have reached; "
                   << checkpoint << " is behind it.";
  return true;
}

absl::StatusOr<bool> SessionManager::IsBeingTrained(
    Session& session, const RestoreOptions& options) {
  SLUICE_ASSIGN_OR_RETURN(const std::optional<int64_t> before,
                          LiveStep(session, options));
  if (!before || *before == 0) return false;
  std::this_thread::sleep_for(kMovesWithin);
  SLUICE_ASSIGN_OR_RETURN(const std::optional<int64_t> now,
                          LiveStep(session, options));
  if (!now || *now <= *before) return false;
  SLUICE_LOG(INFO) << "Going on from step " << *now
                   << ": other workers train this model.";
  return true;
}

absl::StatusOr<bool> SessionManager::RestoreFromDir(
    Session& session, const RestoreOptions& options) {
  SLUICE_ASSIGN_OR_RETURN(
      const auto state,
      ReadCheckpointState(RealFileSystem(), options.checkpoint_dir));
  if (!state) return false;
  SLUICE_ASSIGN_OR_RETURN(
      const bool ahead,
      IsAhead(session, options, state->model_checkpoint_path()));
  if (!ahead) {
    SLUICE_RETURN_IF_ERROR(
        options.saver->RestoreNewest(session, *state).status());
  }
  options.saver->RecoverLastCheckpoints(
      {state->all_model_checkpoint_paths().begin(),
       state->all_model_checkpoint_paths().end()});
  return true;
}

absl::StatusOr<bool> SessionManager::Restore(Session& session,
                                             const RestoreOptions& options) {
  if (!options.checkpoint_dir.empty() && !options.checkpoint_path.empty()) {
    return InvalidArgument(
        "Can not provide both checkpoint_dir and "
        "checkpoint_filename_with_path.");
  }
  const bool restores =
      options.saver != nullptr &&
      !(options.checkpoint_path.empty() && options.checkpoint_dir.empty());
  if (!restores) return IsBeingTrained(session, options);
  if (!options.checkpoint_path.empty()) {
    SLUICE_RETURN_IF_ERROR(
        options.saver->Restore(session, options.checkpoint_path));
    return true;
  }
  const auto start = SteadyClock::now();
  Waiting waiting(recovery_wait_secs_);
  while (true) {
    SLUICE_ASSIGN_OR_RETURN(bool restored, RestoreFromDir(session, options));
    if (!restored) {
      SLUICE_ASSIGN_OR_RETURN(restored, IsBeingTrained(session, options));
    }
    const Seconds waited = SteadyClock::now() - start;
    if (restored || !options.wait_for_checkpoint ||
        waited.count() >= options.max_wait_secs) {
      return restored;
    }
    waiting.Sleep("Waiting for checkpoint to be available.");
  }
}

absl::StatusOr<std::shared_ptr<Session>> SessionManager::PrepareSession(
    const SessionConfig& config, const InitOptions& init,
    const RestoreOptions& restore) {
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<Session> session,
                          Session::Create(config, graph_));
  SLUICE_ASSIGN_OR_RETURN(const bool restored, Restore(*session, restore));
  if (!restored) {
    if (init.init_op == nullptr && !init.init_fn &&
        ops_.local_init_op == nullptr) {
      return FailedPrecondition(
          "Model is not initialized and no init_op or init_fn or local_init_op "
          "was given");
    }
    if (init.init_op != nullptr) {
      SLUICE_RETURN_IF_ERROR(
          session->Run(init.init_feeds, {}, {init.init_op}, nullptr));
    }
    if (init.init_fn) SLUICE_RETURN_IF_ERROR(init.init_fn(*session));
  }
  const std::string init_fn = init.init_fn ? "given" : "None";
  SLUICE_ASSIGN_OR_RETURN(std::string why, TryLocalInit(*session));
  if (!why.empty()) {
    return FailedPrecondition(
        "Init operations did not make model ready for local_init.  Init op: ",
        NameOf(init.init_op), ", init fn: ", init_fn, ", error: ", why);
  }
  SLUICE_ASSIGN_OR_RETURN(why, ModelReady(*session));
  if (!why.empty()) {
    return FailedPrecondition(
        "Init operations did not make model ready.  Init op: ",
        NameOf(init.init_op), ", init fn: ", init_fn,
        ", local_init_op: ", NameOf(ops_.local_init_op), ", error: ", why);
  }
  return session;
}

absl::StatusOr<std::pair<std::shared_ptr<Session>, bool>>
SessionManager::RecoverSession(const SessionConfig& config,
                               const RestoreOptions& restore) {
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<Session> session,
                          Session::Create(config, graph_));
  SLUICE_ASSIGN_OR_RETURN(const bool restored, Restore(*session, restore));
  SLUICE_ASSIGN_OR_RETURN(std::string why, TryLocalInit(*session));
  if (!restored) return std::pair(std::move(session), false);
  const std::string& source = restore.checkpoint_dir.empty()
                                  ? restore.checkpoint_path
                                  : restore.checkpoint_dir;
  if (!why.empty()) {
    SLUICE_LOG(INFO) << "Restoring model from " << source
                     << " did not make model ready for local init: " << why;
    return std::pair(std::move(session), false);
  }
  SLUICE_ASSIGN_OR_RETURN(why, ModelReady(*session));
  if (!why.empty()) {
    SLUICE_LOG(INFO) << "Restoring model from " << source
                     << " did not make model ready: " << why;
    return std::pair(std::move(session), false);
  }
  SLUICE_LOG(INFO) << "Restored model from " << source;
  return std::pair(std::move(session), true);
}

absl::StatusOr<std::shared_ptr<Session>> SessionManager::WaitForSession(
    const SessionConfig& config, double max_wait_secs) {
  const auto start = SteadyClock::now();
  Waiting waiting(recovery_wait_secs_);
  // One session serves for all looks; making one costs several calls to every
  // task.
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<Session> session,
                          Session::Create(config, graph_));
  bool local_done = false;
  while (true) {
    std::string ready = "None";
    Readiness local = local_done ? Readiness("") : TryLocalInit(*session);
    local_done = local.ok() && local->empty();
    if (local_done) {
      Readiness model = ModelReady(*session);
      if (model.ok() && model->empty()) return session;
      if (model.ok()) ready = *model;
      if (!model.ok()) local = model.status();
    }
    if (IsLost(local.status())) {
      // Not a model that is not initialised: nobody is there.
      local = StrCat("not reachable: ", local.status().message());
      local_done = false;
      session->Close().IgnoreError();
      SLUICE_ASSIGN_OR_RETURN(session, Session::Create(config, graph_));
    }
    SLUICE_RETURN_IF_ERROR(local.status());
    if (Seconds(SteadyClock::now() - start).count() >= max_wait_secs) {
      return DeadlineExceeded("Session was not ready after waiting ",
                              static_cast<int64_t>(max_wait_secs), " secs.");
    }
    waiting.Sleep(
        StrCat("Waiting for model to be ready.  Ready_for_local_init_op:  ",
               local->empty() ? "None" : *local, ", ready: ", ready));
  }
}

}  // namespace sluice
