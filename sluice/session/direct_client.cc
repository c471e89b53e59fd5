// Sessions whose master lives in this process: nothing is serialised, and a
// step that has nothing to wait for runs on the caller's thread.
#include <algorithm>
#include <chrono>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"
#include "sluice/base/patience.h"
#include "sluice/base/status.h"
#include "sluice/graph/functions.h"
#include "sluice/session/session_client.h"
#include "sluice/session/turn.h"

namespace sluice {
namespace {

// Waits for one result that may come on another thread.
class Waiter {
 public:
  // False if there is a result already, which stays.
  bool Finish(absl::Status status) {
    MutexLock lock(mu_);
    if (std::exchange(finished_, true)) return false;
    status_ = std::move(status);
    changed_.NotifyAll();
    return true;
  }
  // False when `deadline` passed first.
  bool WaitUntil(std::optional<SteadyTime> deadline) {
    MutexLock lock(mu_);
    while (!finished_) {
      if (!deadline) {
        changed_.Wait(mu_);
      } else if (!changed_.WaitUntil(mu_, *deadline)) {
        return finished_;
      }
    }
    return true;
  }
  absl::Status Take() {
    MutexLock lock(mu_);
    return std::move(status_);
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool finished_ SLUICE_GUARDED_BY(mu_) = false;
  absl::Status status_ SLUICE_GUARDED_BY(mu_);
};

// Waits for the end. When the caller loses patience it calls `cancel`, and
// waits on: what the call uses may be the caller's.
void Await(const Limit& limit, Waiter* waiter, Limit::Cancel cancel) {
  do {
    const bool poll = limit.interrupted != nullptr;
    if (waiter->WaitUntil(poll ? limit.NextLook() : limit.deadline)) return;
  } while (!limit.CancelIfReached(cancel));
  waiter->WaitUntil(std::nullopt);
}

// Copies the nodes of `from` that `to` does not have yet. `to` is always a copy
// of the first nodes of `from`, so ids agree.
void CopyNewNodes(const Graph& from, Graph* to) {
  const int first = to->num_nodes();
  if (!from.functions().empty()) to->functions() = from.functions();
  for (int id = first; id < from.num_nodes(); ++id) {
    to->CopyNode(*from.node(id), from.node(id)->name());
  }
  for (int id = first; id < from.num_nodes(); ++id) {
    const Node& node = *from.node(id);
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Output input = node.input(i);
      if (input)
        to->Connect({to->node(input.node->id()), input.index}, to->node(id), i);
    }
    for (const Node* control : node.control_inputs()) {
      to->AddControlEdge(to->node(control->id()), to->node(id));
    }
  }
}

class DirectClient : public SessionClient {
 public:
  DirectClient(std::shared_ptr<Master> master, const SessionConfig& config)
      : master_(std::move(master)),
        config_(config),
        local_(config.target.empty()) {}

  absl::Status Sync(const Graph& graph, const RunOptions& options) override {
    SLUICE_RETURN_IF_ERROR(TakeTurn(options));
    absl::Status status = SyncInTurn(graph);
    turn_.GiveBack();
    return status;
  }

  absl::StatusOr<std::shared_ptr<PreparedStep>> Prepare(
      const StepSignature& signature, const RunOptions& options) override;

  absl::StatusOr<std::string> SetUpPartialRun(
      const StepSignature& signature) override {
    StepSignature partial = signature;
    partial.partial = true;
    SLUICE_RETURN_IF_ERROR(Plan(partial, {}).status());
    return session_->SetUpPartialRun(signature);  // Finds the plan.
  }

  absl::Status RunPartially(const std::string& name,
                            PartialRunArgs args) override {
    Waiter waiter;
    {
      MutexLock lock(mu_);
      if (session_ == nullptr) return NoSuchPartialRun(local_);
      partial_.insert(name);
    }
    session_->RunPartially(
        name, args, [&](absl::Status s) { waiter.Finish(std::move(s)); });
    Await(LimitOf({}), &waiter, [&](const absl::Status& why) {
      session_->CancelPartialRun(name, why);
    });
    MutexLock lock(mu_);
    partial_.erase(name);
    return waiter.Take();
  }

