#include "sluice/train/monitored_session.h"

#include <algorithm>

#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/train/lost_session.h"
#include "sluice/train/queue_runner.h"
#include "sluice/train/session_manager.h"

namespace sluice {
namespace {

std::shared_ptr<Scaffold> OrNew(const std::shared_ptr<Scaffold>& scaffold) {
  return scaffold != nullptr ? scaffold : std::make_shared<Scaffold>();
}

absl::Status CheckFeeds(const std::vector<Session::Feed>& feeds,
                        const std::vector<Session::Feed>& more,
                        std::string_view message) {
  for (const Session::Feed& feed : more) {
    for (const Session::Feed& other : feeds) {
      if (other.first == feed.first) {
        return FailedPrecondition(message,
                                  " Conflict(s): ", TensorName(feed.first));
      }
    }
  }
  return absl::OkStatus();
}

// The position of `output` in `all`, which gets it if it is new.
size_t IndexOf(Output output, std::vector<Output>* all) {
  const auto it = std::ranges::find(*all, output);
  const size_t index = it - all->begin();
  if (it == all->end()) all->push_back(output);
  return index;
}

}  // namespace

ChiefSessionCreator::ChiefSessionCreator(
    Graph& graph, const std::shared_ptr<Scaffold>& scaffold,
    SessionConfig config, std::string checkpoint_dir,
    std::string checkpoint_path, bool continue_live_training)
    : graph_(graph),
      scaffold_(OrNew(scaffold)),
      config_(std::move(config)),
      checkpoint_dir_(std::move(checkpoint_dir)),
      checkpoint_path_(std::move(checkpoint_path)),
      continue_live_training_(continue_live_training) {}

absl::StatusOr<std::shared_ptr<Session>> ChiefSessionCreator::CreateSession() {
  SLUICE_RETURN_IF_ERROR(scaffold_->Finalize(graph_));
  InitOptions init;
  init.init_op = scaffold_->init_op;
  init.init_feeds = scaffold_->init_feeds;
  if (scaffold_->init_fn) {
    init.init_fn = [this](Session& session) {
      return scaffold_->init_fn(*scaffold_, session);
    };
  }
  RestoreOptions restore;
  restore.saver = scaffold_->saver.get();
  restore.checkpoint_dir = checkpoint_dir_;
  restore.checkpoint_path = checkpoint_path_;
  restore.continue_live_training = continue_live_training_;
  return SessionManager(graph_, scaffold_->ready_ops())
      .PrepareSession(config_, init, restore);
}

WorkerSessionCreator::WorkerSessionCreator(
    Graph& graph, const std::shared_ptr<Scaffold>& scaffold,
    SessionConfig config, double max_wait_secs)
    : graph_(graph),
      scaffold_(OrNew(scaffold)),
      config_(std::move(config)),
      max_wait_secs_(max_wait_secs) {}

absl::StatusOr<std::shared_ptr<Session>> WorkerSessionCreator::CreateSession() {
  SLUICE_RETURN_IF_ERROR(scaffold_->Finalize(graph_));
  return SessionManager(graph_, scaffold_->ready_ops())
      .WaitForSession(config_, max_wait_secs_);
}

MonitoredSession::MonitoredSession(Graph& graph,
                                   std::unique_ptr<SessionCreator> creator,
                                   Hooks hooks, MonitoredSessionOptions options)
    : graph_(graph),
      creator_(std::move(creator)),
      hooks_(std::move(hooks)),
      options_(options),
      was_finalized_(graph.build().finalized) {}

absl::StatusOr<std::unique_ptr<MonitoredSession>> MonitoredSession::Create(
    Graph& graph, std::unique_ptr<SessionCreator> creator, Hooks hooks,
    MonitoredSessionOptions options) {
  std::unique_ptr<MonitoredSession> session(new MonitoredSession(
      graph, std::move(creator), std::move(hooks), options));
  for (const auto& hook : session->hooks_) {
    if (hook == nullptr) return InvalidArgument("One of the hooks is null");
    SLUICE_RETURN_IF_ERROR(hook->Begin(graph));
  }
  SLUICE_RETURN_IF_ERROR(session->CreateSession());
  return session;
}

MonitoredSession::~MonitoredSession() {
  if (!closed_) {
    // Nobody is there to be told more.
    Close(Cancelled("The session was dropped.")).IgnoreError();
  }
}

absl::Status MonitoredSession::CreateSessionOnce() {
  SLUICE_ASSIGN_OR_RETURN(session_, creator_->CreateSession());
  // An error of a thread is not lost when the input ends.
  coordinator_ = std::make_unique<Coordinator>(std::vector<absl::StatusCode>());
  stop_ = has_run_ = false;
  SLUICE_RETURN_IF_ERROR(StartQueueRunners(graph_, session_, *coordinator_));
  for (const auto& hook : hooks_) {
    SLUICE_RETURN_IF_ERROR(hook->AfterCreateSession(session_, *coordinator_));
  }
  return absl::OkStatus();
}

absl::Status MonitoredSession::CreateSession() {
  Backoff backoff;
  while (true) {
    absl::Status status = CreateSessionOnce();
    if (status.ok()) return status;
    CloseSession().IgnoreError();  // `status` says why.
    if (!options_.recover || !IsPreemption(status)) return status;
    SLUICE_LOG(INFO) << LostSessionText(LostIn::kCreation, status);
    // Workers that lost the same task do not all come back at once.
    backoff.Wait();
  }
}

absl::Status MonitoredSession::CloseSession() {
  absl::Status status;
  if (coordinator_ != nullptr) {
    StopThreads(*coordinator_, session_.get(),
                Coordinator::Seconds(options_.stop_grace_period_secs));
    status = coordinator_->Join(Coordinator::Seconds(0),
                                /*ignore_live_threads=*/true);
  }
  if (session_ != nullptr) {
    session_->Close().IgnoreError();  // It may have lost its master.
  }
  coordinator_.reset();
  session_.reset();
  return status;
}

bool MonitoredSession::IsLost(const absl::Status& status) const {
  const Output ready_op = creator_->ready_op();
  if (!ready_op && LacksValue(status)) return has_run_;
  return sluice::IsLost(status, session_.get(), ready_op);
}

absl::Status MonitoredSession::Recovering(
    const std::function<absl::Status()>& call) {
  if (closed_) return FailedPrecondition("Session is already closed.");
  while (true) {
    if (session_ == nullptr) SLUICE_RETURN_IF_ERROR(CreateSession());
    absl::Status status = call();
    if (status.ok()) {
      has_run_ = true;
      return status;
    }
    bool lost = IsLost(status);
    // A thread may have met the cause, this step a consequence.
    if (!lost && IsLost(coordinator_->error())) {
      status = coordinator_->error();
      lost = true;
    }
    if (!options_.recover || !lost) return status;
    SLUICE_LOG(INFO) << LostSessionText(LostIn::kRun, status);
    // Threads of the session met the same.
    absl::Status closing = CloseSession();
    if (!closing.ok() && !IsPreemption(closing) && !LacksValue(closing)) {
      return closing;
    }
  }
}

absl::Status MonitoredSession::Run(const std::vector<Session::Feed>& feeds,
                                   const std::vector<Output>& fetches,
                                   const std::vector<Node*>& targets,
                                   std::vector<Tensor>* fetched) {
  return Recovering(
      [&] { return RunWithHooks(feeds, fetches, targets, fetched); });
}

absl::Status MonitoredSession::StepContext::RunWithHooks(
    const std::vector<Session::Feed>& feeds, const std::vector<Output>& fetches,
    const std::vector<Node*>& targets, std::vector<Tensor>* fetched) {
  return owner_.RunWithHooks(feeds, fetches, targets, fetched);
}

absl::Status MonitoredSession::RunStepFn(
    const std::function<absl::Status(StepContext&)>& step) {
  return Recovering([&] {
    StepContext context(*this);
    return step(context);
  });
}

absl::Status MonitoredSession::RunWithHooks(
    const std::vector<Session::Feed>& feeds, const std::vector<Output>& fetches,
    const std::vector<Node*>& targets, std::vector<Tensor>* fetched) {
  if (stop_) {
    return FailedPrecondition("Run called even after should_stop requested.");
  }
  const SessionRunArgs original{fetches, feeds};
  SessionRunContext context(*session_, original);
  // One step serves all; what several fetch is fetched once.
  std::vector<Session::Feed> hook_feeds;
  std::vector<Output> all;
  std::vector<size_t> own;
  own.reserve(fetches.size());
  for (const Output& fetch : fetches) own.push_back(IndexOf(fetch, &all));
  std::vector<std::vector<size_t>> wanted(hooks_.size());
  RunOptions options;
  for (size_t i = 0; i < hooks_.size(); ++i) {
    SLUICE_ASSIGN_OR_RETURN(const SessionRunArgs args,
                            hooks_[i]->BeforeRun(context));
    SLUICE_RETURN_IF_ERROR(
        CheckFeeds(hook_feeds, args.feeds, "Same tensor is fed by two hooks."));
    hook_feeds.insert(hook_feeds.end(), args.feeds.begin(), args.feeds.end());
    options.trace = options.trace || args.trace;
    for (const Output& fetch : args.fetches) {
      wanted[i].push_back(IndexOf(fetch, &all));
    }
  }
  SLUICE_RETURN_IF_ERROR(CheckFeeds(
      feeds, hook_feeds, "Same tensor is fed by a SessionRunHook and user."));
  hook_feeds.insert(hook_feeds.end(), feeds.begin(), feeds.end());
  std::vector<Tensor> values;
  SLUICE_RETURN_IF_ERROR(
      session_->Run(hook_feeds, all, targets, options, &values,
                    options.trace ? &context.metadata_ : nullptr));
  for (size_t i = 0; i < hooks_.size(); ++i) {
    std::vector<Tensor> results;
    for (const size_t index : wanted[i]) results.push_back(values[index]);
    SLUICE_RETURN_IF_ERROR(hooks_[i]->AfterRun(context, results));
  }
  stop_ = stop_ || context.stop_requested();
  if (fetched != nullptr) {
    fetched->clear();
    for (const size_t index : own) fetched->push_back(values[index]);
  }
  return absl::OkStatus();
}

bool MonitoredSession::ShouldStop() {
  if (closed_ || session_ == nullptr || stop_) return true;
  const absl::Status error = coordinator_->error();
  if (error.ok()) return coordinator_->ShouldStop();
  // Another error comes up again when the session is closed.
  if (!options_.recover || !IsLost(error)) return true;
  SLUICE_LOG(INFO) << LostSessionText(LostIn::kShouldStop, error);
  CloseSession().IgnoreError();  // It is the error just logged.
  // If no session can be made, the next Run says why.
  return !CreateSession().ok();
}

absl::Status MonitoredSession::Close(const absl::Status& reason) {
  if (closed_) return FailedPrecondition("Session is already closed.");
  const bool clean = reason.ok() || absl::IsOutOfRange(reason);
  absl::Status result = clean ? absl::OkStatus() : reason;
  if (clean && session_ != nullptr) {
    for (const auto& hook : hooks_) {
      result = hook->End(*session_);
      if (!result.ok()) break;
    }
  }
  const absl::Status closing = CloseSession();
  closed_ = true;
  if (!was_finalized_) graph_.build().finalized = false;
  return result.ok() ? closing : result;
}

}  // namespace sluice
