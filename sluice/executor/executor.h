// Executor: runs a Program for one step.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "sluice/executor/program.h"
#include "sluice/kernel/step.h"

namespace sluice {

// Keeps the memory of finished runs for the next ones. Thread-safe.
class Executor {
 public:
  explicit Executor(std::unique_ptr<Program> program);
  ~Executor();

  struct Args {
    Step* step = nullptr;
    std::span<const Tensor> feeds;  // Valid until `done`.
    std::span<Tensor> fetches;      // Filled before `done`.
    // Called once, at the first error, so that others of the step can stop.
    absl::AnyInvocable<void(const absl::Status&)> on_error;
    // The caller has more to start, which this run may wait for.
    bool more_to_start = false;
  };
  using Done = absl::AnyInvocable<void(absl::Status)>;

  // Runs as far as it can on the calling thread, if that may be kept busy.
  // `done` is called exactly once, before Run returns if nothing had to be
  // waited for.
  void Run(Args args, Done done);

  const Program& program() const { return *program_; }

 private:
  friend class ExecutorRun;
  std::unique_ptr<class ExecutorRun> TakeRun();
  void GiveRun(std::unique_ptr<class ExecutorRun> run);
  void Measured(int segment, int64_t nanoseconds);
  float Cost(int segment) const {
    return costs_[segment].load(std::memory_order_relaxed);
  }

  const std::unique_ptr<Program> program_;
  // Average nanoseconds of each segment; 0 before its first run.
  const std::unique_ptr<std::atomic<float>[]> costs_;
  std::atomic<bool> has_run_{false};  // A run has ended.
  Mutex mu_;
  std::vector<std::unique_ptr<class ExecutorRun>> idle_ SLUICE_GUARDED_BY(mu_);
};

// Kernels run by this process so far; for benchmarks and `sluice status`.
int64_t KernelsRun();

// Marks the calling thread as one that polls the network: heavy work that
// starts or becomes ready on it is handed to the compute pool.
void MarkNetworkThread();

// The text of an error with the node it happened in, as TensorFlow writes it.
absl::Status AtNode(const absl::Status& status, const Node& node);

}  // namespace sluice
