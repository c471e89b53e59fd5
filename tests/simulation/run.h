// RunSeed: one simulated life of a cluster, and whether all promises held.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulation/network.h"

namespace sluice::sim {

struct RunOptions {
  uint64_t seed = 1;
  bool faults = true;
  bool keep_trace = false;
  PlantedBugs planted = {};
};

struct RunReport {
  // What was promised and not kept; empty if all is well.
  std::vector<std::string> violations;
  // Two runs of a seed have the same.
  uint64_t hash = 0;
  std::vector<std::string> trace;
  int attempted = 0;
  int acknowledged = 0;
  int sessions = 0;
  int deaths = 0;           // Of clients.
  double longest_step = 0;  // That had nothing to wait for. Virtual seconds.
  int restarts = 0;
  int taken_in = 0;  // Sessions that went on with a restarted worker.
  int64_t messages = 0;
  int64_t faults = 0;
  double seconds = 0;  // Virtual.
};

RunReport RunSeed(const RunOptions& options);

}  // namespace sluice::sim
