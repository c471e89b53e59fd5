// MonitoredTrainingSession: which hooks a training gets.
#include "sluice/train/hooks.h"
#include "sluice/train/monitored_session.h"

namespace sluice {
namespace {

// What the caller chose of a pair, or the default if nothing.
Every Chosen(const std::optional<double>& secs,
             const std::optional<int64_t>& steps, Every otherwise) {
  if (!secs && !steps) return otherwise;
  return {.secs = secs.value_or(0), .steps = steps.value_or(0)};
}

bool Happens(const Every& every) { return every.secs > 0 || every.steps > 0; }

}  // namespace

absl::StatusOr<std::unique_ptr<MonitoredSession>> MonitoredTrainingSession(
    Graph& graph, TrainingSessionOptions options) {
  const std::shared_ptr<Scaffold> scaffold =
      options.scaffold ? options.scaffold : std::make_shared<Scaffold>();
  const MonitoredSessionOptions session_options{
      .stop_grace_period_secs = options.stop_grace_period_secs};
  SessionConfig config;
  config.target = options.master;
  config.options = options.config;
  if (!options.is_chief) {
    return MonitoredSession::Create(
        graph,
        std::make_unique<WorkerSessionCreator>(graph, scaffold, config,
                                               options.max_wait_secs),
        options.hooks, session_options);
  }
  const Every checkpoints =
      Chosen(options.save_checkpoint_secs, options.save_checkpoint_steps,
             {.secs = 600});
  const Every summaries = Chosen(options.save_summaries_secs,
                                 options.save_summaries_steps, {.steps = 100});
  Hooks hooks = options.chief_only_hooks;
  const std::string dir = options.summary_dir.empty() ? options.checkpoint_dir
                                                      : options.summary_dir;
  // Hooks that write to one directory share its event file.
  std::shared_ptr<SummaryWriter> writer;
  if (!dir.empty()) {
    writer = std::make_shared<SummaryWriter>(dir);
    if (options.log_step_count_steps > 0) {
      hooks.push_back(std::make_shared<StepCounterHook>(
          Every{.steps = options.log_step_count_steps}, writer));
    }
    if (Happens(summaries)) {
      hooks.push_back(
          std::make_shared<SummarySaverHook>(summaries, writer, scaffold));
    }
  }
  if (!options.checkpoint_dir.empty() && Happens(checkpoints)) {
    CheckpointSaverOptions saving;
    saving.checkpoint_dir = options.checkpoint_dir;
    saving.every = checkpoints;
    saving.scaffold = scaffold;
    if (dir == options.checkpoint_dir) saving.summary_writer = writer;
    hooks.push_back(std::make_shared<CheckpointSaverHook>(std::move(saving)));
  }
  hooks.insert(hooks.end(), options.hooks.begin(), options.hooks.end());
  return MonitoredSession::Create(
      graph,
      std::make_unique<ChiefSessionCreator>(
          graph, scaffold, config, options.checkpoint_dir,
          /*checkpoint_path=*/"", options.continue_live_training),
      std::move(hooks), session_options);
}

}  // namespace sluice
