// StallWatch: finds the steps of a task that make no progress and says what
// they wait for. Fed with snapshots, so that it needs neither clock nor thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "sluice/proto/task_status.pb.h"

namespace sluice {

// Thread-compatible.
class StallWatch {
 public:
  explicit StallWatch(double patience_seconds)
      : patience_seconds_(patience_seconds) {}

  struct Stall {
    std::string session;
    pb::TaskStatus::Step step;
    // Its waits on this task; the newest is older than our patience.
    std::vector<pb::TaskStatus::Wait> waits;
  };
  // The steps to speak of now: each for the first time after our patience, then
  // whenever it has waited twice as long.
  std::vector<Stall> Find(const pb::TaskStatus& status);

 private:
  const double patience_seconds_;
  absl::flat_hash_map<int64_t, double> next_line_;  // Age, by step.
};

// How to ask another task of the cluster for its status.
using AskTask = std::function<absl::StatusOr<pb::TaskStatus>(
    const std::string& task, const std::string& address)>;

struct StallLine {
  std::string text;
  // All it waits for may take as long as it likes, as a dequeue.
  bool patient = false;
};
// One line that names the nodes, what they wait for and the tasks that owe it.
// Asks those for what they do; blocks for that.
StallLine DescribeStall(const StallWatch::Stall& stall,
                        const pb::TaskStatus& status, const AskTask& ask);

}  // namespace sluice
