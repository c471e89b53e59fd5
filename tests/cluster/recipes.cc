// The replication modes as programs: recipes.py in C++, with the same command
// line and the same output.
#include <thread>

#include "examples/cc/example.h"

using namespace sluice;

namespace {

struct Flags {
  std::string recipe, logs, locking, kind;
  std::vector<std::string> workers;
  TaskConfig task;
  int tokens, runs, pause, last_step, least;
  double timeout;
};

template <typename... Words>
void Say(const Words&... words) {
  const char* space = "";
  ((std::cout << std::exchange(space, " ") << words), ...);
  std::cout << std::endl;
}

std::string Line() {
  std::string line;
  std::getline(std::cin, line);
  return line;
}

std::string Target(const Flags& flags, int task) {
  return "grpc://" + flags.workers[task];
}

absl::StatusOr<std::shared_ptr<Server>> Serve(const Flags& flags) {
  return Server::Create(flags.task.cluster, "worker", flags.task.task);
}

bool IsChief(const Flags& flags) { return flags.task.task == 0; }

Variable Zero(const Scope& scope, std::string_view name = "w") {
  return Variable(scope.Named(name), 0.0f);
}

absl::StatusOr<float> Value(Session& session, const Variable& variable) {
  SLUICE_ASSIGN_OR_RETURN(const Tensor value, session.Eval(variable));
  return value.scalar<float>();
}

absl::Status InGraph(const Flags& flags) {
  Graph graph;
  const With ps(Scope(graph).Device("/job:ps/task:0"));
  const Variable w = Zero(ps);
  std::vector<Output> gradients;
  for (int i = 0; i < 2; ++i) {
    const With there(Scope(graph).Device(StrCat("/job:worker/task:", i)));
    // Stateful, or it would be folded into a constant.
    const Output slope =
        0 * ops::RandomUniform(there, std::vector<int32_t>{}, DType::kFloat) +
        static_cast<float>(i + 1);
    gradients.push_back(Gradients(there, {slope * w}, {w.value()})[0]);
  }
  const Output mean = ops::AddN(ps, gradients) / 2.0f;
  Node* train = GradientDescentOptimizer(1.0).ApplyGradients(ps, {{mean, w}});
  SessionConfig config;
  config.target = Target(flags, 0);
  SLUICE_ASSIGN_OR_RETURN(auto session, Session::Create(config, graph));
  SLUICE_RETURN_IF_ERROR(session->Run(GlobalVariablesInitializer(ps)));
  for (int i = 0; i < 9; ++i) SLUICE_RETURN_IF_ERROR(session->Run(train));
  RunOptions options;
  options.partition_graphs = true;
  RunMetadata metadata;
  SLUICE_RETURN_IF_ERROR(
      session->Run({}, {}, {train}, options, nullptr, &metadata));
  SLUICE_ASSIGN_OR_RETURN(const float value, Value(*session, w));
  Say("w", value);
  for (const auto& part : metadata.partition_graphs) {
    for (int i = 0; i < part->num_nodes(); ++i) {
      const Node& node = *part->node(i);
      if (node.type() != "_Send" && node.type() != "_HostSend") continue;
      Say("edge", node.attr<std::string>("send_device"),
          node.attr<std::string>("recv_device"));
    }
  }
  Line();
  const absl::Status lost = session->Run(train);
  if (absl::IsUnavailable(lost) || absl::IsAborted(lost)) Say("lost");
  return absl::OkStatus();
}

absl::Status Share(const Flags& flags) {
  Graph graph;
  const With ps(Scope(graph).Device("/job:ps/task:0"));
  const Variable w = Zero(ps);
  const Variable v = Zero(ps, "v");
  const Output assign = w.Assign(ps, 3.0f);
  SessionConfig config;
  config.target = Target(flags, flags.task.task);
  SLUICE_ASSIGN_OR_RETURN(auto session, Session::Create(config, graph));
  if (flags.task.task == 0) {
    SLUICE_RETURN_IF_ERROR(session->Run(assign.node));
    Say("assigned");
    return absl::OkStatus();
  }
  SLUICE_ASSIGN_OR_RETURN(const float value, Value(*session, w));
  Say("w", value);
  if (absl::IsFailedPrecondition(session->Eval(v).status())) {
    Say("v is not initialized");
  }
  return absl::OkStatus();
}

absl::Status WaitForChief(const Flags& flags) {
  SLUICE_ASSIGN_OR_RETURN(auto server, Serve(flags));
  Graph graph;
  const Variable w = Zero(Scope(graph).Device(OnReplica(flags.task)));
  TrainingSessionOptions options;
  options.master = server->target();
  options.config.device_filters = {
      "/job:ps", StrCat("/job:worker/task:", flags.task.task)};
  options.is_chief = IsChief(flags);
  SLUICE_ASSIGN_OR_RETURN(auto session,
                          MonitoredTrainingSession(graph, options));
  std::vector<Tensor> values;
  SLUICE_RETURN_IF_ERROR(session->Run({}, {w}, {}, &values));
  Say("set up", values[0].scalar<float>());
  Line();
  return session->Close();
}

absl::Status Asynchronous(const Flags& flags) {
  SLUICE_ASSIGN_OR_RETURN(auto server, Serve(flags));
  Graph graph;
  const With scope(Scope(graph).Device(OnReplica(flags.task)));
  const Variable w = Zero(scope);
  const Variable step = GetOrCreateGlobalStep(scope);
  Node* train = GradientDescentOptimizer(0.001, flags.locking == "yes")
                    .Minimize(scope, w, {.global_step = step});
  SLUICE_ASSIGN_OR_RETURN(
      auto session,
      MonitoredTrainingSession(
          graph, {.master = server->target(), .is_chief = IsChief(flags)}));
  for (int i = 0; i < 500; ++i) {
    SLUICE_RETURN_IF_ERROR(session->Run({}, {}, {train}, nullptr));
  }
  Say("done");
  Line();
  std::vector<Tensor> values;
  SLUICE_RETURN_IF_ERROR(session->Run({}, {w, step}, {}, &values));
  Say("w", values[0].scalar<float>(), "step", values[1].scalar<int64_t>());
  return session->Close();
}

// A worker of a synchronous training.
struct SyncWorker {
  SyncWorker(const Flags& flags, int replicas, int total, float slope)
      : SyncWorker(flags, replicas, total, slope, "int64") {}
  SyncWorker(const Flags& flags, int replicas, int total, float slope,
             const std::string& kind)
      : optimizer(std::make_shared<GradientDescentOptimizer>(1.0), replicas,
                  total) {
    const With scope(Scope(graph).Device(OnReplica(flags.task)));
    w = Zero(scope);
    const DType dtype =
        kind.starts_with("int32") ? DType::kInt32 : DType::kInt64;
    step =
        Variable(scope.Named("global_step"), ZerosInitializer({}, dtype),
                 {.trainable = false,
                  .resource = kind.ends_with("resource"),
                  .collections = {keys::kGlobalVariables, keys::kGlobalStep}});
    train = optimizer.Minimize(scope, w * slope, {.global_step = step});
  }

