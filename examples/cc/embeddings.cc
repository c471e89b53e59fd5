// Word embeddings whose table is split over the parameter servers; workers
// train it asynchronously, and each step moves only the rows it used.
//
//   sluice run --ps 2 --workers 2 build/bin/embeddings
//
// The words of the made-up language belong to topics; words of one topic stand
// together. At the end nearly every word's nearest neighbour is of its own
// topic.
#include <cmath>
#include <random>

#include "examples/cc/example.h"

using namespace sluice;

constexpr int kWords = 1000;
constexpr int kTopics = 10;  // The topic of a word is its number modulo this.
constexpr int kSize = 16;
constexpr int kBatch = 256;

struct Model {
  Output center, right, wrong, loss;
  std::vector<Output> tables;
  Variable step;
  Node *train;
};

// The rows of `ids` from tables that hold `rows` words each.
static Output Lookup(const With &scope, const std::vector<Variable> &tables,
                     const Output &ids, int rows) {
  const int parts = static_cast<int>(tables.size());
  const Output part = ops::FloorDiv(scope, ids, rows);
  const auto row = ops::DynamicPartition(scope, ops::FloorMod(scope, ids, rows),
                                         part, parts);
  const auto place = ops::DynamicPartition(
      scope, ops::Range(scope, 0, kBatch, 1), part, parts);
  std::vector<Output> found;
  for (int i = 0; i < parts; ++i) {
    // Beside the table, so that only these rows travel.
    const With there(scope.Colocate(tables[i].node()));
    found.push_back(ops::Gather(there, tables[i], row[i]));
  }
  return ops::DynamicStitch(scope, place, found);
}

// Skip-grams with one wrong word for each right one.
static Model Build(const With &scope, int parts) {
  Model m;
  const auto words = [&](const char *name) {
    return ops::Placeholder(scope.Named(name), DType::kInt32,
                            {.shape = PartialShape({kBatch})});
  };
  m.center = words("center");
  m.right = words("right");
  m.wrong = words("wrong");
  const int rows = (kWords + parts - 1) / parts;
  std::vector<Variable> tables;
  for (int i = 0; i < parts; ++i) {
    tables.emplace_back(scope.Named(StrCat("embeddings/part_", i)),
                        RandomUniformInitializer({rows, kSize}, -0.5f, 0.5f));
    m.tables.push_back(tables.back());
  }
  const auto match = [&](const Output &a, const Output &b) {
    return ops::ReduceSum(
        scope, Lookup(scope, tables, a, rows) * Lookup(scope, tables, b, rows),
        {.axis = std::vector<int32_t>{1}});
  };
  m.loss = ops::ReduceMean(scope,
                           ops::Softplus(scope, -match(m.center, m.right)) +
                               ops::Softplus(scope, match(m.center, m.wrong)));
  m.step = GetOrCreateGlobalStep(scope);
  m.train =
      AdagradOptimizer(2.0).Minimize(scope, m.loss, {.global_step = m.step});
  return m;
}

static std::vector<Session::Feed> Batch(const Model &m, std::mt19937 &random) {
  std::vector<int32_t> center, right, wrong;
  for (int i = 0; i < kBatch; ++i) {
    center.push_back(static_cast<int32_t>(random() % kWords));
    right.push_back(static_cast<int32_t>(random() % (kWords / kTopics)) *
                        kTopics +
                    center.back() % kTopics);
    wrong.push_back(static_cast<int32_t>(random() % kWords));
  }
  const auto tensor = [](const std::vector<int32_t> &values) {
    return Tensor::Of<int32_t>({kBatch}, std::span<const int32_t>(values));
  };
  return {{m.center, tensor(center)},
          {m.right, tensor(right)},
          {m.wrong, tensor(wrong)}};
}

// The part of words whose nearest neighbour has their topic.
static double NeighboursOfOwnTopic(const std::vector<Tensor> &tables) {
  std::vector<float> all;
  for (const Tensor &table : tables) {
    const auto rows = table.data<float>();
    all.insert(all.end(), rows.begin(), rows.end());
  }
  const auto dot = [&](int a, int b) {
    float sum = 0;
    for (int i = 0; i < kSize; ++i) {
      sum += all[a * kSize + i] * all[b * kSize + i];
    }
    return sum;
  };
  int right = 0;
  for (int word = 0; word < kWords; ++word) {
    int nearest = -1;
    float best = -2;
    for (int other = 0; other < kWords; ++other) {
      if (other == word) continue;
      const float near =
          dot(word, other) / std::sqrt(dot(word, word) * dot(other, other));
      if (near > best) best = near, nearest = other;
    }
    right += nearest % kTopics == word % kTopics;
  }
  return static_cast<double>(right) / kWords;
}

static absl::Status Run(int argc, char **argv) {
  SLUICE_ASSIGN_OR_RETURN(const TaskConfig task, TaskFromFlags(argc, argv));
  SLUICE_ASSIGN_OR_RETURN(auto server,
                          Server::Create(task.cluster, task.job, task.task));
  if (task.job == "ps") return server->Join();

  Graph graph;
  const Model m = Build(With(Scope(graph).Device(OnReplica(task))),
                        task.cluster.num_tasks("ps"));
  const int64_t last_step =
      std::atoll(Flag(argc, argv, "last_step", "1000").c_str());
  SLUICE_ASSIGN_OR_RETURN(
      auto session,
      MonitoredTrainingSession(
          graph, {.master = server->target(),
                  .is_chief = task.task == 0,
                  .checkpoint_dir = Flag(argc, argv, "train_dir", "train_logs"),
                  .hooks = {std::make_shared<StopAtStepHook>(
                      StopAtStepHook::Options{.last_step = last_step})},
                  .log_step_count_steps = 0}));
  std::mt19937 random(task.task);
  std::vector<Tensor> seen;
  absl::Status status;
  while (status.ok() && !session->ShouldStop()) {
    status = session->Run(Batch(m, random), {m.step, m.loss}, {m.train}, &seen);
    if (status.ok() && seen[0].scalar<int64_t>() % 200 < 2) {
      std::cout << "step " << seen[0].scalar<int64_t>() << " of " << last_step
                << "  loss " << seen[1].scalar<float>() << std::endl;
    }
  }
  // A step of its own: it must not train.
  if (status.ok()) status = session->session()->Run({}, m.tables, {}, &seen);
  SLUICE_RETURN_IF_ERROR(session->Close(status));
  std::cout << "Neighbours of the same topic: "
            << 100 * NeighboursOfOwnTopic(seen) << " %" << std::endl;
  return absl::OkStatus();
}

int main(int argc, char **argv) { return Exit(Run(argc, argv)); }