  absl::StatusOr<std::vector<DeviceInfo>> ListDevices() override {
    return session_->devices();
  }

  absl::Status Close() override {
    absl::flat_hash_set<std::shared_ptr<Cancellation>> asking;
    {
      MutexLock lock(mu_);
      closing_ = true;
      asking = asking_;
    }
    for (const auto& call : asking) call->Cancel(ClosedByClient());
    const Limit limit = {
        DeadlineIn(CloseTimeout(config_.options.operation_timeout_ms)),
        "Operation timed out.", config_.interrupted};
    Cancellation call;
    absl::Status status = turn_.Take(limit, call);
    if (status.ok()) {
      if (session_ != nullptr) status = CloseInTurn(limit);
      turn_.GiveBack();
    }
    if (absl::IsDeadlineExceeded(status)) {
      SLUICE_LOG(WARNING)
          << "A session that is closed has steps that do not end; they are "
             "left alone";
      return absl::OkStatus();
    }
    // A reset has closed it already.
    if (local_ && absl::IsAborted(status)) return absl::OkStatus();
    return status;
  }

  void Interrupt() override {
    absl::flat_hash_set<std::shared_ptr<Cancellation>> asking;
    absl::flat_hash_set<int64_t> steps;
    absl::flat_hash_set<std::string> partial;
    {
      MutexLock lock(mu_);
      partial = partial_;
      asking = asking_;
      steps = blocked_;
    }
    for (const auto& call : asking) call->Cancel(Cancelled("Interrupted"));
    for (int64_t id : steps) {
      session_->CancelStep(id, Cancelled("Interrupted"));
    }
    for (const std::string& name : partial) {
      session_->CancelPartialRun(name, Cancelled("Interrupted"));
    }
  }

  using PlanPtr = std::shared_ptr<const StepPlan>;
  // The plan is made and kept even if the caller does not wait for it.
  absl::StatusOr<PlanPtr> Plan(const StepSignature& signature,
                               const RunOptions& options) {
    Limit limit = LimitOf(options);
    // The session gives up by itself then, and knows which task is silent.
    if (!local_ && options.timeout_ms <= 0 && limit.deadline) {
      *limit.deadline += std::chrono::milliseconds(300);
    }
    return Ask<PlanPtr>(limit, [&](auto, auto done) {
      session_->PlanAsync(signature, [done = std::move(done)](
                                         absl::StatusOr<PlanPtr> plan) mutable {
        done(std::move(plan));
      });
    });
  }

  absl::Status RunPlan(const std::shared_ptr<const StepPlan>& plan,
                       std::span<const Tensor> feeds, std::span<Tensor> fetches,
                       const RunOptions& options, RunMetadata* metadata) {
    // Set on this thread when the step ends before Run returns, which is the
    // common case and then needs no lock.
    struct Inline {
      std::atomic<int> state{0};  // 1: ended before Run returned, 2: returned.
      absl::Status status;
      Waiter waiter;
    } wait;
    MasterSession::RunArgs args;
    args.feeds = feeds;
    args.fetches = fetches;
    args.options = options;
    args.metadata = metadata;
    const Limit limit = LimitOf(options);
    const int64_t id = session_->NewStepId();
    const auto cancel = [&](const absl::Status& why) {
      session_->CancelStep(id, why);
    };
    const auto ask = [&] { limit.CancelIfReached(cancel); };
    {
      const Patience patience(ask);
      session_->RunAs(id, plan, args, [&wait](absl::Status s) {
        wait.status = std::move(s);
        if (wait.state.exchange(1, std::memory_order_acq_rel) == 2) {
          wait.waiter.Finish(absl::OkStatus());
        }
      });
    }
    if (wait.state.exchange(2, std::memory_order_acq_rel) == 1) {
      return std::move(wait.status);
    }
    {
      MutexLock lock(mu_);
      blocked_.insert(id);
    }
    Await(limit, &wait.waiter, cancel);
    MutexLock lock(mu_);
    blocked_.erase(id);
    return std::move(wait.status);
  }

