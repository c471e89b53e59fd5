#include "sluice/executor/executor.h"

#include <chrono>

#include "sluice/executor/run.h"

namespace sluice {

absl::Status AtNode(const absl::Status& status, const Node& node) {
  const std::string text(status.message());
  const bool tagged = text.find("{{node") != std::string::npos;
  if (text.find("\n\t [[") != std::string::npos) return status;
  return WithMessage(status, StrCat(text, "\n\t [[", tagged ? "" : "{{node ",
                                    node.name(), tagged ? "" : "}}", "]]"));
}

Executor::Executor(std::unique_ptr<Program> program)
    : program_(std::move(program)),
      costs_(
          std::make_unique<std::atomic<float>[]>(program_->segments.size())) {}
Executor::~Executor() = default;

std::unique_ptr<ExecutorRun> Executor::TakeRun() {
  {
    MutexLock lock(mu_);
    if (!idle_.empty()) {
      std::unique_ptr<ExecutorRun> run = std::move(idle_.back());
      idle_.pop_back();
      return run;
    }
  }
  return std::make_unique<ExecutorRun>(*this);
}

void Executor::GiveRun(std::unique_ptr<ExecutorRun> run) {
  MutexLock lock(mu_);
  idle_.push_back(std::move(run));
}

void Executor::Measured(int segment, int64_t nanoseconds) {
  const auto nanos = static_cast<float>(nanoseconds);
  std::atomic<float>& cost = costs_[segment];
  const float old = cost.load(std::memory_order_relaxed);
  // A moving average; lost updates between threads do not matter.
  cost.store(old == 0 ? nanos : old + 0.125f * (nanos - old),
             std::memory_order_relaxed);
}

void Executor::Run(Args args, Done done) {
  if (program_->segments.empty()) {
    done(absl::OkStatus());
    return;
  }
  // The run owns itself while it is under way and returns in Complete().
  TakeRun().release()->Start(std::move(args), std::move(done));
}

}  // namespace sluice
