// Tasks that were restarted while a session is open. If nothing of the session
// was lost with them, it is opened there again and its steps go on; otherwise
// they fail until the client opens another one.

#include <algorithm>
#include <set>
#include <utility>

#include "sluice/base/blocking_pool.h"
#include "sluice/base/logging.h"
#include "sluice/master/session.h"
#include "sluice/master/session_state.h"

namespace sluice {
namespace {

// Whether running `node` may leave something in its task that a later step
// builds on. Variables, queues and tables do, and so does a generator of random
// numbers that are to be the same in every run.
bool KeepsState(const Node& node) {
  const std::string& type = node.type();
  // They live no longer than a step.
  if (type.starts_with("TensorArray") || type.starts_with("Stack")) {
    return false;
  }
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (IsRef(node.input_type(i))) return true;
  }
  if (std::ranges::any_of(node.output_types(), IsRef)) return true;
  if (!node.op().def.stateful || type.starts_with('_')) return false;
  if (type == "Assert" || type == "Print" || type == "PrintV2") return false;
  if (node.FindAttr("seed") != nullptr && node.FindAttr("seed2") != nullptr) {
    return node.attr<int64_t>("seed") != 0 || node.attr<int64_t>("seed2") != 0;
  }
  return true;
}

bool HasLife(std::span<const DeviceInfo> devices, uint64_t incarnation) {
  return std::ranges::any_of(devices, [&](const DeviceInfo& device) {
    return device.incarnation == incarnation;
  });
}

}  // namespace

void MasterSession::State::NoteState(const StepPlan& plan) {
  for (const StepPlan::TaskPart& part : plan.parts) {
    const Graph& graph = *part.definition;
    for (int id = 0; id < graph.num_nodes(); ++id) {
      if (!KeepsState(*graph.node(id))) continue;
      MutexLock lock(mu);
      tasks_with_state.insert(part.task);
      break;
    }
  }
}

bool MasterSession::IsDoubtful(const StepPlan& plan) {
  return plan.standing.load(std::memory_order_relaxed) !=
         StepPlan::Standing::kGood;
}

bool MasterSession::State::TakeRestart(const std::string& name,
                                       std::span<const DeviceInfo> devices) {
  {
    MutexLock lock(mu);
    if (closed) return false;
    const ConnectedTask* known = tasks->Find(name);
    // Somebody else was here. What this life keeps now the last one never had.
    if (known == nullptr || known->devices.empty() ||
        HasLife(devices, known->devices[0].incarnation)) {
      return true;
    }
    if (tasks_with_state.contains(name)) return false;
    // Others count the graphs of a session from zero in each life, so that what
    // is meant for a graph of the last one would reach one of this.
    if (!known->worker->TakesGroups()) return false;
    maybe_open[name] = known->worker;
    std::vector<ConnectedTask> all = tasks->present;
    all.insert(all.end(), tasks->left_out.begin(), tasks->left_out.end());
    const auto it = std::ranges::find(all, name, &ConnectedTask::name);
    it->missing = "it was restarted";
    it->was_here = true;
    tasks = std::make_shared<const SessionTasks>(std::move(all), env.own_task);
  }
  SLUICE_LOG(INFO) << name << " was restarted. Nothing of session " << handle
                   << " was lost with it, so it is opened there again.";
  return true;
}

void MasterSession::Renew(std::shared_ptr<const StepPlan> plan,
                          absl::AnyInvocable<void(bool)> done) {
  // The last answer counts them up.
  struct Asking {
    std::shared_ptr<const StepPlan> plan;
    absl::AnyInvocable<void(bool)> done;
    Mutex mu;
    size_t left SLUICE_GUARDED_BY(mu) = 0;
    // Those that answered; the others are not there.
    std::map<std::string, std::vector<DeviceInfo>> answers
        SLUICE_GUARDED_BY(mu);
  };
  const auto asking = std::make_shared<Asking>();
  asking->plan = std::move(plan);
  asking->done = std::move(done);
  const auto answered = [self = shared_from_this(), asking](
                            const std::string& task,
                            absl::StatusOr<std::vector<DeviceInfo>> devices) {
    std::map<std::string, std::vector<DeviceInfo>> answers;
    {
      MutexLock lock(asking->mu);
      if (devices.ok()) asking->answers[task] = *std::move(devices);
      if (--asking->left > 0) return;
      answers.swap(asking->answers);
    }
    asking->done(self->TakeRestarts(*asking->plan, answers));
  };
  {
    MutexLock lock(asking->mu);
    asking->left = asking->plan->parts.size();
  }
  for (const StepPlan::TaskPart& part : asking->plan->parts) {
    part.worker->GetStatus(
        /*wait=*/false, nullptr,
        [answered,
         task = part.task](absl::StatusOr<std::vector<DeviceInfo>> devices) {
          answered(task, std::move(devices));
        });
  }
}

bool MasterSession::TakeRestarts(
    const StepPlan& plan,
    const std::map<std::string, std::vector<DeviceInfo>>& answers) {
  // Whether it was made for a life of a task that is over.
  const auto is_over = [&](const StepPlan::TaskPart& part) {
    const auto it = answers.find(part.task);
    return it != answers.end() && !HasLife(it->second, part.incarnation);
  };
  std::set<std::string> renewed;
  size_t lost = 0;
  for (const StepPlan::TaskPart& part : plan.parts) {
    if (!is_over(part)) continue;
    if (state_->TakeRestart(part.task, answers.at(part.task))) {
      renewed.insert(part.task);
    } else {
      ++lost;
    }
  }
  const auto is_old = [&](const std::shared_ptr<const StepPlan>& other) {
    return std::ranges::any_of(other->parts, [&](const auto& part) {
      return renewed.contains(part.task) && is_over(part);
    });
  };
  // Whoever holds one of them asks for another. They end here, outside of the
  // lock of the cache.
  for (const auto& old : state_->plans.TakeIf(is_old)) {
    old->standing.store(StepPlan::Standing::kReplaced,
                        std::memory_order_relaxed);
  }
  if (!renewed.empty() && lost == 0) return true;
  auto doubtful = StepPlan::Standing::kDoubtful;
  plan.standing.compare_exchange_strong(doubtful, StepPlan::Standing::kGood,
                                        std::memory_order_relaxed);
  return false;
}

void MasterSession::PlanAsync(const StepSignature& signature,
                              absl::AnyInvocable<void(PlanOr)> done) {
  std::shared_ptr<const StepPlan> known = state_->plans.Find(signature);
  if (known == nullptr || !IsDoubtful(*known)) {
    FindOrMakePlan(signature, std::move(done));
    return;
  }
  Renew(std::move(known), [self = shared_from_this(), signature = signature,
                           done = std::move(done)](bool) mutable {
    // This may be a thread that polls the network.
    RunBlocking([self = std::move(self), signature = std::move(signature),
                 done = std::move(done)]() mutable {
      self->FindOrMakePlan(signature, std::move(done));
    });
  });
}

}  // namespace sluice
