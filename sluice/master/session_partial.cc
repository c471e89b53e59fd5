// Partial runs of a MasterSession.
#include "sluice/master/session_state.h"

namespace sluice {

absl::StatusOr<std::string> MasterSession::SetUpPartialRun(
    StepSignature signature) {
  signature.partial = true;
  auto run = std::make_shared<OpenPartialRun>(signature);
  SLUICE_ASSIGN_OR_RETURN(run->plan, Plan(signature));
  run->step_id = state_->NewStepId();
  run->tensors = state_->Tasks()
                     ->Find(state_->env.own_task)
                     ->worker->StepRendezvous(run->step_id, state_->handle);
  absl::Status refused;
  {
    MutexLock lock(state_->mu);
    refused = state_->closed ? state_->Gone() : state_->CheckRoom();
    if (refused.ok()) {
      std::string name = StrCat(state_->next_partial_run++);
      state_->partial_runs[name] = std::move(run);
      return name;
    }
  }
  // Nobody else knows of it.
  CleanUpStep(*run->plan, run->step_id);
  return refused;
}

void MasterSession::RunPartially(const std::string& name,
                                 const PartialRunArgs& args, Done done) {
  std::shared_ptr<OpenPartialRun> run;
  {
    MutexLock lock(state_->mu);
    auto it = state_->partial_runs.find(name);
    if (it != state_->partial_runs.end()) run = it->second;
  }
  bool over = run == nullptr;
  bool last = false;
  bool start = false;
  absl::Status status;
  if (!over) {
    MutexLock graph_lock(state_->graph_mu);
    MutexLock lock(run->mu);
    over = run->no_more;
    if (!over) {
      status = run->progress.Advance(state_->graph, args);
      last = run->progress.complete();
      start = status.ok() && !run->started;
      if (start) run->started = true;
      run->no_more = last || !status.ok();
    }
  }
  if (over) {
    done(NoSuchPartialRun(/*local_session=*/!state_->env.name_tasks));
    return;
  }
  if (!status.ok()) {
    EndPartialCall(name, run, std::move(status), std::move(done));
    return;
  }
  if (start) {
    RunAs(run->step_id, run->plan, {},
          [run](absl::Status s) { run->End(std::move(s)); });
  }
  ExchangeTensors(run->tensors, state_->client_device, args,
                  [self = shared_from_this(), name, run, last,
                   done = std::move(done)](absl::Status exchanged) mutable {
                    if (exchanged.ok() && !last) {
                      done(absl::OkStatus());
                    } else {
                      self->EndPartialCall(name, run, std::move(exchanged),
                                           std::move(done));
                    }
                  });
}

// The partial run gets no more calls; `status` so far. It keeps its name until
// the step has ended, by which it can be cancelled.
void MasterSession::EndPartialCall(const std::string& name,
                                   const std::shared_ptr<OpenPartialRun>& run,
                                   absl::Status status, Done done) {
  {
    MutexLock lock(run->mu);
    run->no_more = true;
  }
  if (!status.ok() && !IsDerived(status)) CancelStep(run->step_id, status);
  run->WhenEnded([self = shared_from_this(), name, run, status,
                  done = std::move(done)](absl::Status result) mutable {
    {
      MutexLock lock(self->state_->mu);
      self->state_->partial_runs.erase(name);
    }
    self->CleanUpStep(*run->plan, run->step_id);
    // The step knows the cause of what went wrong.
    done(result.ok() ? std::move(status) : std::move(result));
  });
}

void MasterSession::CancelPartialRun(const std::string& name,
                                     const absl::Status& why) {
  int64_t id = 0;
  {
    MutexLock lock(state_->mu);
    auto it = state_->partial_runs.find(name);
    if (it == state_->partial_runs.end()) return;
    id = it->second->step_id;
  }
  CancelStep(id, why);
}

}  // namespace sluice
