// The plans of a session: its graph, placed, cut into the parts of a step and
// registered with their workers.
#include <algorithm>

#include "sluice/base/blocking_pool.h"
#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/master/session.h"
#include "sluice/master/session_state.h"
#include "sluice/passes/control_loops.h"
#include "sluice/passes/narrow_transfers.h"
#include "sluice/passes/partition.h"
#include "sluice/passes/simplify.h"

namespace sluice {

void MasterSession::State::WarnOfStrays(const std::string& first) {
  warned_of_strays = true;
  SLUICE_LOG(WARNING)
      << "Variables, queues or the like that ask for no task are in another "
         "job than the session's target, "
      << env.own_task << "; the first is " << first
      << ". The first device by name takes them; name a device for them, or "
         "set sluice_prefer_own_task in the session's ConfigProto.";
}

absl::Status MasterSession::State::FirstPlaceError() const {
  const auto first = std::ranges::min_element(
      place_errors, {}, [this](const auto& error) SLUICE_REQUIRES(graph_mu) {
        // Those that wait for their task are none.
        return std::pair(needed_tasks.contains(error.first), error.first);
      });
  if (first == place_errors.end() || needed_tasks.contains(first->first)) {
    return absl::OkStatus();
  }
  return first->second;
}

absl::StatusOr<std::vector<Part>> MasterSession::State::Cut(
    const StepSignature& signature, std::shared_ptr<const SessionTasks>* tasks,
    std::set<std::string>* needed) {
  std::unique_ptr<Graph> step;
  std::shared_ptr<const SessionTasks>& now = *tasks;
  {
    MutexLock lock(graph_mu);
    SLUICE_RETURN_IF_ERROR(PlaceNewNodes());
    now = placed_for;
    if (options.eager_placement) SLUICE_RETURN_IF_ERROR(FirstPlaceError());
    SLUICE_ASSIGN_OR_RETURN(step,
                            BuildStepGraph(graph, signature, client_device));
    absl::Status missing;
    for (int id = 0; id < step->num_nodes(); ++id) {
      const Node& node = *step->node(id);
      if (!node.assigned_device().empty()) continue;
      const Node* original = graph.FindNode(node.name());
      auto it = original == nullptr ? place_errors.end()
                                    : place_errors.find(original->id());
      if (it == place_errors.end()) {
        return Internal("Node ", node.name(), " was not placed");
      }
      missing.Update(it->second);
      const auto task = needed_tasks.find(it->first);
      if (task == needed_tasks.end()) return it->second;
      needed->insert(task->second);
    }
    SLUICE_RETURN_IF_ERROR(missing);
  }
  SimplifyOptions simplify;
  simplify.fold_constants = options.fold_constants;
  simplify.merge_common = options.merge_common;
  simplify.drop_unused = options.fold_constants && options.merge_common;
  simplify.targets = signature.targets;
  step = Simplify(std::move(step), simplify);
  SLUICE_RETURN_IF_ERROR(AddControlLoops(*step));
  if (options.bfloat16_transfers)
    SLUICE_RETURN_IF_ERROR(NarrowTransfers(*step));
  SLUICE_RETURN_IF_ERROR(SpreadConstants(*step));
  PartitionOptions partition;
  partition.part_of = [](std::string_view device) {
    return std::string(TaskOf(device));
  };
  partition.incarnation =
      [&now](std::string_view name) -> absl::StatusOr<uint64_t> {
    for (const DeviceInfo& device : now->devices) {
      if (device.text == name) return device.incarnation;
    }
    return NotFound("Device ", name, " is not found.");
  };
  partition.suffix = "_S";
  // Feeds of a partial run come when they come, so nothing waits for another.
  partition.group_transfers =
      !signature.partial &&
      std::ranges::all_of(now->present, [](const ConnectedTask& task) {
        return task.worker->TakesGroups();
      });
  return Partition(*step, partition);
}

namespace {

// Each time a task was restarted meanwhile.
constexpr int kTriesToPlan = 8;

// Whether a part has nodes on several devices of its task.
bool SpansDevices(std::span<const Part> parts) {
  for (const Part& part : parts) {
    for (int id = 1; id < part.graph->num_nodes(); ++id) {
      if (part.graph->node(id)->assigned_device() !=
          part.graph->node(0)->assigned_device()) {
        return true;
      }
    }
  }
  return false;
}

// The parts of a plan on their way to their workers; the last answer reports.
struct Registering {
  std::shared_ptr<MasterSession> session;  // The plan's cache is in there.
  std::shared_ptr<StepPlan> plan;
  absl::AnyInvocable<void(absl::Status)> done;
  Mutex mu;
  size_t left SLUICE_GUARDED_BY(mu) = 0;
  absl::Status status SLUICE_GUARDED_BY(mu);