 private:
  int64_t TimeoutOf(const RunOptions& options) const {
    return options.timeout_ms > 0 ? options.timeout_ms
                                  : config_.options.operation_timeout_ms;
  }

  Limit LimitOf(const RunOptions& options) const {
    return {DeadlineIn(TimeoutOf(options)), timed_out_, config_.interrupted};
  }

  // Calls `start`, which passes an answer on, and waits for that; no longer
  // than `limit` allows, and not when the session is closed or interrupted. An
  // answer that comes later is lost; whoever gives it is told by false.
  template <typename T>
  absl::StatusOr<T> Ask(
      const Limit& limit,
      absl::FunctionRef<void(std::shared_ptr<Cancellation>,
                             absl::AnyInvocable<bool(absl::StatusOr<T>)>)>
          start) {
    struct Answer {
      Waiter waiter;
      T value;
    };
    const auto answer = std::make_shared<Answer>();
    const auto call = std::make_shared<Cancellation>();
    {
      MutexLock lock(mu_);
      if (closing_) return ClosedByClient();
      asking_.insert(call);
    }
    start(call, [answer](absl::StatusOr<T> value) {
      absl::Status status = value.status();
      if (status.ok()) answer->value = *std::move(value);
      return answer->waiter.Finish(std::move(status));
    });
    // Comes after what the call itself registered, which may know more: who is
    // missing.
    const auto give_up = [answer, call = call.get()] {
      answer->waiter.Finish(call->status());
    };
    if (call->Register(give_up) == Cancellation::kNone) give_up();
    Await(limit, &answer->waiter,
          [&](const absl::Status& why) { call->Cancel(why); });
    {
      MutexLock lock(mu_);
      asking_.erase(call);
    }
    SLUICE_RETURN_IF_ERROR(answer->waiter.Take());
    return std::move(answer->value);
  }

  int NumNodes(const Graph& graph) const {
    const auto held = LockGraph(config_);
    return graph.num_nodes();
  }

  absl::Status TakeTurn(const RunOptions& options) {
    const auto call = std::make_shared<Cancellation>();
    {
      MutexLock lock(mu_);
      if (closing_) return ClosedByClient();
      asking_.insert(call);
    }
    absl::Status status = turn_.Take(LimitOf(options), *call);
    MutexLock lock(mu_);
    asking_.erase(call);
    return status;
  }

  absl::Status SyncInTurn(const Graph& graph) {
    if (session_ == nullptr) SLUICE_RETURN_IF_ERROR(Open(graph));
    int now = NumNodes(graph);
    if (sent_ == now) return absl::OkStatus();
    SLUICE_RETURN_IF_ERROR(session_->Extend([&](Graph& copy) {
      const auto held = LockGraph(config_);
      CopyNewNodes(graph, &copy);
      now = graph.num_nodes();
      return absl::OkStatus();
    }));
    sent_ = now;
    return absl::OkStatus();
  }

  absl::Status CloseInTurn(const Limit& limit) {
    // If nobody waits for it any more, the rest keeps itself alive.
    const auto waiter = std::make_shared<Waiter>();
    master_->CloseSession(session_->handle(), ClosedByClient(),
                          [waiter, master = master_](absl::Status s) {
                            waiter->Finish(std::move(s));
                          });
    Await(limit, waiter.get(),
          [&](const absl::Status& why) { waiter->Finish(why); });
    return waiter->Take();
  }

  // The time of a step begins when its session is open, as in TensorFlow.
  absl::Status Open(const Graph& graph) {
    SessionOptions options = config_.options;
    {
      const auto held = LockGraph(config_);
      for (int id = 0; id < graph.num_nodes(); ++id) {
        options.wanted_devices.insert(graph.node(id)->device());
      }
    }
    using SessionPtr = std::shared_ptr<MasterSession>;
    const Limit limit = {DeadlineIn(config_.options.operation_timeout_ms),
                         "Operation timed out.", config_.interrupted};
    SLUICE_ASSIGN_OR_RETURN(
        SessionPtr session,
        Ask<SessionPtr>(limit, [&](auto cancellation, auto done) {
          master_->CreateSession(
              std::move(options), std::move(cancellation),
              [master = master_, done = std::move(done)](
                  absl::StatusOr<SessionPtr> made) mutable {
                const std::string handle = made.ok() ? (*made)->handle() : "";
                if (!done(std::move(made)) && !handle.empty()) {
                  master->CloseSession(handle, ClosedByClient(),
                                       [](absl::Status) {});
                }
              });
        }));
    MutexLock lock(mu_);
    session_ = std::move(session);
    return absl::OkStatus();
  }

