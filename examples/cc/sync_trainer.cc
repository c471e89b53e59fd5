// Synchronous training with a backup worker: every step is the mean of the
// gradients of all workers but one, of whichever come first.
//
//   sluice run --ps 1 --workers 3 build/bin/sync_trainer
//
// All end by themselves at the last step. Kill a worker: the others go on.
#include "examples/cc/example.h"

using namespace sluice;

// How far a plane is from the one that is to be found.
static Output BuildLoss(const With &scope) {
  const Output x = 2 * ops::RandomUniform(scope, {16, 2}, DType::kFloat) - 1;
  const Output truth = ops::MatMul(scope, x, {{3.0f}, {-2.0f}}) + 0.5;
  const Variable w(scope.Named("w"), ZerosInitializer({2, 1}));
  const Variable b(scope.Named("b"), ZerosInitializer({1}));
  return losses::MeanSquaredError(scope, truth, ops::MatMul(scope, x, w) + b);
}

static absl::Status Run(int argc, char **argv) {
  SLUICE_ASSIGN_OR_RETURN(const TaskConfig task, TaskFromFlags(argc, argv));
  SLUICE_ASSIGN_OR_RETURN(auto server,
                          Server::Create(task.cluster, task.job, task.task));
  if (task.job == "ps") return server->Join();

  const int workers = task.cluster.num_tasks("worker");
  const int backups = std::atoi(Flag(argc, argv, "backups", "1").c_str());
  const bool chief = task.task == 0;
  Graph graph;
  const With scope(Scope(graph).Device(OnReplica(task)));
  const Output loss = BuildLoss(scope);
  const Variable step = GetOrCreateGlobalStep(scope);
  SyncReplicasOptimizer optimizer(std::make_shared<AdagradOptimizer>(0.5),
                                  std::max(1, workers - backups), workers);
  Node *train = optimizer.Minimize(scope, loss, {.global_step = step});

  const int64_t last_step =
      std::atoll(Flag(argc, argv, "last_step", "300").c_str());
  SLUICE_ASSIGN_OR_RETURN(
      auto session,
      MonitoredTrainingSession(
          graph,
          {.master = server->target(),
           .is_chief = chief,
           .checkpoint_dir = Flag(argc, argv, "train_dir", "train_logs"),
           .hooks = {optimizer.MakeSessionRunHook(chief),
                     std::make_shared<StopAtStepHook>(
                         StopAtStepHook::Options{.last_step = last_step})}}));
  std::vector<Tensor> seen = {Tensor::Scalar<int64_t>(0),
                              Tensor::Scalar<float>(NAN)};
  std::vector<Tensor> values;
  int runs = 0;
  absl::Status status;
  while (status.ok() && !session->ShouldStop()) {
    status = session->Run({}, {train->output(0), loss}, {}, &values);
    if (!status.ok()) continue;
    seen = values;
    ++runs;
  }
  SLUICE_RETURN_IF_ERROR(session->Close(status));
  std::cout << "Stopped at step " << seen[0].scalar<int64_t>() << " after "
            << runs << " runs, loss " << seen[1].scalar<float>() << std::endl;
  return absl::OkStatus();
}

int main(int argc, char **argv) { return Exit(Run(argc, argv)); }