  absl::StatusOr<std::unique_ptr<MonitoredSession>> Open(const Flags& flags,
                                                         const Server& server,
                                                         int64_t last_step,
                                                         int num_tokens = -1) {
    const bool chief = IsChief(flags);
    return MonitoredTrainingSession(
        graph, {.master = server.target(),
                .is_chief = chief,
                .hooks = {optimizer.MakeSessionRunHook(chief, num_tokens),
                          std::make_shared<StopAtStepHook>(
                              StopAtStepHook::Options{.last_step = last_step})},
                .stop_grace_period_secs = 60});
  }

  // Runs a step; gives the token, then `after` in a step of its own each.
  absl::StatusOr<std::vector<Tensor>> Step(MonitoredSession& session,
                                           const std::vector<Output>& after) {
    std::vector<Tensor> all;
    SLUICE_RETURN_IF_ERROR(
        session.RunStepFn([&](MonitoredSession::StepContext& context) {
          SLUICE_RETURN_IF_ERROR(
              context.RunWithHooks({}, {train->output(0)}, {}, &all));
          for (const Output& output : after) {
            SLUICE_ASSIGN_OR_RETURN(Tensor value,
                                    context.session().Eval(output));
            all.push_back(std::move(value));
          }
          return absl::OkStatus();
        }));
    return all;
  }