  void Answered(size_t i,
                absl::StatusOr<std::shared_ptr<RegisteredGraph>> graph) {
    absl::Status result;
    {
      MutexLock lock(mu);
      if (graph.ok()) {
        plan->parts[i].graph = *std::move(graph);
      } else if (status.ok()) {
        status = graph.status();
      }
      if (--left > 0) return;
      result = status;
    }
    done(std::move(result));
  }
};

}  // namespace

void MasterSession::MakePlan(const StepSignature& signature, int tries,
                             absl::AnyInvocable<void(PlanOr)> done) {
  // To begin again on another thread: this may be one that polls the network.
  const auto again = [self = shared_from_this(), signature](int tries,
                                                            auto done) {
    RunBlocking([self, signature, tries, done = std::move(done)]() mutable {
      self->MakePlan(signature, tries, std::move(done));
    });
  };
  std::shared_ptr<const SessionTasks> tasks;
  std::set<std::string> needed;
  absl::StatusOr<std::vector<Part>> parts;
  try {
    parts = state_->Cut(signature, &tasks, &needed);
  } catch (const std::bad_alloc&) {
    parts = ResourceExhausted("Out of memory while planning a step");
  }
  if (!needed.empty()) {
    Attach(needed,
           [again, tries, done = std::move(done)](absl::Status status) mutable {
             if (status.ok()) {
               again(tries, std::move(done));
             } else {
               done(std::move(status));
             }
           });
    return;
  }
  if (!parts.ok()) {
    done(parts.status());
    return;
  }
  auto plan = std::make_shared<StepPlan>();
  plan->num_feeds = signature.feeds.size();
  plan->fetches = signature.fetches;
  plan->partial = signature.partial;
  plan->has_transfers = parts->size() > 1 || SpansDevices(*parts);
  for (Part& part : *parts) {
    const ConnectedTask* task = tasks->Find(part.name);
    if (task == nullptr) {
      done(NotFound("worker ", part.name));
      return;
    }
    plan->parts.push_back(
        {part.name, task->worker, task->devices[0].incarnation, nullptr, false,
         std::shared_ptr<const Graph>(std::move(part.graph))});
  }
  if (plan->parts.empty()) {
    done(PlanCache::PlanPtr(std::move(plan)));
    return;
  }
  auto registering = std::make_shared<Registering>();
  registering->session = shared_from_this();
  registering->plan = plan;
  registering->done = [self = shared_from_this(), plan, again, tries,
                       done = std::move(done)](absl::Status status) mutable {
    if (status.ok()) {
      self->state_->NoteState(*plan);
      done(PlanCache::PlanPtr(std::move(plan)));
    } else if (!MeansRestart(status) || tries <= 0) {
      done(std::move(status));
    } else {
      self->Renew(plan, [again, tries, status,
                         done = std::move(done)](bool changed) mutable {
        if (changed) {
          again(tries - 1, std::move(done));
        } else {
          done(std::move(status));
        }
      });
    }
  };
  {
    MutexLock lock(registering->mu);
    registering->left = plan->parts.size();
  }
  for (size_t i = 0; i < plan->parts.size(); ++i) {
    StepPlan::TaskPart& part = plan->parts[i];
    RegisterGraphRequest request;
    request.session_handle = state_->handle;
    request.graph = part.definition;
    request.deadline = state_->Deadline();
    // The client's tensors enter and leave on the master's own task.
    if (part.task == state_->env.own_task && !signature.partial) {
      request.feeds = signature.feeds;
      request.fetches = signature.fetches;
      part.has_client_edges = true;
    }
    part.worker->RegisterGraph(
        std::move(request),
        [registering,
         i](absl::StatusOr<std::shared_ptr<RegisteredGraph>> graph) {
          if (!graph.ok()) {
            graph = registering->session->state_->AtTask(
                graph.status(), registering->plan->parts[i].task);
          }
          registering->Answered(i, std::move(graph));
        });
  }
}

void MasterSession::FindOrMakePlan(const StepSignature& signature,
                                   absl::AnyInvocable<void(PlanOr)> done) {
  absl::Status gone;
  {
    MutexLock lock(state_->mu);
    if (state_->closed) gone = state_->Gone();
  }
  if (!gone.ok()) {
    done(std::move(gone));
    return;
  }
  state_->plans.FindOrBuild(
      signature,
      [&](PlanCache::Done built) {
        MakePlan(signature, kTriesToPlan, std::move(built));
      },
      [self = shared_from_this(), done = std::move(done)](PlanOr plan) mutable {
        if (!plan.ok()) {
          // Workers forget a session that is closed while a plan is made.
          MutexLock lock(self->state_->mu);
          if (self->state_->closed) plan = self->state_->closed_cause;
        }
        done(std::move(plan));
      });
}

MasterSession::PlanOr MasterSession::Plan(const StepSignature& signature) {
  Notification made;
  PlanOr result;
  PlanAsync(signature, [&](PlanOr plan) {
    result = std::move(plan);
    made.Notify();
  });
  made.Wait();
  return result;
}

std::shared_ptr<const StepPlan> MasterSession::FindPlan(
    const StepSignature& signature) {
  std::shared_ptr<const StepPlan> plan = state_->plans.Find(signature);
  return plan != nullptr && IsDoubtful(*plan) ? nullptr : plan;
}

absl::StatusOr<int64_t> MasterSession::MakeCallable(
    const StepSignature& signature, const RunOptions& options) {
  const auto callable = std::make_shared<Callable>();
  callable->signature = signature;
  callable->options = options;
  SLUICE_ASSIGN_OR_RETURN(callable->plan, Plan(signature));
  MutexLock lock(state_->mu);
  SLUICE_RETURN_IF_ERROR(state_->CheckRoom());
  const int64_t handle = state_->next_callable++;
  state_->callables.emplace(handle, callable);
  return handle;
}

absl::StatusOr<std::shared_ptr<const MasterSession::Callable>>
MasterSession::FindCallable(int64_t handle) {
  MutexLock lock(state_->mu);
  auto it = state_->callables.find(handle);
  if (it != state_->callables.end()) return it->second;
  if (handle < 0 || handle >= state_->next_callable) {
    return InvalidArgument("No such callable handle: ", handle);
  }
  return InvalidArgument(
      "Attempted to run callable after handle was released: ", handle);
}

void MasterSession::RenewCallable(int64_t handle,
                                  std::shared_ptr<const StepPlan> plan) {
  std::shared_ptr<const Callable> old;  // Its end may be a call to a task.
  MutexLock lock(state_->mu);
  const auto it = state_->callables.find(handle);
  if (it == state_->callables.end()) return;
  auto renewed = std::make_shared<Callable>(*it->second);
  renewed->plan = std::move(plan);
  old = std::exchange(it->second, std::move(renewed));
}

absl::Status MasterSession::ReleaseCallable(int64_t handle) {
  SLUICE_RETURN_IF_ERROR(FindCallable(handle).status());
  // Its end may be a call to a task, so it comes after the lock.
  std::shared_ptr<const Callable> over;
  MutexLock lock(state_->mu);
  const auto it = state_->callables.find(handle);
  if (it == state_->callables.end()) return absl::OkStatus();
  over = std::move(it->second);
  state_->callables.erase(it);
  return absl::OkStatus();
}

}  // namespace sluice
