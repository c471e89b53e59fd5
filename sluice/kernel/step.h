// Step: what one run of a graph carries along: its id, its end (deadline or
// cancellation), where its tensors meet, and what is measured.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "sluice/base/clock.h"
#include "sluice/base/mutex.h"
#include "sluice/base/strings.h"
#include "sluice/kernel/cancellation.h"
#include "sluice/kernel/rendezvous.h"

namespace sluice {

// One wait of a kernel, an RPC or a session: who waits for what since when.
struct WaitInfo {
  std::string what;   // "dequeue from 'q'", "tensor edge_7_w from /job:ps/…"
  std::string where;  // Node and device, or the task.
  int64_t step_id = 0;
  SteadyTime since;
  // The task that has to act; empty if the wait lasts as long as it is asked
  // to, as a dequeue's does.
  std::string owed_by = {};
};

// Everything this process waits for. The watchdog, the waiting lines, SIGUSR1
// and `sluice doctor` read it. Thread-safe.
class WaitTable {
 public:
  using Token = int64_t;
  Token Add(WaitInfo info);
  void Remove(Token token);
  std::vector<WaitInfo> List() const;
  // One for the process.
  static WaitTable& Global();

 private:
  mutable Mutex mu_;
  Token next_ SLUICE_GUARDED_BY(mu_) = 1;
  // Of one step there may be 100 000. In the order they began.
  std::map<Token, WaitInfo> waits_ SLUICE_GUARDED_BY(mu_);
};

// Why a step fails that was to return fetch `index`, which was not made.
absl::Status DeadFetch(int index);
// The fetch of an error that DeadFetch made; none of any other.
std::optional<int> DeadFetchOf(const absl::Status& status);

// A node that ran in a traced step.
struct NodeStats {
  std::string node;
  std::string label;
  int64_t start_nanos = 0;  // Wall clock.
  int64_t end_nanos = 0;
  int64_t scheduled_nanos = 0;
  uint32_t thread_id = 0;
  struct OutputStats {
    int slot;
    DType dtype;
    Shape shape;
    int64_t bytes;
  };
  std::vector<OutputStats> outputs;
};

// Collects the nodes of a traced step, by device. Thread-safe.
class StepStatsCollector {
 public:
  // As in TensorFlow. An endless loop must not take all memory.
  static constexpr int64_t kMostNodes = 1 << 20;

  explicit StepStatsCollector(int64_t most_nodes = kMostNodes)
      : most_nodes_(most_nodes) {}
  // Does nothing when it is full, and says so once.
  void Add(std::string_view device, NodeStats stats);
  bool full() const {
    return num_nodes_.load(std::memory_order_relaxed) >= most_nodes_;
  }
  struct DeviceStats {
    std::string device;
    std::vector<NodeStats> nodes;
  };
  std::vector<DeviceStats> Take();

 private:
  const int64_t most_nodes_;
  std::atomic<int64_t> num_nodes_{0};
  Mutex mu_;
  std::vector<DeviceStats> devices_ SLUICE_GUARDED_BY(mu_);
};

// Lives as long as the step runs. The pointers are borrowed from whoever runs
// it.
struct Step {
  int64_t id = 0;
  Cancellation* cancellation = nullptr;
  Rendezvous* rendezvous = nullptr;
  StepStatsCollector* stats = nullptr;  // nullptr: not traced.
  Clock* clock = nullptr;
  // Container of resources that die with the step. Made only by who needs it:
  // most steps do not.
  std::string container() const { return StrCat("__per_step_", id); }
  // Set when a kernel put something there, so that most steps clean up nothing.
  std::atomic<bool> container_used{false};
};

}  // namespace sluice