  Graph graph;
  SyncReplicasOptimizer optimizer;
  Variable w, step;
  Node* train = nullptr;
};

int64_t Integer(const Tensor& value) {
  return value.dtype() == DType::kInt32 ? value.scalar<int32_t>()
                                        : value.scalar<int64_t>();
}

// Calls `step` until the session stops, and closes it; that another worker has
// ended the training is no error.
absl::Status Train(MonitoredSession& session,
                   const std::function<absl::Status()>& step) {
  absl::Status status;
  while (status.ok() && !session.ShouldStop()) status = step();
  SLUICE_RETURN_IF_ERROR(session.Close(status));
  Say("ended");
  return absl::OkStatus();
}

absl::Status SyncExact(const Flags& flags) {
  SLUICE_ASSIGN_OR_RETURN(auto server, Serve(flags));
  SyncWorker worker(flags, 2, 2, static_cast<float>(flags.task.task + 1));
  SLUICE_ASSIGN_OR_RETURN(auto session, worker.Open(flags, *server, 10, 0));
  Say("set up");
  return Train(*session, [&]() -> absl::Status {
    Line();
    SLUICE_ASSIGN_OR_RETURN(const auto seen,
                            worker.Step(*session, {worker.step, worker.w}));
    Say("ran", Integer(seen[0]), Integer(seen[1]), seen[2].scalar<float>());
    return absl::OkStatus();
  });
}

absl::Status SyncFree(const Flags& flags) {
  SLUICE_ASSIGN_OR_RETURN(auto server, Serve(flags));
  SyncWorker worker(flags, 2, 2, static_cast<float>(flags.task.task + 1));
  SLUICE_ASSIGN_OR_RETURN(auto session, worker.Open(flags, *server, 30));
  return Train(*session, [&]() -> absl::Status {
    SLUICE_ASSIGN_OR_RETURN(
        const auto seen,
        worker.Step(*session, {worker.step, worker.w, worker.step}));
    Say("between", Integer(seen[1]), Integer(seen[3]), "w",
        seen[2].scalar<float>());
    return absl::OkStatus();
  });
}

absl::Status Backup(const Flags& flags) {
  SLUICE_ASSIGN_OR_RETURN(auto server, Serve(flags));
  const bool slow = flags.task.task == 2;
  SyncWorker worker(flags, 2, 3, slow ? 100.0f : 1.0f);
  SLUICE_ASSIGN_OR_RETURN(auto session, worker.Open(flags, *server, 20));
  return Train(*session, [&]() -> absl::Status {
    SLUICE_ASSIGN_OR_RETURN(const auto seen, worker.Step(*session, {worker.w}));
    if (slow) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
    } else {
      Say("w", seen[1].scalar<float>());
    }
    return absl::OkStatus();
  });
}

