#include "sluice/worker/worker.h"

#include <deque>

#include "absl/container/flat_hash_set.h"
#include "sluice/base/logging.h"
#include "sluice/base/random.h"
#include "sluice/base/status.h"
#include "sluice/executor/executor.h"
#include "sluice/worker/session_graphs.h"

namespace sluice {

bool IsDerived(const absl::Status& status) {
  return ToStd(status.message()).starts_with(kDerivedMark);
}

absl::Status Derived(const absl::Status& status) {
  if (status.ok() || IsDerived(status)) return status;
  return WithMessage(status, StrCat(kDerivedMark, status.message()));
}

namespace {

// Late requests for steps that are over must not wait for ever; this many of
// them are remembered.
constexpr size_t kFinishedStepsKept = 1 << 14;

// The meeting place of one step's tensors on this task.
struct StepTensors {
  std::shared_ptr<LocalRendezvous> local = std::make_shared<LocalRendezvous>();
  std::shared_ptr<Rendezvous> all;  // `local`, or it and the way to peers.
};

}  // namespace

struct Worker::State {
  DeviceName task;
  std::vector<std::shared_ptr<Device>> devices;
  RendezvousFactory rendezvous_factory;

  mutable Mutex mu;
  absl::flat_hash_map<std::string, std::shared_ptr<WorkerSession>> sessions
      SLUICE_GUARDED_BY(mu);
  absl::flat_hash_map<int64_t, std::shared_ptr<StepTensors>> steps
      SLUICE_GUARDED_BY(mu);
  absl::flat_hash_set<int64_t> finished SLUICE_GUARDED_BY(mu);
  std::deque<int64_t> finished_order SLUICE_GUARDED_BY(mu);

  // Whether a peer may ask for this tensor now.
  absl::Status CheckTransfer(int64_t step_id, const std::string& key) const
      SLUICE_EXCLUDES(mu);

  std::shared_ptr<StepTensors> FindOrMakeStep(int64_t id) SLUICE_EXCLUDES(mu) {
    MutexLock lock(mu);
    auto [it, added] = steps.try_emplace(id);
    if (added) {
      it->second = std::make_shared<StepTensors>();
      it->second->all = rendezvous_factory
                            ? rendezvous_factory(id, it->second->local)
                            : it->second->local;
    }
    return it->second;
  }
};

Worker::Worker(std::unique_ptr<State> state) : state_(std::move(state)) {}

Worker::~Worker() { Shutdown(); }

void Worker::Shutdown() {
  absl::flat_hash_map<int64_t, std::shared_ptr<StepTensors>> steps;
  {
    MutexLock lock(state_->mu);
    steps.swap(state_->steps);
  }
  for (auto& [id, step] : steps) step->all->Abort(Aborted("Shutdown"));
}

std::shared_ptr<Worker> Worker::Create(const DeviceName& task, int num_cpus,
                                       FileSystem& files) {
  auto state = std::make_unique<State>();
  state->task = task;
  for (int i = 0; i < num_cpus; ++i) {
    DeviceName name = task;
    name.type = "CPU";
    name.id = i;
    state->devices.push_back(std::make_shared<Device>(name, RandomId(), files));
  }
  return std::shared_ptr<Worker>(new Worker(std::move(state)));
}

const DeviceName& Worker::task() const { return state_->task; }

std::vector<DeviceInfo> Worker::devices() const {
  std::vector<DeviceInfo> infos;
  for (const auto& device : state_->devices) infos.push_back(device->info());
  return infos;
}

Device* Worker::FindDevice(std::string_view full_name) const {
  for (const auto& device : state_->devices) {
    if (device->name() == full_name) return device.get();
  }
  return nullptr;
}

void Worker::set_rendezvous_factory(RendezvousFactory factory) {
  state_->rendezvous_factory = std::move(factory);
}

void Worker::GetStatus(bool, Cancellation*, StatusDone done) {
  done(devices());
}

void Worker::CreateSession(const std::string& handle, bool isolated,
                           Done done) {
  std::vector<std::shared_ptr<Device>> devices;
  for (const auto& device : state_->devices) {
    devices.push_back(isolated ? device->WithOwnResources() : device);
  }
  bool added;
  {
    MutexLock lock(state_->mu);
    added = state_->sessions
                .try_emplace(handle, std::make_shared<WorkerSession>(
                                         handle, std::move(devices)))
                .second;
  }
  done(added ? absl::OkStatus()
             : AlreadyExists("Worker session ", handle, " exists already"));
}

void Worker::DeleteSession(const std::string& handle, Done done) {
  std::shared_ptr<WorkerSession> gone;
  {
    MutexLock lock(state_->mu);
    auto it = state_->sessions.find(handle);
    if (it != state_->sessions.end()) {
      gone = std::move(it->second);
      state_->sessions.erase(it);
    }
  }
  gone = nullptr;
  done(absl::OkStatus());
}

void Worker::RegisterGraph(RegisterGraphRequest request, RegisterDone done) {
  std::shared_ptr<WorkerSession> session;
  {
    MutexLock lock(state_->mu);
    const std::string handle =
        request.has_session ? request.session_handle : "";
    auto it = state_->sessions.find(handle);
    if (it != state_->sessions.end()) {
      session = it->second;
    } else if (!request.has_session) {
      session = std::make_shared<WorkerSession>("", state_->devices);
      state_->sessions.emplace("", session);
    }
  }
  if (session == nullptr) {
    done(NoSession(request.session_handle));
    return;
  }
  auto graph = SessionGraph::Create(request, std::move(session));
  if (!graph.ok()) {
    done(graph.status());
  } else {
    done(std::shared_ptr<RegisteredGraph>(*std::move(graph)));
  }
}

namespace {

// One RunGraph under way.
struct RunningGraph {
  Step step;
  Cancellation own_cancellation;  // When the caller brings none.
  std::shared_ptr<StepTensors> tensors;
  Cancellation::Token abort_token = Cancellation::kNone;
  SessionGraph* graph = nullptr;
  std::atomic<int> parts_left{0};
  Mutex mu;
  absl::Status status SLUICE_GUARDED_BY(mu);
  WorkerInterface::Done done;

