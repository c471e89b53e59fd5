// Fits a line to noisy points under a Supervisor, asynchronously.
//
//   sluice run --ps 1 --workers 2 build/bin/line_fit
//
// Every worker prints what it sees of the line after each pass over the points,
// until it is stopped (or for --epochs passes). Stopped and started again it
// goes on from its checkpoint.
#include <algorithm>
#include <random>

#include "examples/cc/example.h"

using namespace sluice;

struct Model {
  Output x, y;
  Variable w, b, step;
  Node *train;
  std::shared_ptr<Saver> saver;
  Node *init;
};

static Model Build(const With &scope) {
  Model m;
  m.x = ops::Placeholder(scope.Named("X"), DType::kFloat,
                         {.shape = PartialShape::Scalar()});
  m.y = ops::Placeholder(scope.Named("Y"), DType::kFloat,
                         {.shape = PartialShape::Scalar()});
  m.w = Variable(scope.Named("b0"), -1.0f);
  m.b = Variable(scope.Named("b1"), -2.0f);
  m.step = Variable(scope, 0, {.trainable = false});
  const Output loss = ops::Square(scope, m.y - (m.x * m.w + m.b));
  m.train =
      AdagradOptimizer(0.8).Minimize(scope, loss, {.global_step = m.step});
  m.saver = std::make_shared<Saver>(scope);
  m.init = GlobalVariablesInitializer(scope);
  return m;
}

using Points = std::vector<std::pair<float, float>>;

// What all this is about, in one go.
static void PrintLeastSquares(int node, const Points &points) {
  double x = 0, y = 0, xx = 0, xy = 0;
  const auto n = static_cast<double>(points.size());
  for (const auto &[px, py] : points) {
    x += px, y += py, xx += px * px, xy += px * py;
  }
  const double w = (n * xy - x * y) / (n * xx - x * x);
  std::cout << "Least squares of node: " << node << ", w: " << w
            << ", b0: " << (y - w * x) / n << std::endl;
}

static absl::Status Run(int argc, char **argv) {
  SLUICE_ASSIGN_OR_RETURN(const TaskConfig task, TaskFromFlags(argc, argv));
  SLUICE_ASSIGN_OR_RETURN(auto server,
                          Server::Create(task.cluster, task.job, task.task));
  if (task.job == "ps") return server->Join();

  std::mt19937 random(task.task);
  std::normal_distribution<float> noise(0, 0.4f);
  Points points;
  for (int i = 0; i <= 100; ++i) {
    const float x = 0.02f * static_cast<float>(i) - 1;
    points.emplace_back(x, 2 * x + 0.2f + noise(random));
  }
  PrintLeastSquares(task.task, points);
  Graph graph;
  const Model m = Build(With(Scope(graph).Device(OnReplica(task))));

  Supervisor supervisor(graph,
                        {.is_chief = task.task == 0,
                         .logdir = Flag(argc, argv, "train_dir", "train_logs"),
                         .init_op = m.init,
                         .saver = m.saver,
                         .global_step = m.step,
                         .save_model_secs = 600});
  const int epochs = std::atoi(Flag(argc, argv, "epochs", "0").c_str());
  return supervisor.ManagedSession(
      {server->target()}, [&](Session &session) -> absl::Status {
        std::vector<Tensor> line;
        for (int epoch = 0; !supervisor.ShouldStop(); ++epoch) {
          if (epochs > 0 && epoch == epochs) break;
          std::shuffle(points.begin(), points.end(), random);
          for (const auto &[x, y] : points) {
            SLUICE_RETURN_IF_ERROR(session.Run(
                m.train, {{m.x, Tensor::Scalar(x)}, {m.y, Tensor::Scalar(y)}}));
          }
          SLUICE_RETURN_IF_ERROR(session.Run({}, {m.w, m.b}, {}, &line));
          std::cout << "Partial result from node: " << task.task
                    << ", w: " << line[0].scalar<float>()
                    << ", b0: " << line[1].scalar<float>() << std::endl;
        }
        return absl::OkStatus();
      });
}

int main(int argc, char **argv) { return Exit(Run(argc, argv)); }
