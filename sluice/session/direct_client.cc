// Sessions whose master lives in this process: nothing is serialised, and a
// step that has nothing to wait for runs on the caller's thread.
#include <algorithm>
#include <chrono>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "sluice/base/mutex.h"
#include "sluice/base/patience.h"
#include "sluice/base/status.h"
#include "sluice/graph/functions.h"
#include "sluice/session/session_client.h"

namespace sluice {
namespace {

// Waits for one result that may come on another thread.
class Waiter {
 public:
  void Finish(absl::Status status) {
    MutexLock lock(mu_);
    status_ = std::move(status);
    finished_ = true;
    changed_.NotifyAll();
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

// How often a blocked call asks whether it was interrupted.
constexpr auto kPollPeriod = std::chrono::milliseconds(100);

std::optional<SteadyTime> DeadlineIn(int64_t ms) {
  if (ms <= 0) return std::nullopt;
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
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
        options_(config.options),
        timed_out_(config.target.empty() ? "Timed out waiting for notification"
                                         : "Operation timed out."),
        interrupted_(config.interrupted) {}

  absl::Status Sync(const Graph& graph) override {
    MutexLock lock(sync_mu_);
    if (session_ == nullptr) SLUICE_RETURN_IF_ERROR(Open(graph));
    if (sent_ == graph.num_nodes()) return absl::OkStatus();
    SLUICE_RETURN_IF_ERROR(session_->Extend([&](Graph& copy) {
      CopyNewNodes(graph, &copy);
      return absl::OkStatus();
    }));
    sent_ = graph.num_nodes();
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<PreparedStep>> Prepare(
      const StepSignature& signature) override;

  absl::StatusOr<std::string> SetUpPartialRun(
      const StepSignature& signature) override {
    return session_->SetUpPartialRun(signature);
  }

  absl::Status RunPartially(const std::string& name,
                            PartialRunArgs args) override {
    Waiter waiter;
    {
      MutexLock lock(mu_);
      partial_.insert(name);
    }
    session_->RunPartially(
        name, args, [&](absl::Status s) { waiter.Finish(std::move(s)); });
    waiter.WaitUntil(std::nullopt);
    MutexLock lock(mu_);
    partial_.erase(name);
    return waiter.Take();
  }

  absl::StatusOr<std::vector<DeviceInfo>> ListDevices() override {
    return std::vector<DeviceInfo>(session_->devices().begin(),
                                   session_->devices().end());
  }

  absl::Status Close() override {
    std::shared_ptr<Cancellation> opening;
    {
      MutexLock lock(mu_);
      closing_ = true;
      opening = opening_;
    }
    if (opening != nullptr) opening->Cancel(ClosedByClient());
    MutexLock lock(sync_mu_);
    if (session_ == nullptr) return absl::OkStatus();
    Waiter waiter;
    master_->CloseSession(session_->handle(), ClosedByClient(),
                          [&](absl::Status s) { waiter.Finish(std::move(s)); });
    waiter.WaitUntil(std::nullopt);
    return waiter.Take();
  }

  void Interrupt() override {
    std::shared_ptr<Cancellation> opening;
    absl::flat_hash_set<int64_t> steps;
    absl::flat_hash_set<std::string> partial;
    {
      MutexLock lock(mu_);
      partial = partial_;
      opening = opening_;
      steps = blocked_;
    }
    if (opening != nullptr) opening->Cancel(Cancelled("Interrupted"));
    for (int64_t id : steps) {
      session_->CancelStep(id, Cancelled("Interrupted"));
    }
    for (const std::string& name : partial) {
      session_->CancelPartialRun(name, Cancelled("Interrupted"));
    }
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
    const int64_t limit = options.timeout_ms > 0
                              ? options.timeout_ms
                              : options_.operation_timeout_ms;
    const std::optional<SteadyTime> deadline = DeadlineIn(limit);
    const int64_t id = session_->NewStepId();
    const auto cancel = [&](const absl::Status& why) {
      session_->CancelStep(id, why);
    };
    const auto ask = [&] { CancelIfUnwanted(deadline, timed_out_, cancel); };
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
    Await(&wait.waiter, deadline, timed_out_, cancel);
    MutexLock lock(mu_);
    blocked_.erase(id);
    return std::move(wait.status);
  }

 private:
  using Cancel = absl::FunctionRef<void(const absl::Status&)>;

  // Waits for the end. When the caller loses patience it calls `cancel`, and
  // waits on: what the call uses may be the caller's.
  void Await(Waiter* waiter, std::optional<SteadyTime> deadline,
             const char* timed_out, Cancel cancel) {
    do {
      std::optional<SteadyTime> until = deadline;
      if (interrupted_) {
        const SteadyTime poll = std::chrono::steady_clock::now() + kPollPeriod;
        until = until ? std::min(*until, poll) : poll;
      }
      if (waiter->WaitUntil(until)) return;
    } while (!CancelIfUnwanted(deadline, timed_out, cancel));
    waiter->WaitUntil(std::nullopt);
  }

  bool CancelIfUnwanted(std::optional<SteadyTime> deadline,
                        const char* timed_out, Cancel cancel) {
    if (deadline && std::chrono::steady_clock::now() >= *deadline) {
      cancel(DeadlineExceeded(timed_out));
    } else if (interrupted_ && interrupted_()) {
      cancel(Cancelled("Interrupted"));
    } else {
      return false;
    }
    return true;
  }

  absl::Status Open(const Graph& graph) SLUICE_REQUIRES(sync_mu_) {
    SessionOptions options = options_;
    for (int id = 0; id < graph.num_nodes(); ++id) {
      options.wanted_devices.insert(graph.node(id)->device());
    }
    auto opening = std::make_shared<Cancellation>();
    {
      MutexLock lock(mu_);
      if (closing_) return ClosedByClient();
      opening_ = opening;
    }
    Waiter waiter;
    std::shared_ptr<MasterSession> session;
    master_->CreateSession(
        std::move(options), opening,
        [&](absl::StatusOr<std::shared_ptr<MasterSession>> made) {
          if (made.ok()) session = *made;
          waiter.Finish(made.status());
        });
    Await(&waiter, DeadlineIn(options_.operation_timeout_ms),
          "Operation timed out.",
          [&](const absl::Status& why) { opening->Cancel(why); });
    MutexLock lock(mu_);
    opening_ = nullptr;
    SLUICE_RETURN_IF_ERROR(waiter.Take());
    session_ = std::move(session);
    return absl::OkStatus();
  }

  const std::shared_ptr<Master> master_;
  const SessionOptions options_;
  const char* const timed_out_;  // What scripts know.
  const std::function<bool()> interrupted_;
  // Held while the session is opened or extended; taken before mu_.
  Mutex sync_mu_;
  // Set once, by the first Sync; steps come after it and need no lock.
  std::shared_ptr<MasterSession> session_;
  int sent_ SLUICE_GUARDED_BY(sync_mu_) = 0;
  Mutex mu_;
  bool closing_ SLUICE_GUARDED_BY(mu_) = false;
  std::shared_ptr<Cancellation> opening_ SLUICE_GUARDED_BY(mu_);
  absl::flat_hash_set<int64_t> blocked_ SLUICE_GUARDED_BY(mu_);
  absl::flat_hash_set<std::string> partial_ SLUICE_GUARDED_BY(mu_);
};

class DirectStep : public PreparedStep {
 public:
  DirectStep(DirectClient& client, std::shared_ptr<const StepPlan> plan)
      : client_(client), plan_(std::move(plan)) {}
  absl::Status Run(std::span<const Tensor> feeds, std::span<Tensor> fetches,
                   const RunOptions& options, RunMetadata* metadata) override {
    return client_.RunPlan(plan_, feeds, fetches, options, metadata);
  }

 private:
  DirectClient& client_;
  const std::shared_ptr<const StepPlan> plan_;
};

absl::StatusOr<std::shared_ptr<PreparedStep>> DirectClient::Prepare(
    const StepSignature& signature) {
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<const StepPlan> plan,
                          session_->Plan(signature));
  return std::make_shared<DirectStep>(*this, std::move(plan));
}

}  // namespace

std::unique_ptr<SessionClient> MakeDirectClient(std::shared_ptr<Master> master,
                                                const SessionConfig& config) {
  return std::make_unique<DirectClient>(std::move(master), config);
}

}  // namespace sluice
