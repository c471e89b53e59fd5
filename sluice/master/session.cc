#include "sluice/master/session.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "sluice/base/logging.h"
#include "sluice/base/random.h"
#include "sluice/base/simulation.h"
#include "sluice/base/status.h"
#include "sluice/base/time_limit.h"
#include "sluice/base/timer.h"
#include "sluice/master/connect.h"
#include "sluice/master/cost_graph.h"
#include "sluice/master/session_state.h"

namespace sluice {
namespace {

// Enough for tasks that end while a session is opened; few, for a task that
// answers and refuses.
constexpr int kTriesToCreate = 4;

}  // namespace

absl::Status ClosedByClient() {
  return Cancelled(
      "Step was cancelled by an explicit call to `Session::Close()`.");
}

int64_t MasterSession::State::NewStepId() {
  const uint64_t id = next_step.fetch_add(1, std::memory_order_relaxed);
  return static_cast<int64_t>(id & ((uint64_t{1} << kStepIdBits) - 1));
}

MasterSession::MasterSession(std::unique_ptr<State> state)
    : state_(std::move(state)) {}
MasterSession::~MasterSession() = default;

const std::string& MasterSession::handle() const { return state_->handle; }
const SessionOptions& MasterSession::options() const { return state_->options; }
std::vector<DeviceInfo> MasterSession::devices() const {
  return state_->Tasks()->devices;
}

void MasterSession::Create(const MasterEnv& env, const SessionOptions& options,
                           std::shared_ptr<Cancellation> cancellation,
                           CreateDone done) {
  TryToCreate(env, options, std::move(cancellation), kTriesToCreate,
              std::move(done));
}

void MasterSession::TryToCreate(const MasterEnv& env,
                                const SessionOptions& options,
                                std::shared_ptr<Cancellation> cancellation,
                                int tries, CreateDone done) {
  auto state = std::make_unique<State>();
  state->env = env;
  state->options = options;
  state->handle = absl::StrFormat("%016x", RandomId());
  ConnectTasks(
      *env.workers, env.own_task, options, cancellation,
      [state = std::move(state), cancellation, tries, done = std::move(done)](
          absl::StatusOr<std::vector<ConnectedTask>> tasks) mutable {
        if (!tasks.ok()) {
          done(tasks.status());
          return;
        }
        auto found = std::make_shared<const SessionTasks>(*std::move(tasks),
                                                          state->env.own_task);
        for (const DeviceInfo& device : found->devices) {
          if (TaskOf(device.text) != state->env.own_task) continue;
          state->client_device = device;
          break;
        }
        {
          MutexLock lock(state->mu);
          state->tasks = std::move(found);
        }
        if (state->client_device.text.empty()) {
          done(NotFound("No CPU devices are available in this process"));
          return;
        }
        OpenWorkerSessions(
            std::shared_ptr<MasterSession>(new MasterSession(std::move(state))),
            std::move(cancellation), tries - 1, std::move(done));
      });
}

void MasterSession::OpenWorkerSessions(
    std::shared_ptr<MasterSession> session,
    std::shared_ptr<Cancellation> cancellation, int tries_left,
    CreateDone done) {
  // Counts down the calls; the last one reports.
  struct Opening {
    std::shared_ptr<MasterSession> session;
    std::shared_ptr<Cancellation> cancellation;
    int tries_left;
    CreateDone done;
    Mutex mu;
    size_t left SLUICE_GUARDED_BY(mu) = 0;
    absl::Status status SLUICE_GUARDED_BY(mu);

    void Answered(const absl::Status& answer) {
      absl::Status first;
      {
        MutexLock lock(mu);
        status.Update(answer);
        if (--left > 0) return;
        first = status;
      }
      if (first.ok()) {
        done(session);
        return;
      }
      session->Close(first, [](absl::Status) {});
      if (absl::IsUnavailable(first) && tries_left > 0) {
        // A task went after it had said what devices it has, as a worker does
        // that is done. It is waited for, or left out, as if it had never come.
        TryToCreate(session->state_->env, session->state_->options,
                    cancellation, tries_left, std::move(done));
      } else {
        done(first);
      }
    }
  };
  const State& state = *session->state_;
  const std::shared_ptr<const SessionTasks> tasks = session->state_->Tasks();
  auto opening = std::make_shared<Opening>();
  opening->session = session;
  opening->cancellation = std::move(cancellation);
  opening->tries_left = tries_left;
  opening->done = std::move(done);
  {
    MutexLock lock(opening->mu);
    opening->left = tasks->present.size();
  }
  for (const ConnectedTask& task : tasks->present) {
    task.worker->CreateSession(
        state.RequestFor(task),
        [opening](absl::Status status) { opening->Answered(status); });
  }
}

absl::Status MasterSession::Extend(absl::FunctionRef<absl::Status(Graph&)> add,
                                   const Extension& extension) {
  MutexLock lock(state_->graph_mu);
  if (extension.from_version && *extension.from_version != state_->version) {
    return Aborted("Current version is ", state_->version,
                   " but caller expected ", *extension.from_version, ".");
  }
  const int64_t bytes = state_->node_bytes + extension.node_bytes;
  if (const int64_t all = bytes + extension.library_bytes;
      all > extension.most_bytes) {
    return OverLimit(StrCat("A graph of ", all, " bytes"), "graph_bytes",
                     extension.most_bytes);
  }
  if (state_->options.static_graph && state_->version >= 0) {
    return FailedPrecondition(
        "Extending the graph is not supported when "
        "`optimize_for_static_graph` is true.");
  }
  SLUICE_RETURN_IF_ERROR(add(state_->graph));
  state_->node_bytes = bytes;
  ++state_->version;
  return absl::OkStatus();
}

int64_t MasterSession::graph_version() const {
  MutexLock lock(state_->graph_mu);
  return state_->version;
}

namespace {

// What a distributed session says of a fetch that was not made, in TensorFlow's
// words.
absl::Status NoFetch(const MasterStep& step, int fetch,
                     const DeviceInfo& client) {
  return Internal("Failed to fetch outputs for step ", step.id,
                  ". (Original error message: Invalid argument: The tensor "
                  "returned for ",
                  RendezvousKeyPrefix(client.text, client.incarnation,
                                      client.text, step.plan->fetches[fetch]),
                  "0:0 was not valid.)");
}

// One error of several causes, in TensorFlow's form.
absl::Status Join(std::span<const absl::Status> roots) {
  if (roots.size() == 1) return roots[0];
  constexpr char kLine[] = "\n=====================\n";
  std::string text = kLine;
  for (const absl::Status& root : roots) {
    StrAppend(&text, &root == &roots[0] ? "" : "\n", StatusText(root));
  }
  return WithMessage(roots[0], StrCat(text, kLine));
}

// What a step that takes too long waits for, as far as this process knows.
absl::Status TooLate(const MasterStep& step, const absl::Status& why) {
  std::set<std::string> waits;  // An edge of a loop waits in each iteration.
  for (const WaitInfo& wait : WaitTable::Global().List()) {
    if (wait.step_id != step.id) continue;
    waits.insert(StrCat(wait.what, " (", wait.where, ")"));
  }
  return WithMessage(
      why, StrCat(why.message(), " The step still ran on ",
                  absl::StrJoin(step.RunningOn(), ", "),
                  waits.empty() ? "" : ": ", absl::StrJoin(waits, ", "), "."));
}

}  // namespace

bool MasterSession::State::WantsCosts(const StepPlan& plan) const {
  if (options.build_cost_model <= 0) return false;
  const int64_t step = plan.steps.fetch_add(1, std::memory_order_relaxed) -
                       options.build_cost_model_after;
  return step >= 0 && (step + 1) % options.build_cost_model == 0;
}

int64_t MasterSession::NewStepId() { return state_->NewStepId(); }

int64_t MasterSession::TimeoutOf(const RunOptions& options) const {
  return options.timeout_ms > 0 ? options.timeout_ms
                                : state_->options.operation_timeout_ms;
}

int64_t MasterSession::Run(std::shared_ptr<const StepPlan> plan,
                           const RunArgs& args, Done done) {
  const int64_t id = NewStepId();
  RunAs(id, std::move(plan), args, std::move(done));
  return id;
}

void MasterSession::RunAs(int64_t id, std::shared_ptr<const StepPlan> plan,
                          const RunArgs& args, Done done) {
  const int pool = args.options.thread_pool;
  if (!state_->env.name_tasks &&
      (pool < -1 || pool >= state_->options.num_thread_pools)) {
    done(InvalidArgument("Invalid inter_op_thread_pool: ", pool));
    return;
  }
  if (args.options.debug) {
    done(Unimplemented(
        "RunOptions.debug_options: there is no debugger that watches tensors. "
        "Fetch them, or print them with tf.Print."));
    return;
  }
  if (args.options.partition_graphs && state_->options.no_partition_graphs) {
    done(InvalidArgument(
        "RunOptions.output_partition_graphs() is not supported when "
        "disable_output_partition_graphs is true."));
    return;
  }
  auto owned = std::make_shared<MasterStep>();
  MasterStep* step = owned.get();
  step->session = shared_from_this();
  step->plan = std::move(plan);
  step->id = id;
  step->done = std::move(done);
  step->metadata = args.metadata;
  const size_t num_parts = step->plan->parts.size();
  step->parts = std::make_unique<MasterStep::Part[]>(num_parts);
  step->traced = args.metadata != nullptr &&
                 (args.options.trace ||
                  (args.options.trace_local && !state_->env.name_tasks));
  step->wants_costs =
      state_->WantsCosts(*step->plan) && args.metadata != nullptr;
  if (step->traced || step->wants_costs) {
    step->stats = std::make_unique<StepStatsCollector>();
  }
  const int64_t limit = TimeoutOf(args.options);
  if (limit > 0 && state_->env.name_tasks && !step->plan->partial) {
    step->deadline = TheClock().Now() + TimeLimit(limit);
  }
  absl::Status refused;
  {
    MutexLock lock(state_->mu);
    if (state_->closed) {
      refused = state_->Gone();
    } else {
      state_->running.insert(owned);
    }
  }
  if (!refused.ok()) {
    step->done(refused);
    return;
  }
  if (step->deadline) EndLateStepsAt(*step->deadline);
  state_->env.totals->started.fetch_add(1, std::memory_order_relaxed);
  step->left.store(static_cast<int>(num_parts), std::memory_order_relaxed);
  const std::shared_ptr<const StepPlan> keep = step->plan;
  for (size_t i = 0; i < num_parts; ++i) {
    const StepPlan::TaskPart& part = keep->parts[i];
    RunGraphRequest request;
    request.graph = part.graph.get();
    request.step_id = step->id;
    request.cancellation = &step->parts[i].cancellation;
    request.stats = step->stats.get();
    if (args.metadata != nullptr && args.options.partition_graphs) {
      request.device_graphs = &step->parts[i].graphs;
    }
    if (part.has_client_edges) {
      request.feeds = args.feeds;
      request.fetches = args.fetches;
    }
    part.worker->RunGraph(request, [this, step, i](absl::Status status) {
      if (!status.ok()) {
        if (state_->env.name_tasks &&
            (absl::IsUnavailable(status) || MeansRestart(status))) {
          step->plan->Doubt();
        }
        if (const std::optional<int> fetch = DeadFetchOf(status);
            fetch && state_->env.name_tasks) {
          status = NoFetch(*step, *fetch, state_->client_device);
        }
        status = state_->AtTask(status, step->plan->parts[i].task);
        bool cause = false;
        {
          MutexLock lock(step->mu);
          const bool root = !IsDerived(status);
          cause = root && (step->status.ok() || IsDerived(step->status));
          if (cause || step->status.ok()) step->status = status;
          // After the first, some parts end because they were told to.
          if (cause ||
              (root && !step->roots.empty() && !absl::IsCancelled(status))) {
            step->roots.push_back(status);
          }
        }
        if (cause && step->plan->parts.size() > 1) step->CancelParts(status);
      }
      step->parts[i].done.store(true, std::memory_order_relaxed);
      if (step->left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        FinishStep(step);
      }
    });
  }
  if (num_parts == 0) FinishStep(step);
}

void MasterSession::CancelStep(int64_t step_id, const absl::Status& why) {
  std::shared_ptr<MasterStep> step;
  {
    MutexLock lock(state_->mu);
    for (const auto& running : state_->running) {
      if (running->id == step_id) step = running;
    }
  }
  if (step == nullptr) return;
  const bool late = state_->env.name_tasks && absl::IsDeadlineExceeded(why);
  step->Cancel(late ? TooLate(*step, why) : why);
}

void MasterSession::EndLateStepsAt(SteadyTime time) {
  {
    MutexLock lock(state_->mu);
    if (!state_->timers.empty() && *state_->timers.begin() <= time) return;
    state_->timers.insert(time);
  }
  CallLater(time - TheClock().Now(), [weak = weak_from_this(), time] {
    if (auto self = weak.lock()) self->EndLateSteps(time);
  });
}

void MasterSession::EndLateSteps(SteadyTime timer) {
  std::vector<std::shared_ptr<MasterStep>> late;
  SteadyTime next = SteadyTime::max();
  {
    MutexLock lock(state_->mu);
    state_->timers.erase(timer);
    const SteadyTime now = TheClock().Now();
    for (const auto& step : state_->running) {
      if (!step->deadline) continue;
      if (*step->deadline > now) {
        next = std::min(next, *step->deadline);
      } else {
        late.push_back(step);
      }
    }
  }
  for (const auto& step : late) {
    step->Cancel(TooLate(*step, DeadlineExceeded("Operation timed out.")));
  }
  if (next != SteadyTime::max()) EndLateStepsAt(next);
}

void MasterSession::FinishStep(MasterStep* step) {
  const StepPlan& plan = *step->plan;
  absl::Status status;
  {
    MutexLock lock(step->mu);
    status = step->roots.empty() ? step->status : Join(step->roots);
  }
  if (IsDerived(status)) {
    status = WithMessage(
        status, std::string(status.message()).substr(sizeof(kDerivedMark) - 1));
  }
  if (step->metadata != nullptr) {
    if (step->stats != nullptr) {
      std::vector<StepStatsCollector::DeviceStats> stats = step->stats->Take();
      if (step->wants_costs) {
        std::vector<std::shared_ptr<const Graph>> graphs;
        for (const auto& part : plan.parts) graphs.push_back(part.definition);
        step->metadata->cost_graph = CostGraph(graphs, stats);
      }
      if (step->traced) step->metadata->step_stats = std::move(stats);
    }
    for (size_t i = 0; i < plan.parts.size(); ++i) {
      for (auto& graph : step->parts[i].graphs) {
        step->metadata->partition_graphs.push_back(std::move(graph));
      }
    }
  }
  // Nothing of a step without transfers is left on its worker. What a partial
  // run has computed stays there until it is fetched.
  const bool clean_up = plan.has_transfers && !plan.partial;
  if (status.ok()) {
    const std::shared_ptr<MasterSession> self = step->session;
    const std::shared_ptr<const StepPlan> keep = step->plan;
    const int64_t id = step->id;
    ReportStep(step, std::move(status));
    if (clean_up) CleanUpStep(*keep, id);
    state_->MaybeFinishClose();
    return;
  }
  state_->env.totals->failed.fetch_add(1, std::memory_order_relaxed);
  // First, so that whatever its client does next comes to the other tasks after
  // the end of this step there.
  if (step->cancelled.load(std::memory_order_relaxed) && !plan.partial) {
    EndStepEverywhere(step, std::move(status));
    return;
  }
  if (clean_up) CleanUpStep(plan, step->id);
  const std::shared_ptr<MasterSession> self = step->session;
  ReportStep(step, std::move(status));
  state_->MaybeFinishClose();
}

void MasterSession::EndStepEverywhere(MasterStep* step, absl::Status status) {
  // The last task to answer reports.
  struct Ending {
    MasterStep* step = nullptr;
    absl::Status status;
    std::atomic<size_t> left;
    Mutex mu;
    std::string silent SLUICE_GUARDED_BY(mu);  // Tasks that do not answer.
  };
  const std::shared_ptr<const StepPlan> plan = step->plan;
  const auto ending = std::make_shared<Ending>();
  ending->step = step;
  ending->status = std::move(status);
  ending->left.store(plan->parts.size());
  for (const StepPlan::TaskPart& part : plan->parts) {
    part.worker->EndStep(step->id, [this, ending](const absl::Status& ended) {
      if (!ended.ok()) {
        MutexLock lock(ending->mu);
        StrAppend(&ending->silent, " ", ended.message());
      }
      if (ending->left.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
      const std::shared_ptr<MasterSession> self = ending->step->session;
      absl::Status status = std::move(ending->status);
      if (absl::IsDeadlineExceeded(status)) {
        MutexLock lock(ending->mu);
        status = WithMessage(status, StrCat(status.message(), ending->silent));
      }
      ReportStep(ending->step, std::move(status));
      state_->MaybeFinishClose();
    });
  }
}

void MasterSession::ReportStep(MasterStep* step, absl::Status status) {
  const std::shared_ptr<MasterSession> self = std::move(step->session);
  step->done(std::move(status));
  std::shared_ptr<MasterStep> over;
  MutexLock lock(state_->mu);
  auto it = state_->running.find(step);
  over = std::move(state_->running.extract(it).value());
}

void MasterSession::CleanUpStep(const StepPlan& plan, int64_t step_id) {
  {
    MutexLock lock(state_->mu);
    state_->cleanups += static_cast<int>(plan.parts.size());
  }
  for (const StepPlan::TaskPart& part : plan.parts) {
    part.worker->CleanupGraph(step_id,
                              [self = shared_from_this()](absl::Status) {
                                {
                                  MutexLock lock(self->state_->mu);
                                  --self->state_->cleanups;
                                }
                                self->state_->MaybeFinishClose();
                              });
  }
}

void MasterSession::State::MaybeFinishClose() {
  std::vector<Done> finished;
  std::map<std::string, std::shared_ptr<WorkerInterface>> opened_on;
  bool first;
  {
    MutexLock lock(mu);
    if (!closed || !running.empty() || cleanups > 0) return;
    opened_on.swap(maybe_open);
    for (const ConnectedTask& task : tasks->present) {
      opened_on[task.name] = task.worker;
    }
    finished.swap(waiting_close);
    first = !torn_down;
    torn_down = true;
  }
  if (first) {
    // The client does not wait for workers that may be gone.
    for (const auto& [name, worker] : opened_on) {
      worker->DeleteSession(handle, [handle = handle](absl::Status status) {
        // Nothing is left to close of a task that is gone.
        if (status.ok() || absl::IsUnavailable(status)) return;
        SLUICE_LOG(WARNING)
            << "Closing session " << handle << ": " << status.message();
      });
    }
    // Last: the graphs go with the sessions and need no calls of their own.
    plans.Clear();
  }
  for (Done& done : finished) done(absl::OkStatus());
}

void MasterSession::NoteUse() {
  state_->last_use.store(CoarseNow(), std::memory_order_relaxed);
}

MasterSession::Info MasterSession::info() const {
  Info info{state_->handle,
            state_->opened,
            state_->last_use.load(std::memory_order_relaxed),
            {}};
  MutexLock lock(state_->mu);
  for (const auto& step : state_->running) {
    Info::RunningStep& running = info.steps.emplace_back();
    running.id = step->id;
    running.since = step->since;
    running.running_on = step->RunningOn();
  }
  return info;
}

void MasterSession::Close(const absl::Status& why, Done done) {
  const auto self = shared_from_this();  // `done` may drop the last reference.
  std::vector<std::shared_ptr<MasterStep>> running;
  std::vector<std::shared_ptr<OpenPartialRun>> partial_runs;
  std::shared_ptr<Cancellation> attaching;
  {
    MutexLock lock(state_->mu);
    attaching = state_->attaching;
    state_->waiting_close.push_back(std::move(done));
    if (!state_->closed) {
      state_->closed = true;
      state_->closed_cause = why;
      running.assign(state_->running.begin(), state_->running.end());
      for (auto& [name, run] : state_->partial_runs) {
        partial_runs.push_back(std::move(run));
      }
      state_->partial_runs.clear();
    }
  }
  // In a fixed order, so that simulations can be repeated.
  std::ranges::sort(running, {}, [](const auto& step) { return step->id; });
  for (const auto& step : running) step->Cancel(why);
  if (attaching != nullptr) attaching->Cancel(why);
  for (const auto& run : partial_runs) CleanUpStep(*run->plan, run->step_id);
  state_->MaybeFinishClose();
}

}  // namespace sluice
