// Cluster: two ps and three workers, and a book of what was done to the
// variables on the ps in all their lives.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/network.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/task.h"

namespace sluice::sim {

inline constexpr int kNumPs = 2;
inline constexpr int kNumWorkers = 3;
// Every step that updates variables adds 1 at a place of its own to `marks0` on
// the first ps and to `marks1` on the second, so one look tells which steps
// were run, and how often.
inline constexpr int kMarks = 256;
using Marks = std::array<int, kMarks>;

// Thread-compatible.
class Cluster {
 public:
  Cluster(uint64_t seed, bool keep_trace);

  Scheduler& scheduler() { return scheduler_; }
  Network& network() { return network_; }
  Trace& trace() { return trace_; }
  Task& ps(int i) { return *tasks_[i]; }
  Task& worker(int i) { return *tasks_[kNumPs + i]; }
  std::vector<std::unique_ptr<Task>>& tasks() { return tasks_; }
  // The one that serves at `address`.
  Task* FindTask(const std::string& address);

  // Also gives a ps its variables, full of zeros.
  void Start(Task& task);
  void Kill(Task& task);
  // What all lives of this ps have seen so far.
  Marks MarksOf(int ps);
  // Whether all lives of the two ps since `life` are still the same.
  std::array<Life, kNumPs> PsLives();

  void Violate(const std::string& what);
  const std::vector<std::string>& violations() const { return violations_; }
  int restarts = 0;

 private:
  void AddMarks(const Task& task, int ps, Marks* marks);

  Trace trace_;
  Scheduler scheduler_;
  Network network_;
  Addresses addresses_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::array<Marks, kNumPs> marks_of_ended_lives_ = {};
  std::vector<std::string> violations_;
};

}  // namespace sluice::sim
