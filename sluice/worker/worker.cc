#include "sluice/worker/worker.h"

#include <deque>
#include <map>

#include "absl/container/flat_hash_set.h"
#include "sluice/base/limits.h"
#include "sluice/base/logging.h"
#include "sluice/base/random.h"
#include "sluice/base/simulation.h"
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

bool MeansRestart(const absl::Status& status) {
  return absl::IsAborted(status) &&
         ToStd(status.message()).find("restarted") != std::string_view::npos;
}

absl::Status NotInCluster(std::string_view what, std::string_view task,
                          std::string_view own) {
  return InvalidArgument(what, " comes from ", task,
                         ", which is not in the cluster of ", own,
                         ". Start both with a cluster in which they know each "
                         "other.");
}

namespace {

// Late requests for steps that are over must not wait for ever; this many of
// them are remembered.
constexpr size_t kFinishedStepsKept = 1 << 14;
// The same for sessions that were closed before the call that opens them came.
constexpr size_t kClosedSessionsKept = 1 << 10;

// The last `capacity` values.
template <typename T>
class Memory {
 public:
  explicit Memory(size_t capacity) : capacity_(capacity) {}
  bool contains(const T& value) const { return values_.contains(value); }
  void Add(const T& value) {
    if (!values_.insert(value).second) return;
    order_.push_back(value);
    if (order_.size() <= capacity_) return;
    values_.erase(order_.front());
    order_.pop_front();
  }

 private:
  const size_t capacity_;
  absl::flat_hash_set<T> values_;
  std::deque<T> order_;
};

// The meeting place of one step's tensors on this task.
struct StepTensors {
  std::shared_ptr<LocalRendezvous> local = std::make_shared<LocalRendezvous>();
  // `local`, or it and the way to peers. Null until this task's part of the
  // step begins, which says which cluster the peers are in.
  std::shared_ptr<Rendezvous> all;
  // Whose step it is; null while only peers have asked for its tensors.
  const WorkerSession* session = nullptr;

  Rendezvous& known() const { return all != nullptr ? *all : *local; }
};

}  // namespace

struct Worker::State {
  DeviceName task;
  std::vector<std::shared_ptr<Device>> devices;
  RendezvousFactory rendezvous_factory;
  // Registered graphs hold a reference each.
  const std::shared_ptr<const void> graph_token = std::make_shared<int>();
  ClusterRendezvousFactory cluster_rendezvous_factory;
  std::function<void(int64_t)> step_over;
  std::vector<std::string> cluster_tasks;
  int64_t max_graphs = Limits().graphs;
  int64_t max_graph_nodes = Limits().graph_nodes;

  mutable Mutex mu;
  absl::flat_hash_map<std::string, std::shared_ptr<WorkerSession>> sessions
      SLUICE_GUARDED_BY(mu);
  absl::flat_hash_map<int64_t, std::shared_ptr<StepTensors>> steps
      SLUICE_GUARDED_BY(mu);
  Memory<int64_t> finished SLUICE_GUARDED_BY(mu){kFinishedStepsKept};
  Memory<std::string> closed_early SLUICE_GUARDED_BY(mu){kClosedSessionsKept};

  absl::StatusOr<std::shared_ptr<WorkerSession>> MakeSession(
      const CreateSessionRequest& request) const;
  absl::Status Add(const std::string& handle,
                   std::shared_ptr<WorkerSession> session,
                   const CreateSessionRequest& request) SLUICE_EXCLUDES(mu);

  // Whether this tensor can come from here.
  absl::Status CheckTransfer(const std::string& key) const;

  // An error if the step is over: a late request must not begin it again.
  absl::StatusOr<std::shared_ptr<StepTensors>> FindOrMakeStep(int64_t id)
      SLUICE_REQUIRES(mu) {
    if (finished.contains(id)) {
      return Derived(Aborted("Step ", id, " is over"));
    }
    std::shared_ptr<StepTensors>& step = steps[id];
    if (step == nullptr) step = std::make_shared<StepTensors>();
    return step;
  }

  // For a peer that asks for these tensors.
  absl::StatusOr<std::shared_ptr<StepTensors>> StepOf(
      int64_t id, std::span<const std::string> keys) SLUICE_EXCLUDES(mu) {
    for (const std::string& key : keys) {
      SLUICE_RETURN_IF_ERROR(CheckTransfer(key));
    }
    MutexLock lock(mu);
    return FindOrMakeStep(id);
  }

  // Gives the step the way to the peers of the session, which may be null.
  void Connect(int64_t id, StepTensors* step, const WorkerSession* session)
      SLUICE_REQUIRES(mu) {
    if (step->all != nullptr) return;
    const RendezvousFactory& factory =
        session != nullptr && session->rendezvous_factory()
            ? session->rendezvous_factory()
            : rendezvous_factory;
    step->all = factory ? factory(id, step->local) : step->local;
  }

