// What tests of trainings share: a model, a loop, the log.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"
#include "sluice/train/global_step.h"
#include "sluice/train/hooks.h"
#include "sluice/train/monitored_session.h"
#include "sluice/train/optimizers.h"

namespace sluice {

// Every step subtracts 1 from w and counts.
struct CountingModel {
  explicit CountingModel(const std::string& device = "")
      : w(scope.Device(device).Named("w"), Tensor::Scalar(0.0f)),
        step(GetOrCreateGlobalStep(scope.Device(device))) {
    train = GradientDescentOptimizer(1.0).Minimize(
        scope.Device(device), scope.Device(device).Add("Identity", {w}),
        {.global_step = step});
    EXPECT_TRUE(scope.ok()) << scope.status();
  }

  Graph graph;
  Scope scope{graph};
  Variable w, step;
  Node* train = nullptr;
};

// The texts of the log lines while it lives.
class LogCapture {
 public:
  LogCapture() {
    SetLogSinkForTest([this](LogLevel, const std::string& line) {
      MutexLock lock(mu_);
      lines_.push_back(line.substr(line.find("] ") + 2));
    });
  }
  ~LogCapture() { SetLogSinkForTest({}); }
  std::vector<std::string> lines() {
    MutexLock lock(mu_);
    return lines_;
  }

 private:
  Mutex mu_;
  std::vector<std::string> lines_ SLUICE_GUARDED_BY(mu_);
};

// Runs `train` until the session stops; returns what Close returns.
inline absl::Status TrainToTheEnd(MonitoredSession& session, Node* train,
                                  const std::function<void()>& each = {}) {
  absl::Status status;
  while (status.ok() && !session.ShouldStop()) {
    status = session.Run({}, {}, {train}, nullptr);
    if (each) each();
  }
  return session.Close(status);
}

inline std::shared_ptr<StopAtStepHook> StopAt(int64_t step) {
  return std::make_shared<StopAtStepHook>(
      StopAtStepHook::Options{.last_step = step});
}

}  // namespace sluice
