// Asynchronous training with a monitored session: the parameter servers hold
// the variables, every worker computes gradients of its own copy of the graph.
//
//   sluice run --ps 1 --workers 2 build/bin/trainer --train_dir=DIR
//
// The chief (worker 0) initialises, restores and saves; all stop by themselves
// at the last step, and all go on when a parameter server was away.
#include "examples/cc/example.h"

using namespace sluice;

struct Model {
  Output loss;
  Variable step;
  Node *train;
};

// How far a plane is from the one that is to be found.
static Model Build(const With &scope) {
  const Output x = 2 * ops::RandomUniform(scope, {16, 2}, DType::kFloat) - 1;
  const Output truth = ops::MatMul(scope, x, {{3.0f}, {-2.0f}}) + 0.5;
  const Variable w(scope.Named("w"), ZerosInitializer({2, 1}));
  const Variable b(scope.Named("b"), ZerosInitializer({1}));
  const Output guess = ops::MatMul(scope, x, w) + b;
  Model model;
  model.loss = losses::MeanSquaredError(scope, truth, guess);
  model.step = GetOrCreateGlobalStep(scope);
  model.train = AdagradOptimizer(0.5).Minimize(scope, model.loss,
                                               {.global_step = model.step});
  return model;
}

static absl::Status Run(int argc, char **argv) {
  SLUICE_ASSIGN_OR_RETURN(const TaskConfig task, TaskFromFlags(argc, argv));
  SLUICE_ASSIGN_OR_RETURN(auto server,
                          Server::Create(task.cluster, task.job, task.task));
  if (task.job == "ps") return server->Join();

  Graph graph;
  const Model model = Build(With(Scope(graph).Device(OnReplica(task))));
  const int64_t last_step =
      std::atoll(Flag(argc, argv, "last_step", "1000").c_str());
  SLUICE_ASSIGN_OR_RETURN(
      auto session,
      MonitoredTrainingSession(
          graph, {.master = server->target(),
                  .is_chief = task.task == 0,
                  .checkpoint_dir = Flag(argc, argv, "train_dir", "train_logs"),
                  .hooks = {std::make_shared<StopAtStepHook>(
                      StopAtStepHook::Options{.last_step = last_step})}}));
  std::vector<Tensor> seen;
  absl::Status status;
  while (status.ok() && !session->ShouldStop()) {
    status = session->Run({}, {model.step, model.loss}, {model.train}, &seen);
  }
  SLUICE_RETURN_IF_ERROR(session->Close(status));
  if (seen.empty()) return absl::OkStatus();  // The others were faster.
  std::cout << "Stopped at step " << seen[0].scalar<int64_t>() << ", loss "
            << seen[1].scalar<float>() << std::endl;
  return absl::OkStatus();
}

int main(int argc, char **argv) { return Exit(Run(argc, argv)); }