  // An error if the step is over: its RunGraph came late.
  absl::StatusOr<std::shared_ptr<StepTensors>> BeginStep(
      int64_t id, const WorkerSession& session) SLUICE_EXCLUDES(mu) {
    MutexLock lock(mu);
    SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<StepTensors> step,
                            FindOrMakeStep(id));
    step->session = &session;
    Connect(id, step.get(), &session);
    return step;
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
  for (auto& [id, step] : steps) step->known().Abort(Aborted("Shutdown"));
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

void Worker::set_cluster_rendezvous_factory(ClusterRendezvousFactory factory) {
  state_->cluster_rendezvous_factory = std::move(factory);
}
void Worker::set_step_over(std::function<void(int64_t)> callback) {
  state_->step_over = std::move(callback);
}
void Worker::set_cluster_tasks(std::vector<std::string> tasks) {
  state_->cluster_tasks = std::move(tasks);
}
void Worker::set_max_graphs(int64_t count) { state_->max_graphs = count; }
void Worker::set_max_graph_nodes(int64_t count) {
  state_->max_graph_nodes = count;
}

void Worker::GetStatus(bool, Cancellation*, StatusDone done) {
  done(devices());
}

absl::StatusOr<std::shared_ptr<WorkerSession>> Worker::State::MakeSession(
    const CreateSessionRequest& request) const {
  DeviceName name = task;
  RendezvousFactory factory;
  if (!request.task.empty()) {
    SLUICE_ASSIGN_OR_RETURN(name, DeviceName::Parse(request.task));
    if (!name.job || !name.task) {
      return InvalidArgument("'", request.task, "' does not name a task");
    }
    if (cluster_rendezvous_factory) {
      SLUICE_ASSIGN_OR_RETURN(
          factory, cluster_rendezvous_factory(request.cluster, request.task));
    }
  }
  std::vector<std::shared_ptr<Device>> session_devices;
  for (std::shared_ptr<Device> device : devices) {
    if (!request.task.empty()) device = device->Renamed(name);
    if (request.isolated) device = device->WithOwnResources();
    session_devices.push_back(std::move(device));
  }
  return std::make_shared<WorkerSession>(request, std::move(session_devices),
                                         std::move(factory));
}

namespace {

bool SameSession(const CreateSessionRequest& a, const CreateSessionRequest& b) {
  return a.handle == b.handle && a.isolated == b.isolated && a.task == b.task &&
         a.cluster == b.cluster;
}

}  // namespace

void Worker::CreateSession(CreateSessionRequest request, Done done) {
  absl::StatusOr<std::shared_ptr<WorkerSession>> session =
      state_->MakeSession(request);
  if (!session.ok()) {
    done(session.status());
    return;
  }
  done(state_->Add(request.handle, *std::move(session), request));
}

absl::Status Worker::State::Add(const std::string& handle,
                                std::shared_ptr<WorkerSession> session,
                                const CreateSessionRequest& request) {
  MutexLock lock(mu);
  if (closed_early.contains(handle)) {
    return Aborted("Worker session ", handle, " was closed before it was open");
  }
  const auto open = static_cast<int64_t>(sessions.size());
  const auto it = sessions.find(handle);
  if (it == sessions.end() && open >= request.max_sessions) {
    return OverLimit(StrCat("One more than ", open, " open sessions"),
                     "sessions", request.max_sessions);
  }
  if (it == sessions.end()) {
    sessions.emplace(handle, std::move(session));
  } else if (!SameSession(it->second->request(), request)) {
    return AlreadyExists("Worker session ", handle,
                         " exists already, and is another");
  }
  // A master that lost the answer may ask again.
  return absl::OkStatus();
}

void Worker::DeleteSession(const std::string& handle, Done done) {
  std::shared_ptr<WorkerSession> gone;
  // Steps that nobody has cleaned up, in a fixed order.
  std::map<int64_t, std::shared_ptr<StepTensors>> steps;
  {
    MutexLock lock(state_->mu);
    auto it = state_->sessions.find(handle);
    if (it == state_->sessions.end()) {
      state_->closed_early.Add(handle);
    } else {
      gone = std::move(it->second);
      state_->sessions.erase(it);
      for (const auto& [id, step] : state_->steps) {
        if (step->session == gone.get()) steps.emplace(id, step);
      }
      for (const auto& [id, step] : steps) {
        state_->steps.erase(id);
        state_->finished.Add(id);
      }
    }
  }
  for (const auto& [id, step] : steps) {
    step->known().Abort(Aborted("Session ", handle, " is closed"));
    if (state_->step_over) state_->step_over(id);
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
      session = std::make_shared<WorkerSession>(CreateSessionRequest{},
                                                state_->devices);
      state_->sessions.emplace("", session);
    }
  }
  if (session == nullptr) {
    done(NoSession(request.session_handle));
    return;
  }
  absl::StatusOr<std::shared_ptr<SessionGraph>> graph;
  try {
    graph =
        SessionGraph::Create(request, std::move(session),
                             state_->max_graph_nodes, state_->cluster_tasks);
  } catch (const std::bad_alloc&) {
    graph = ResourceExhausted("Out of memory while registering a graph");
  }
  if (!graph.ok()) {
    done(graph.status());
    return;
  }
  (*graph)->set_token(state_->graph_token);
  if (const int count = num_graphs(); count > state_->max_graphs) {
    done(OverLimit(StrCat(count, " registered graphs"), "graphs",
                   state_->max_graphs));
    return;
  }
  done(std::shared_ptr<RegisteredGraph>(*std::move(graph)));
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
        device->resources().Cleanup(step.container());
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
  if (request.device_graphs != nullptr) {
    for (const SessionGraph::DevicePart& part : graph->parts()) {
      request.device_graphs->push_back(part.graph);
    }
  }
  if (graph->parts().empty()) {
    done(absl::OkStatus());
    return;
  }
  std::shared_ptr<StepTensors> tensors;
  if (graph->has_transfers()) {
    auto begun = state_->BeginStep(request.step_id, graph->session());
    if (!begun.ok()) {
      done(begun.status());
      return;
    }
    tensors = *std::move(begun);
  }
  auto* run = new RunningGraph;
  run->graph = graph;
  run->done = std::move(done);
  run->step.id = request.step_id;
  run->step.cancellation = request.cancellation != nullptr
                               ? request.cancellation
                               : &run->own_cancellation;
  run->step.stats = request.stats;
  run->step.clock = &TheClock();
  if (tensors != nullptr) {
    run->tensors = std::move(tensors);
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
    args.more_to_start = i + 1 < num_parts;
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
    state_->finished.Add(step_id);
  }
  if (step != nullptr) step->known().Abort(Aborted("Cleanup ", step_id));
  if (state_->step_over) state_->step_over(step_id);
  done(absl::OkStatus());
}

