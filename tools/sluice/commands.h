// The commands behind `sluice`. Each returns the exit status of the process.
#pragma once

#include <string>
#include <vector>

namespace sluice::tools {

struct RunOptions {
  int ps = 0;
  int workers = 0;
  int chiefs = 0;
  int evaluators = 0;
  bool soft_placement = false;
  std::string python;                // Empty: the one the build was made with.
  std::string wire = "both";         // flags, env, both or none.
  std::vector<std::string> command;  // Program and its arguments.
};
// Runs a program: alone, or as one process per task of a local cluster.
int Run(const RunOptions& options);

struct ServerOptions {
  std::string cluster;  // Text, a JSON file, or empty for TF_CONFIG.
  std::string job;
  int task = 0;
};
// Serves one task until it is told to stop.
int Serve(const ServerOptions& options);

// Lists the devices of a target; empty: of this machine.
int ListDevices(const std::string& target);

}  // namespace sluice::tools