absl::Status FewerWorkers(const Flags& flags) {
  SLUICE_ASSIGN_OR_RETURN(auto server, Serve(flags));
  SyncWorker worker(flags, 2, 1, 1.0f);
  const Scope failing = Scope::Detached(worker.graph);
  worker.optimizer.InitTokensOp(failing, 0);
  Say(failing.status().message());
  SLUICE_ASSIGN_OR_RETURN(auto session,
                          worker.Open(flags, *server, 10, flags.tokens));
  int runs = 0;
  SLUICE_RETURN_IF_ERROR(Train(*session, [&] {
    ++runs;
    return session->Run({}, {}, {worker.train}, nullptr);
  }));
  Say("runs", runs);
  return absl::OkStatus();
}

absl::Status Token(const Flags& flags) {
  SLUICE_ASSIGN_OR_RETURN(auto server, Serve(flags));
  SyncWorker worker(flags, 1, 1, 1.0f, flags.kind);
  SLUICE_ASSIGN_OR_RETURN(auto session, worker.Open(flags, *server, 5, 0));
  return Train(*session, [&]() -> absl::Status {
    SLUICE_ASSIGN_OR_RETURN(const auto seen,
                            worker.Step(*session, {worker.step}));
    Say("token", Integer(seen[0]), Integer(seen[1]));
    return absl::OkStatus();
  });
}

absl::Status Recovery(const Flags& flags) {
  SLUICE_ASSIGN_OR_RETURN(auto server, Serve(flags));
  Graph graph;
  const With scope(Scope(graph).Device(OnReplica(flags.task)));
  const Variable w = Zero(scope);
  const Variable step = GetOrCreateGlobalStep(scope);
  Node* train =
      GradientDescentOptimizer(1.0).Minimize(scope, w, {.global_step = step});
  SLUICE_ASSIGN_OR_RETURN(
      auto session, MonitoredTrainingSession(
                        graph, {.master = server->target(),
                                .is_chief = IsChief(flags),
                                .checkpoint_dir = flags.logs,
                                .hooks = {std::make_shared<StopAtStepHook>(
                                    StopAtStepHook::Options{.last_step = 60})},
                                .save_checkpoint_steps = 10,
                                .save_summaries_steps = 0}));
  Say("set up");
  return Train(*session, [&]() -> absl::Status {
    int runs = std::atoi(Line().c_str());
    for (; runs > 0 && !session->ShouldStop(); --runs) {
      SLUICE_RETURN_IF_ERROR(session->Run({}, {}, {train}, nullptr));
    }
    Say("paused");
    return absl::OkStatus();
  });
}

absl::Status Supervised(const Flags& flags) {
  SLUICE_ASSIGN_OR_RETURN(auto server, Serve(flags));
  Graph graph;
  const With scope(Scope(graph).Device(OnReplica(flags.task)));
  const Variable w = Zero(scope);
  const Variable step = GetOrCreateGlobalStep(scope);
  Node* train =
      GradientDescentOptimizer(1.0).Minimize(scope, w, {.global_step = step});
  Supervisor supervisor(graph, {.is_chief = IsChief(flags),
                                .logdir = flags.logs,
                                .save_summaries_secs = 0,
                                .save_model_secs = 600,
                                .recovery_wait_secs = 1,
                                .recover = true});
  int runs = 0;
  int64_t at = 0;
  SLUICE_RETURN_IF_ERROR(supervisor.ManagedSession(
      {server->target()}, [&](Session& session) -> absl::Status {
        Say("begins");
        while (!supervisor.ShouldStop() && at < 60) {
          if (runs == 0) runs = std::atoi(Line().c_str());
          for (; runs > 0 && !supervisor.ShouldStop() && at < 60; --runs) {
            SLUICE_RETURN_IF_ERROR(session.Run({}, {}, {train}, nullptr));
            SLUICE_ASSIGN_OR_RETURN(at, GlobalStep(session, step));
          }
          if (IsChief(flags)) {
            SLUICE_RETURN_IF_ERROR(
                supervisor.saver()
                    ->Save(session, supervisor.save_path(), {.global_step = at})
                    .status());
          }
          Say("paused", at);
        }
        return absl::OkStatus();
      }));
  Say("ended");
  return absl::OkStatus();
}

