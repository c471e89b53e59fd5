#include "sluice/train/supervisor.h"

#include "sluice/autodiff/gate.h"
#include "sluice/base/logging.h"
#include "sluice/base/path.h"
#include "sluice/base/status.h"
#include "sluice/client/collections.h"
#include "sluice/train/global_step.h"
#include "sluice/train/initialize.h"
#include "sluice/train/lost_session.h"
#include "sluice/train/meta_graph.h"
#include "sluice/train/queue_runner.h"
#include "sluice/train/session_manager.h"

namespace sluice {
namespace {

// Steps per second are logged only so often; they are recorded always.
constexpr int kLoggedRates = 10;

// The first member of a collection, if the caller gave nothing.
template <typename T>
void TakeFirst(std::string_view key, const std::vector<T>& found, T* field) {
  if (*field != T() || found.empty()) return;
  if (found.size() > 1) {
    SLUICE_LOG(INFO) << "Found " << found.size() << " " << key
                     << " operations. Returning the first one.";
  }
  *field = found[0];
}

}  // namespace

Supervisor::Supervisor(Graph& graph, SupervisorOptions options)
    : graph_(graph), options_(std::move(options)) {
  if (!options_.is_chief) options_.logdir.clear();
  if (!options_.logdir.empty()) {
    writer_ = std::make_shared<SummaryWriter>(options_.logdir);
    save_path_ = JoinPath(options_.logdir, options_.checkpoint_basename);
  }
  setup_ = Setup();
}

Supervisor::~Supervisor() {
  coordinator_.RequestStop();
  // Threads that hang in a step would use this object after its end.
  if (session_ != nullptr) session_->Close().IgnoreError();
  coordinator_.Join(Coordinator::Seconds(options_.stop_grace_secs), true)
      .IgnoreError();  // Stop reports it to those who ask.
}

absl::Status Supervisor::Setup() {
  Collections& collections = Collections::Of(graph_);
  const Scope scope(graph_);
  ops_.init_op = options_.init_op;
  ops_.local_init_op = options_.local_init_op;
  ops_.ready_op = options_.ready_op;
  ops_.ready_for_local_init_op = options_.ready_for_local_init_op;
  ops_.summary_op = options_.summary_op;
  ops_.saver = options_.saver;
  TakeFirst(keys::kInitOp, collections.nodes(keys::kInitOp), &ops_.init_op);
  TakeFirst(keys::kLocalInitOp, collections.nodes(keys::kLocalInitOp),
            &ops_.local_init_op);
  TakeFirst(keys::kReadyOp, collections.outputs(keys::kReadyOp),
            &ops_.ready_op);
  TakeFirst(keys::kReadyForLocalInitOp,
            collections.outputs(keys::kReadyForLocalInitOp),
            &ops_.ready_for_local_init_op);
  TakeFirst(keys::kSummaryOp, collections.outputs(keys::kSummaryOp),
            &ops_.summary_op);
  if (!ops_.ready_op) {
    std::vector<Variable> all = GlobalVariables(graph_);
    const std::vector<Variable> local = LocalVariables(graph_);
    all.insert(all.end(), local.begin(), local.end());
    ops_.ready_op = ReportUninitializedVariables(scope, all);
    collections.Add(keys::kReadyOp, ops_.ready_op);
  }
  if (ops_.init_op == nullptr) {
    ops_.init_op = GlobalVariablesInitializer(scope);
    collections.Add(keys::kInitOp, ops_.init_op);
  }
  if (ops_.local_init_op == nullptr) {
    const std::vector<Node*> both = {LocalVariablesInitializer(scope),
                                     TablesInitializer(scope)};
    ops_.local_init_op = Group(scope, both);
    collections.Add(keys::kLocalInitOp, ops_.local_init_op);
  }
  if (!ops_.summary_op) ops_.summary_op = MergeAllSummaries(scope);
  if (ops_.saver == nullptr) {
    SLUICE_ASSIGN_OR_RETURN(ops_.saver, SaverOfGraph(graph_));
  }
  if (ops_.saver == nullptr && !GlobalVariables(graph_).empty()) {
    ops_.saver = std::make_shared<Saver>(scope);
    SLUICE_RETURN_IF_ERROR(scope.status());
    collections.Add(keys::kSavers, ops_.saver->def().SerializeAsString());
  }
  if (!options_.global_step) options_.global_step = GetGlobalStep(graph_);
  SLUICE_RETURN_IF_ERROR(scope.status());
  // Replicas must not each have variables of their own.
  for (int i = 0; !options_.is_chief && i < graph_.num_nodes(); ++i) {
    const Node& node = *graph_.node(i);
    if ((node.type() == "Variable" || node.type() == "VariableV2") &&
        node.device().empty()) {
      return InvalidArgument(
          "When using replicas, all Variables must have their device set: ",
          node.name());
    }
  }
  graph_.build().finalized = true;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Session>> Supervisor::PrepareOrWaitForSession(
    const SessionConfig& config, const PrepareOptions& options) {
  SLUICE_RETURN_IF_ERROR(setup_);
  // A new run: what stopped the last one is past.
  coordinator_.ClearStop();
  if (writer_ != nullptr) writer_->Reopen();
  SessionManager manager(graph_, ops_.ready_ops(), options_.recovery_wait_secs);
  if (options_.is_chief) {
    InitOptions init;
    init.init_op = ops_.init_op;
    init.init_feeds = options_.init_feeds;
    init.init_fn = options_.init_fn;
    RestoreOptions restore;
    restore.saver = saver();
    restore.checkpoint_dir = options_.logdir;
    restore.wait_for_checkpoint = options.wait_for_checkpoint;
    restore.max_wait_secs = options.max_wait_secs;
    restore.continue_live_training = options_.continue_live_training;
    restore.global_step = options_.global_step;
    SLUICE_ASSIGN_OR_RETURN(session_,
                            manager.PrepareSession(config, init, restore));
    SLUICE_RETURN_IF_ERROR(WriteGraphOnce());
    if (options.start_services) {
      SLUICE_LOG(INFO) << "Starting standard services.";
      SLUICE_RETURN_IF_ERROR(StartStandardServices(session_));
    }
  } else {
    SLUICE_ASSIGN_OR_RETURN(
        session_, manager.WaitForSession(config, options.max_wait_secs));
  }
  if (options.start_services) {
    SLUICE_LOG(INFO) << "Starting queue runners.";
    SLUICE_RETURN_IF_ERROR(StartQueueRunners(session_));
  }
  return session_;
}

absl::Status Supervisor::StartQueueRunners(
    const std::shared_ptr<Session>& session) {
  return sluice::StartQueueRunners(graph_, session, coordinator_);
}

absl::Status Supervisor::WriteGraphOnce() {
  if (options_.logdir.empty() || graph_written_) return absl::OkStatus();
  graph_written_ = true;
  SLUICE_RETURN_IF_ERROR(WriteGraph(graph_, options_.logdir, "graph.pbtxt"));
  writer_->AddGraph(graph_);
  writer_->AddMetaGraph(
      ExportMetaGraph(graph_, saver() == nullptr ? nullptr : &saver()->def()));
  return absl::OkStatus();
}

absl::Status Supervisor::StartStandardServices(
    std::shared_ptr<Session> session) {
  if (!options_.is_chief) {
    return FailedPrecondition(
        "Only chief supervisor can start standard services. Because only chief "
        "supervisors can write events.");
  }
  if (options_.logdir.empty()) {
    SLUICE_LOG(WARNING)
        << "Standard services need a 'logdir' passed to the SessionManager";
    return absl::OkStatus();
  }
  const Variable& step = options_.global_step;
  int64_t at = 0;
  if (step) {
    // Readers drop what an earlier run wrote beyond this step.
    SLUICE_ASSIGN_OR_RETURN(at, GlobalStep(*session, step));
    writer_->AddSessionLog(pb::SessionLog::START, "", at);
  }
  const Coordinator::Seconds summaries(options_.save_summaries_secs);
  if (options_.save_summaries_secs > 0 && ops_.summary_op) {
    coordinator_.StartLoop("SVSummaryThread", summaries, [this, session] {
      return RecordSummaries(*session);
    });
  }
  if (options_.save_summaries_secs > 0 && step) {
    struct Rate {
      SteadyTime time;
      int64_t step;
      int logged = 0;
    };
    coordinator_.StartLoop(
        "SVStepCounterThread", summaries,
        [this, session, tag = step.name() + "/sec",
         rate = Rate{RealClock().Now(), at}]() mutable -> absl::Status {
          SLUICE_ASSIGN_OR_RETURN(const int64_t now_at,
                                  GlobalStep(*session, options_.global_step));
          const SteadyTime now = RealClock().Now();
          const double seconds =
              std::chrono::duration<double>(now - rate.time).count();
          const double per_second =
              static_cast<double>(now_at - rate.step) / seconds;
          rate.time = now;
          rate.step = now_at;
          writer_->AddScalar(tag, static_cast<float>(per_second), now_at);
          if (rate.logged++ < kLoggedRates) {
            SLUICE_LOG(INFO) << tag << ": " << per_second;
          }
          return absl::OkStatus();
        });
  }
  if (options_.save_model_secs > 0 && saver() != nullptr) {
    saves_ = true;
    coordinator_.StartLoop("SVTimerCheckpointThread",
                           Coordinator::Seconds(options_.save_model_secs),
                           [this, session] { return SaveOnce(*session); });
  }
  return absl::OkStatus();
}

absl::Status Supervisor::SaveOnce(Session& session) {
  SLUICE_LOG(INFO) << "Saving checkpoint to path " << save_path_;
  SaveOptions options;
  if (options_.global_step) {
    SLUICE_ASSIGN_OR_RETURN(options.global_step,
                            GlobalStep(session, options_.global_step));
  }
  SLUICE_RETURN_IF_ERROR(saver()->Save(session, save_path_, options).status());
  writer_->AddSessionLog(pb::SessionLog::CHECKPOINT, save_path_,
                         options.global_step);
  saved_step_ = options.global_step;
  return absl::OkStatus();
}

absl::Status Supervisor::SaveAtTheEnd() {
  if (!std::exchange(saves_, false) || !options_.save_on_stop ||
      session_ == nullptr) {
    return absl::OkStatus();
  }
  if (options_.global_step) {
    SLUICE_ASSIGN_OR_RETURN(const int64_t step,
                            GlobalStep(*session_, options_.global_step));
    if (step == saved_step_) return absl::OkStatus();
  }
  return SaveOnce(*session_);
}

absl::Status Supervisor::RecordSummaries(Session& session) {
  std::vector<Output> fetches = {ops_.summary_op};
  if (options_.global_step) fetches.push_back(options_.global_step.value());
  std::vector<Tensor> values;
  const absl::Status status = session.Run({}, fetches, {}, &values);
  if (absl::IsInvalidArgument(status) &&
      status.message().find("You must feed a value for placeholder") !=
          absl::string_view::npos) {
    return InvalidArgument(
        "The Supervisor runs its summary_op by itself, in a step that feeds "
        "nothing: ",
        status.message(),
        " Set save_summaries_secs = 0 and record what training steps fetch by "
        "SummaryComputed.");
  }
  SLUICE_RETURN_IF_ERROR(status);
  int64_t step = 0;
  if (values.size() > 1) {
    SLUICE_ASSIGN_OR_RETURN(step, IntegerOf(values[1]));
  }
  SLUICE_LOG(INFO) << "Recording summary at step " << step << ".";
  writer_->AddSummary(values[0].scalar<std::string>(), step);
  return absl::OkStatus();
}

void Supervisor::Loop(double interval_secs,
                      std::function<absl::Status()> body) {
  coordinator_.StartLoop("SVLoop", Coordinator::Seconds(interval_secs),
                         std::move(body));
}

void Supervisor::RequestStop(absl::Status error) {
  coordinator_.RequestStop(std::move(error));
}

void Supervisor::WaitForStop() const {
  while (!coordinator_.WaitForStop(Coordinator::Seconds(3600))) {
  }
}

absl::Status Supervisor::Stop(const StopOptions& options) {
  const Coordinator::Seconds grace(options_.stop_grace_secs);
  StopThreads(coordinator_, session_.get(), grace);
  const absl::Status status =
      coordinator_.Join(Coordinator::Seconds(0), options.ignore_live_threads);
  if (status.ok()) {
    if (absl::Status saved = SaveAtTheEnd(); !saved.ok()) {
      SLUICE_LOG(WARNING) << "The model could not be saved at the end: "
                          << StatusText(saved);
    }
  }
  if (options.close_summary_writer && writer_ != nullptr) {
    // Tells readers where this run ended.
    writer_->AddSessionLog(pb::SessionLog::STOP, "", std::nullopt);
    writer_->Close().IgnoreError();  // The writer has logged it.
    graph_written_ = false;
  }
  return status;
}

absl::Status Supervisor::RunOnce(
    const SessionConfig& config,
    const std::function<absl::Status(Session&)>& body, bool* goes_on) {
  absl::StatusOr<std::shared_ptr<Session>> session =
      PrepareOrWaitForSession(config);
  RequestStop(session.ok() ? body(**session) : session.status());
  *goes_on = options_.recover &&
             IsLost(coordinator_.error(), session_.get(), ops_.ready_op);
  const absl::Status status = Stop({.close_summary_writer = !*goes_on});
  if (session_ != nullptr) session_->Close().IgnoreError();  // `status` counts.
  session_.reset();
  return status;
}

absl::Status Supervisor::ManagedSession(
    const SessionConfig& config,
    const std::function<absl::Status(Session&)>& body) {
  Backoff backoff;
  while (true) {
    bool began = false, goes_on = false;
    const auto noting_body = [&](Session& session) {
      began = true;
      return body(session);
    };
    const absl::Status status = RunOnce(config, noting_body, &goes_on);
    if (!goes_on) return status;
    SLUICE_LOG(INFO) << LostSessionText(
        began ? LostIn::kRun : LostIn::kCreation, status);
    if (began) backoff = Backoff();
    backoff.Wait();
  }
}

absl::Status BasicTrainLoop(Supervisor& supervisor, const SessionConfig& config,
                            const std::function<absl::Status(Session&)>& step) {
  while (true) {
    const absl::Status status =
        supervisor.ManagedSession(config, [&](Session& session) {
          absl::Status ran;
          while (ran.ok() && !supervisor.ShouldStop()) ran = step(session);
          return ran;
        });
    if (!IsPreemption(status)) return status;
  }
}

absl::Status Supervisor::SummaryComputed(Session& session,
                                         const Tensor& summary,
                                         std::optional<int64_t> step) {
  if (writer_ == nullptr) {
    return FailedPrecondition("Writing a summary requires a summary writer.");
  }
  if (summary.dtype() != DType::kString || summary.size() != 1) {
    return InvalidArgument("expected one serialized summary, got ",
                           summary.DebugString());
  }
  if (!step && options_.global_step) {
    SLUICE_ASSIGN_OR_RETURN(step, GlobalStep(session, options_.global_step));
  }
  writer_->AddSummary(summary.scalar<std::string>(), step.value_or(0));
  return absl::OkStatus();
}

}  // namespace sluice