  // Keeps the first cause; a consequence only while there is nothing better.
  void Report(const absl::Status& s) {
    MutexLock lock(mu);
    if (status.ok() || (IsDerived(status) && !IsDerived(s))) status = s;
  }

  void OnError(const absl::Status& s) {
    Report(s);
    if (tensors != nullptr) tensors->all->Abort(Derived(s));
    step.cancellation->Cancel(
        Derived(Cancelled("Step was cancelled: ", s.message())));
  }

  void PartDone(const absl::Status& s) {
    if (!s.ok()) Report(s);
    if (parts_left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    std::unique_ptr<RunningGraph> self(this);
    if (tensors != nullptr) step.cancellation->Deregister(abort_token);
    if (step.container_used.load(std::memory_order_relaxed)) {
      for (const auto& device : graph->session().devices()) {
        device->resources().Cleanup(step.container);
      }
    }
    absl::Status result;
    {
      MutexLock lock(mu);
      result = status;
    }
    WorkerInterface::Done callback = std::move(done);
    self = nullptr;
    callback(std::move(result));
  }
};

}  // namespace

void Worker::RunGraph(const RunGraphRequest& request, Done done) {
  auto* graph = static_cast<SessionGraph*>(request.graph);
  if (request.feeds.size() != graph->feeds().size() ||
      request.fetches.size() != graph->fetches().size()) {
    done(InvalidArgument("RunGraph brings ", request.feeds.size(),
                         " feeds and asks for ", request.fetches.size(),
                         " fetches; the graph has ", graph->feeds().size(),
                         " and ", graph->fetches().size()));
    return;
  }
  if (graph->parts().empty()) {
    done(absl::OkStatus());
    return;
  }
  auto* run = new RunningGraph;
  run->graph = graph;
  run->done = std::move(done);
  run->step.id = request.step_id;
  run->step.cancellation = request.cancellation != nullptr
                               ? request.cancellation
                               : &run->own_cancellation;
  run->step.stats = request.stats;
  run->step.clock = &RealClock();
  if (graph->has_transfers()) {
    run->tensors = state_->FindOrMakeStep(request.step_id);
    run->step.rendezvous = run->tensors->all.get();
    // Receives wait in the rendezvous, so a cancelled step ends it.
    run->abort_token = run->step.cancellation->Register(
        [tensors = run->tensors, cancellation = run->step.cancellation] {
          tensors->all->Abort(Derived(cancellation->status()));
        });
    if (run->abort_token == Cancellation::kNone) {
      run->tensors->all->Abort(Derived(run->step.cancellation->status()));
    }
  }
  const std::span<const SessionGraph::DevicePart> parts = graph->parts();
  const int num_parts = static_cast<int>(parts.size());
  run->parts_left.store(num_parts, std::memory_order_relaxed);
  for (int i = 0; i < num_parts; ++i) {
    Executor::Args args;
    args.step = &run->step;
    args.feeds = request.feeds;
    args.fetches = request.fetches;
    args.on_error = [run](const absl::Status& s) { run->OnError(s); };
    // The last part may end the run, and with it `parts`.
    parts[i].executor->Run(std::move(args),
                           [run](absl::Status s) { run->PartDone(s); });
  }
}

void Worker::CleanupGraph(int64_t step_id, Done done) {
  std::shared_ptr<StepTensors> step;
  {
    MutexLock lock(state_->mu);
    auto it = state_->steps.find(step_id);
    if (it != state_->steps.end()) {
      step = std::move(it->second);
      state_->steps.erase(it);
    }
    if (state_->finished.insert(step_id).second) {
      state_->finished_order.push_back(step_id);
      if (state_->finished_order.size() > kFinishedStepsKept) {
        state_->finished.erase(state_->finished_order.front());
        state_->finished_order.pop_front();
      }
    }
  }
  if (step != nullptr) step->all->Abort(Aborted("Cleanup ", step_id));
  done(absl::OkStatus());
}

std::shared_ptr<Rendezvous> Worker::StepRendezvous(int64_t step_id) {
  return state_->FindOrMakeStep(step_id)->all;
}

void Worker::CleanupAll(std::vector<std::string> containers, Done done) {
  if (containers.empty()) containers.emplace_back();
  for (const auto& device : state_->devices) {
    for (const std::string& container : containers) {
      device->resources().Cleanup(container);
    }
  }
  done(absl::OkStatus());
}

absl::Status Worker::State::CheckTransfer(int64_t step_id,
                                          const std::string& key) const {
  SLUICE_ASSIGN_OR_RETURN(const RendezvousKey parsed,
                          RendezvousKey::Parse(key));
  const Device* device = nullptr;
  for (const auto& candidate : devices) {
    const DeviceName& name = candidate->parsed_name();
    if (candidate->name() == parsed.src_text) {
      device = candidate.get();
      break;
    }
    // Under a cluster given by the session the task has another name.
    if (name.type == parsed.src.type && name.id == parsed.src.id) {
      device = candidate.get();
    }
  }
  if (device == nullptr) {
    return InvalidArgument("Invalid rendezvous key (src): ", key, " @ ",
                           task.ToString());
  }
  if (device->incarnation() != parsed.src_incarnation) {
    return Aborted("RecvTensor expects a different device incarnation: ",
                   parsed.src_incarnation, " vs. ", device->incarnation(),
                   ". Your worker job (\"", task.ToString(),
                   "\") was probably restarted. Check your worker job for the "
                   "reason why it was restarted.");
  }
  MutexLock lock(mu);
  if (finished.contains(step_id)) return Aborted("Step ", step_id, " is over");
  return absl::OkStatus();
}

void Worker::RecvTensor(int64_t step_id, const std::string& key,
                        Rendezvous::RecvDone done) {
  if (absl::Status status = state_->CheckTransfer(step_id, key); !status.ok()) {
    done(status);
    return;
  }
  // Keeps the table alive until the value is there.
  std::shared_ptr<StepTensors> step = state_->FindOrMakeStep(step_id);
  step->local->RecvAsync(key, std::move(done));
}

void Worker::RecvTensors(int64_t step_id, std::span<const std::string> keys,
                         Rendezvous::GroupDone done) {
  for (const std::string& key : keys) {
    if (absl::Status status = state_->CheckTransfer(step_id, key);
        !status.ok()) {
      done(status);
      return;
    }
  }
  std::shared_ptr<StepTensors> step = state_->FindOrMakeStep(step_id);
  step->local->RecvGroupAsync(keys, std::move(done));
}

void Worker::AbortStep(int64_t step_id, const absl::Status& status) {
  std::shared_ptr<StepTensors> step;
  {
    MutexLock lock(state_->mu);
    auto it = state_->steps.find(step_id);
    if (it != state_->steps.end()) step = it->second;
  }
  if (step != nullptr) step->all->Abort(status);
}

void Worker::ListClientEdges(const Graph& graph,
                             std::vector<std::string>* feeds,
                             std::vector<std::string>* fetches) {
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = *graph.node(id);
    if (!node.attr<bool>("client_terminated")) continue;
    const std::string name = node.attr<std::string>("tensor_name");
    (node.num_inputs() == 0 ? feeds : fetches)->push_back(name);
  }
}

void Worker::MarkNetworkThread() { sluice::MarkNetworkThread(); }

bool Worker::HasSession(const std::string& handle) const {
  MutexLock lock(state_->mu);
  return state_->sessions.contains(handle);
}

absl::Status Worker::NoSession(const std::string& handle) const {
  return Aborted("Session handle is not found: ", handle,
                 ". Possibly this worker (\"", state_->task.ToString(),
                 "\") just restarted.");
}

int Worker::num_sessions() const {
  MutexLock lock(state_->mu);
  return static_cast<int>(state_->sessions.size());
}

int Worker::num_steps() const {
  MutexLock lock(state_->mu);
  return static_cast<int>(state_->steps.size());
}

}  // namespace sluice