absl::Status Uneven(const Flags& flags) {
  SLUICE_ASSIGN_OR_RETURN(auto server, Serve(flags));
  Graph graph;
  const With scope(Scope(graph).Device(OnReplica(flags.task)));
  const Variable w = Zero(scope);
  const Variable v = Zero(scope, "v");
  const Variable step = GetOrCreateGlobalStep(scope);
  SyncReplicasOptimizer optimizer(
      std::make_shared<GradientDescentOptimizer>(0.01), 2, 2, "sync_replicas",
      {.step_timeout_secs = flags.timeout, .least_replicas = flags.least});
  Node* train = optimizer.Minimize(scope, w + v, {.global_step = step});
  const With here(
      Scope(graph).Device(StrCat("/job:worker/task:", flags.task.task)));
  const Variable count(
      here.Named("example"), 0,
      {.trainable = false, .collections = {keys::kLocalVariables}});
  const Output example = ops::CountUpTo(here, count.ref(), flags.runs);
  const bool chief = IsChief(flags);
  SLUICE_ASSIGN_OR_RETURN(
      auto session,
      MonitoredTrainingSession(
          graph,
          {.master = server->target(),
           .is_chief = chief,
           .checkpoint_dir = flags.logs,
           .hooks = {optimizer.MakeSessionRunHook(chief, flags.tokens),
                     std::make_shared<StopAtStepHook>(StopAtStepHook::Options{
                         .last_step = flags.last_step})},
           .save_checkpoint_steps = 10,
           .save_summaries_steps = 0,
           .stop_grace_period_secs = 300}));
  return Train(*session, [&]() -> absl::Status {
    std::vector<Tensor> seen;
    SLUICE_RETURN_IF_ERROR(
        session->Run({}, {train->output(0), example}, {}, &seen));
    if (Integer(seen[0]) % 10 == 0) Say("step", Integer(seen[0]));
    if (Integer(seen[0]) >= flags.pause) {
      Say("paused");
      Line();
    }
    return absl::OkStatus();
  });
}

absl::Status Run(int argc, char** argv) {
  const std::map<std::string, absl::Status (*)(const Flags&)> recipes = {
      {"in_graph", InGraph},
      {"share", Share},
      {"wait_for_chief", WaitForChief},
      {"asynchronous", Asynchronous},
      {"sync_exact", SyncExact},
      {"sync_free", SyncFree},
      {"backup", Backup},
      {"fewer_workers", FewerWorkers},
      {"token", Token},
      {"recovery", Recovery},
      {"supervised", Supervised},
      {"uneven", Uneven}};
  Flags flags;
  flags.recipe = argc > 1 ? argv[1] : "";
  flags.logs = Flag(argc, argv, "logs", "logs");
  flags.locking = Flag(argc, argv, "locking", "yes");
  flags.kind = Flag(argc, argv, "kind", "int64");
  const auto number = [&](const char* name, const char* otherwise) {
    return std::atoi(Flag(argc, argv, name, otherwise).c_str());
  };
  flags.tokens = number("tokens", "-1");
  flags.runs = number("runs", "1000000000");
  flags.pause = number("pause", "1000000000");
  flags.last_step = number("last_step", "1000000000");
  flags.least = number("least", "0");
  flags.timeout = number("timeout", "30");
  flags.task.task = number("task_index", "0");
  flags.workers = Hosts(Flag(argc, argv, "worker_hosts"));
  flags.task.cluster = {{"ps", Hosts(Flag(argc, argv, "ps_hosts"))},
                        {"worker", flags.workers}};
  const auto found = recipes.find(flags.recipe);
  if (found == recipes.end()) {
    return InvalidArgument("There is no recipe '", flags.recipe, "'");
  }
  return found->second(flags);
}

}  // namespace

int main(int argc, char** argv) { return Exit(Run(argc, argv)); }