bool Worker::IsOver(int64_t step_id) const {
  MutexLock lock(state_->mu);
  return state_->finished.contains(step_id);
}

std::shared_ptr<Rendezvous> Worker::StepRendezvous(
    int64_t step_id, const std::string& session_handle) {
  MutexLock lock(state_->mu);
  const auto step = state_->FindOrMakeStep(step_id);
  // One that is over: nothing comes any more.
  if (!step.ok()) {
    auto over = std::make_shared<LocalRendezvous>();
    over->Abort(step.status());
    return over;
  }
  auto it = state_->sessions.find(session_handle);
  state_->Connect(step_id, step->get(),
                  it == state_->sessions.end() ? nullptr : it->second.get());
  return (*step)->all;
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

absl::Status Worker::State::CheckTransfer(const std::string& key) const {
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
  return absl::OkStatus();
}

void Worker::RecvTensor(int64_t step_id, const std::string& key,
                        Rendezvous::RecvDone done) {
  // Keeps the table alive until the value is there.
  const auto step = state_->StepOf(step_id, {&key, 1});
  if (!step.ok()) {
    done(step.status());
    return;
  }
  (*step)->local->RecvAsync(key, std::move(done));
}

void Worker::RecvTensors(int64_t step_id, std::span<const std::string> keys,
                         Rendezvous::GroupDone done) {
  const auto step = state_->StepOf(step_id, keys);
  if (!step.ok()) {
    done(step.status());
    return;
  }
  (*step)->local->RecvGroupAsync(keys, std::move(done));
}

void Worker::AbortStep(int64_t step_id, const absl::Status& status) {
  std::shared_ptr<StepTensors> step;
  {
    MutexLock lock(state_->mu);
    auto it = state_->steps.find(step_id);
    if (it != state_->steps.end()) {
      step = it->second;
      // Whoever would clean up a step that never ran here may not know of it.
      if (step->session == nullptr) state_->steps.erase(it);
    }
  }
  if (step != nullptr) step->known().Abort(status);
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
int64_t Worker::KernelsRun() { return sluice::KernelsRun(); }

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

int Worker::num_graphs() const {
  return static_cast<int>(state_->graph_token.use_count()) - 1;
}

int Worker::num_steps() const {
  MutexLock lock(state_->mu);
  return static_cast<int>(state_->steps.size());
}

std::vector<Worker::Transfers> Worker::ListTransfers() const {
  std::vector<std::pair<int64_t, std::shared_ptr<StepTensors>>> steps;
  {
    MutexLock lock(state_->mu);
    steps.assign(state_->steps.begin(), state_->steps.end());
  }
  std::vector<Transfers> list;
  for (const auto& [id, step] : steps) {
    list.push_back({id, step->local->Waiting()});
  }
  return list;
}

}  // namespace sluice