  const std::shared_ptr<Master> master_;
  const SessionConfig config_;
  const bool local_;  // It has a master of its own.
  // What scripts know.
  const char* const timed_out_ =
      local_ ? "Timed out waiting for notification" : "Operation timed out.";
  Turn turn_;  // To open, extend or close the session.
  // Set once under mu_, by the first Sync; steps come after it and need no
  // lock.
  std::shared_ptr<MasterSession> session_;
  int sent_ = 0;  // Only who has the turn looks.
  Mutex mu_;
  bool closing_ SLUICE_GUARDED_BY(mu_) = false;
  // What waits for other tasks.
  absl::flat_hash_set<std::shared_ptr<Cancellation>> asking_
      SLUICE_GUARDED_BY(mu_);
  absl::flat_hash_set<int64_t> blocked_ SLUICE_GUARDED_BY(mu_);
  absl::flat_hash_set<std::string> partial_ SLUICE_GUARDED_BY(mu_);
};

class DirectStep : public PreparedStep {
 public:
  DirectStep(DirectClient& client, const StepSignature& signature,
             std::shared_ptr<const StepPlan> plan)
      : client_(client), signature_(signature), plan_(std::move(plan)) {}
  absl::Status Run(std::span<const Tensor> feeds, std::span<Tensor> fetches,
                   const RunOptions& options, RunMetadata* metadata) override {
    if (!MasterSession::IsDoubtful(*plan_)) {
      return client_.RunPlan(plan_, feeds, fetches, options, metadata);
    }
    SLUICE_ASSIGN_OR_RETURN(const DirectClient::PlanPtr plan, Renewed(options));
    return client_.RunPlan(plan, feeds, fetches, options, metadata);
  }

 private:
  using PlanPtr = DirectClient::PlanPtr;

  absl::StatusOr<PlanPtr> Renewed(const RunOptions& options) {
    {
      MutexLock lock(mu_);
      if (renewed_ != nullptr && !MasterSession::IsDoubtful(*renewed_)) {
        return renewed_;
      }
    }
    SLUICE_ASSIGN_OR_RETURN(PlanPtr plan, client_.Plan(signature_, options));
    PlanPtr kept = plan;  // What was there ends after the lock.
    MutexLock lock(mu_);
    renewed_.swap(kept);
    return plan;
  }

  DirectClient& client_;
  const StepSignature signature_;
  // Found without a lock, and kept for that when it is replaced.
  const PlanPtr plan_;
  Mutex mu_;
  PlanPtr renewed_ SLUICE_GUARDED_BY(mu_);
};

absl::StatusOr<std::shared_ptr<PreparedStep>> DirectClient::Prepare(
    const StepSignature& signature, const RunOptions& options) {
  SLUICE_ASSIGN_OR_RETURN(PlanPtr plan, Plan(signature, options));
  return std::make_shared<DirectStep>(*this, signature, std::move(plan));
}

}  // namespace

std::unique_ptr<SessionClient> MakeDirectClient(std::shared_ptr<Master> master,
                                                const SessionConfig& config) {
  return std::make_unique<DirectClient>(std::move(master), config);
}

absl::Status ResetDirectly(Master& master, const SessionConfig& config,
                           const std::vector<std::string>& containers) {
  const auto waiter = std::make_shared<Waiter>();
  master.Reset(containers, config.options.device_filters,
               [waiter](absl::Status s) { waiter->Finish(std::move(s)); });
  // Nothing of it is the caller's, so it goes on alone.
  Await({DeadlineIn(config.options.operation_timeout_ms),
         "Operation timed out.", config.interrupted},
        waiter.get(), [&](const absl::Status& why) { waiter->Finish(why); });
  return waiter->Take();
}

}  // namespace sluice
