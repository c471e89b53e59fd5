// Trains a digit classifier on a cluster: parameter servers, any number of
// workers, asynchronous updates, checkpoints, a printed accuracy.
//
//   sluice run --ps 1 --workers 2 build/bin/digits
//
// The digits are drawn on the spot: five-by-seven pixel shapes, shifted, scaled
// in brightness and covered with noise.
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <random>

#include "examples/cc/example.h"

using namespace sluice;

namespace {

constexpr int kSide = 12;
constexpr int kPixels = kSide * kSide;
constexpr const char *kShapes[] = {
    "01110100011001110101110011000101110",
    "00100011000010000100001000010001110",
    "01110100010000100010001000100011111",
    "11111000100010000010000011000101110",
    "00010001100101010010111110001000010",
    "11111100001111000001000011000101110",
    "00110010001000011110100011000101110",
    "11111000010001000100010000100001000",
    "01110100011000101110100011000101110",
    "01110100011000101111000010001001100",
};

struct Digits {
  Tensor pixels, labels;
};

Digits Draw(int count, std::mt19937 *random) {
  const auto uniform = [&](double low, double high) {
    return static_cast<float>(
        std::uniform_real_distribution<double>(low, high)(*random));
  };
  const auto whole = [&](int end) {
    return std::uniform_int_distribution<int>(0, end - 1)(*random);
  };
  Digits digits = {Tensor(DType::kFloat, {count, kPixels}),
                   Tensor(DType::kInt64, {count})};
  const auto pixels = digits.pixels.mutable_data<float>();
  for (float &pixel : pixels) pixel = uniform(0, 0.35);
  for (int i = 0; i < count; ++i) {
    const int label = whole(10);
    digits.labels.mutable_data<int64_t>()[i] = label;
    const int top = whole(kSide - 7 + 1);
    const int left = whole(kSide - 5 + 1);
    const float ink = uniform(0.6, 1);
    for (int p = 0; p < 35; ++p) {
      if (kShapes[label][p] == '0') continue;
      pixels[i * kPixels + (top + p / 5) * kSide + left + p % 5] += ink;
    }
  }
  return digits;
}

struct Model {
  Output pixels, labels, loss, accuracy;
  Variable step;
  Node *train;
};

Model Build(const Scope &scope) {
  Model model;
  model.pixels = ops::Placeholder(scope.Named("pixels"), DType::kFloat,
                                  {.shape = {-1, kPixels}});
  model.labels =
      ops::Placeholder(scope.Named("labels"), DType::kInt64, {.shape = {-1}});
  const Output hidden = layers::Dense(scope.Named("hidden"), model.pixels, 128,
                                      {.activation = ops::Relu});
  const Output logits = layers::Dense(scope.Named("out"), hidden, 10);
  model.loss = losses::SparseSoftmaxCrossEntropy(scope, model.labels, logits);
  const Output right =
      ops::Equal(scope, ops::ArgMax(scope, logits, 1), model.labels);
  model.accuracy =
      ops::ReduceMean(scope, ops::Cast(scope, right, DType::kFloat));
  model.step = GetOrCreateGlobalStep(scope);
  model.train = AdamOptimizer(0.003).Minimize(scope, model.loss,
                                              {.global_step = model.step});
  return model;
}

absl::Status Work(const TaskConfig &task, const std::string &master, int steps,
                  const std::string &directory) {
  Graph graph;
  const Model model = Build(Scope(graph).Device(OnReplica(task)));
  const bool chief = task.task == 0;
  SLUICE_ASSIGN_OR_RETURN(
      auto session,
      MonitoredTrainingSession(
          graph, {.master = master,
                  .is_chief = chief,
                  .checkpoint_dir = chief ? directory : "",
                  .hooks = {std::make_shared<StopAtStepHook>(
                      StopAtStepHook::Options{.last_step = steps})},
                  .save_checkpoint_steps = 500,
                  .log_step_count_steps = 0}));
  std::mt19937 random(task.task);
  auto shown = std::chrono::steady_clock::now();
  std::vector<Tensor> seen;
  absl::Status status;
  while (status.ok() && !session->ShouldStop()) {
    const Digits batch = Draw(64, &random);
    status = session->Run(
        {{model.pixels, batch.pixels}, {model.labels, batch.labels}},
        {model.loss, model.step}, {model.train}, &seen);
    if (!status.ok()) break;
    const int64_t at = seen[1].scalar<int64_t>();
    const auto now = std::chrono::steady_clock::now();
    if (now - shown > std::chrono::milliseconds(500)) {
      shown = now;
      std::cout << "step " << at << " of " << steps << "  loss "
                << seen[0].scalar<float>() << std::endl;
    }
  }
  SLUICE_RETURN_IF_ERROR(session->Close(status));
  if (!chief) return absl::OkStatus();
  // The variables are on the ps, so they outlive the session.
  std::mt19937 other_random(1000000);
  const Digits test = Draw(1000, &other_random);
  SLUICE_ASSIGN_OR_RETURN(auto reader,
                          Session::Create({.target = master}, graph));
  SLUICE_ASSIGN_OR_RETURN(
      const Tensor value,
      reader->Eval(model.accuracy,
                   {{model.pixels, test.pixels}, {model.labels, test.labels}}));
  const auto accuracy = value.scalar<float>();
  std::cout << "checkpoint "
            << LatestCheckpoint(RealFileSystem(), directory).value_or("none")
            << std::endl;
  std::cout << "accuracy " << 100 * accuracy << " %" << std::endl;
  if (accuracy > 0.95) return absl::OkStatus();
  return Internal("The model did not learn");
}

absl::Status Run(int argc, char **argv) {
  SLUICE_ASSIGN_OR_RETURN(const TaskConfig task, TaskFromFlags(argc, argv));
  SLUICE_ASSIGN_OR_RETURN(auto server,
                          Server::Create(task.cluster, task.job, task.task));
  if (task.job == "ps") return server->Join();
  const int steps = std::atoi(Flag(argc, argv, "steps", "1500").c_str());
  const std::string given = Flag(argc, argv, "train_dir");
  if (!given.empty()) return Work(task, server->target(), steps, given);
  // A directory for the checkpoints that goes away again.
  std::string directory =
      std::filesystem::temp_directory_path() / "digits-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) {
    return Internal("Cannot make ", directory);
  }
  const absl::Status status = Work(task, server->target(), steps, directory);
  std::filesystem::remove_all(directory);
  return status;
}

}  // namespace

int main(int argc, char **argv) { return Exit(Run(argc, argv)); }
