// In-graph replication: one client, one graph, a tower on every worker. A step
// is a barrier: it takes the mean of the gradients of all towers.
//
//   sluice run --ps 1 --workers 2 build/bin/in_graph
//
// Worker 0 is the client. The others only serve, until it tells them through
// queues that the work is done. These live on the ps: a worker that held its
// own could be gone before it has answered who told it.
#include "examples/cc/example.h"

using namespace sluice;

static With OnWorker(Graph &graph, int worker) {
  return With(Scope(graph).Device(StrCat("/job:worker/task:", worker)));
}

static With OnPs(Graph &graph) {
  return With(Scope(graph).Device("/job:ps/task:0"));
}

// A worker's queue; all graphs that have it share it.
static Output DoneQueue(Graph &graph, int worker) {
  return ops::FIFOQueueV2(OnPs(graph), {DType::kBool},
                          {.shapes = {PartialShape::Scalar()},
                           .shared_name = StrCat("done_", worker)});
}

// Waits for the client's word.
static absl::Status Serve(const std::string &target, int worker) {
  Graph graph;
  const Output done = ops::QueueDequeueV2(OnPs(graph), DoneQueue(graph, worker),
                                          {DType::kBool})[0];
  SessionConfig config;
  config.target = target;
  SLUICE_ASSIGN_OR_RETURN(auto session, Session::Create(config, graph));
  SLUICE_RETURN_IF_ERROR(session->Eval(done).status());
  std::cout << "Served" << std::endl;
  return absl::OkStatus();
}

static absl::Status Train(const std::string &target, int workers, int steps) {
  Graph graph;
  const With ps = OnPs(graph);
  const Variable w(ps.Named("w"), ZerosInitializer({2, 1}));
  const Variable b(ps.Named("b"), ZerosInitializer({1}));
  GradientDescentOptimizer optimizer(0.3);
  std::vector<Output> losses, w_grads, b_grads;
  for (int worker = 0; worker < workers; ++worker) {
    const With tower = OnWorker(graph, worker);
    const Output x = 2 * ops::RandomUniform(tower, {16, 2}, DType::kFloat) - 1;
    const Output truth = ops::MatMul(tower, x, {{3.0f}, {-2.0f}}) + 0.5;
    losses.push_back(
        losses::MeanSquaredError(tower, truth, ops::MatMul(tower, x, w) + b));
    const auto gradients =
        optimizer.ComputeGradients(tower, losses.back(), {.variables = {w, b}});
    w_grads.push_back(gradients[0].grad.values);
    b_grads.push_back(gradients[1].grad.values);
  }
  const auto mean = [&](const std::vector<Output> &values) {
    return ops::AddN(ps, values) / static_cast<float>(workers);
  };
  Node *step =
      optimizer.ApplyGradients(ps, {{mean(w_grads), w}, {mean(b_grads), b}});
  const Output loss = mean(losses);
  std::vector<Node *> tell;
  for (int worker = 1; worker < workers; ++worker) {
    tell.push_back(ops::QueueEnqueueV2(ps, DoneQueue(graph, worker), {true}));
  }
  Node *init = GlobalVariablesInitializer(ps);

  SessionConfig config;
  config.target = target;
  SLUICE_ASSIGN_OR_RETURN(auto session, Session::Create(config, graph));
  SLUICE_RETURN_IF_ERROR(session->Run(init));
  std::vector<Tensor> seen;
  for (int i = 0; i < steps; ++i) {
    SLUICE_RETURN_IF_ERROR(session->Run({}, {loss}, {step}, &seen));
  }
  const float last = seen[0].scalar<float>();
  SLUICE_RETURN_IF_ERROR(session->Run({}, {w, b}, tell, &seen));
  std::cout << "After " << steps << " steps of " << workers << " towers: w = ["
            << seen[0].data<float>()[0] << " " << seen[0].data<float>()[1]
            << "], b = [" << seen[1].data<float>()[0] << "], loss " << last
            << std::endl;
  return absl::OkStatus();
}

static absl::Status Run(int argc, char **argv) {
  SLUICE_ASSIGN_OR_RETURN(const TaskConfig task, TaskFromFlags(argc, argv));
  SLUICE_ASSIGN_OR_RETURN(auto server,
                          Server::Create(task.cluster, task.job, task.task));
  if (task.job == "ps") return server->Join();
  if (task.task > 0) return Serve(server->target(), task.task);
  return Train(server->target(), task.cluster.num_tasks("worker"),
               std::atoi(Flag(argc, argv, "steps", "300").c_str()));
}

int main(int argc, char **argv) { return Exit(Run(argc, argv)); }
