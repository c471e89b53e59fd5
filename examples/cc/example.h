// What every example needs: flags, printing a matrix, ending with a status.
#pragma once

#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/sluice.h"

// `--name=value` or `--name value`, with one dash or two, as TensorFlow's.
inline std::string Flag(int argc, char** argv, std::string_view name,
                        std::string_view otherwise = "") {
  for (int i = 1; i < argc; ++i) {
    std::string_view arg = argv[i];
    if (!arg.starts_with('-')) continue;
    arg.remove_prefix(arg.starts_with("--") ? 2 : 1);
    if (arg == name && i + 1 < argc) return argv[i + 1];
    if (arg.starts_with(name) && arg.substr(name.size()).starts_with('=')) {
      return std::string(arg.substr(name.size() + 1));
    }
  }
  return std::string(otherwise);
}

// "a:1,b:2" -> {"a:1", "b:2"}.
inline std::vector<std::string> Hosts(std::string_view text) {
  std::vector<std::string> hosts;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    hosts.emplace_back(text.substr(0, comma));
    text = comma == text.npos ? "" : text.substr(comma + 1);
  }
  return hosts;
}

// The place of this process in a cluster, from the flags that TensorFlow's
// programs have for it. `sluice run` finds their names here and gives them.
inline absl::StatusOr<sluice::TaskConfig> TaskFromFlags(int argc, char** argv) {
  sluice::TaskConfig task;
  task.job = Flag(argc, argv, "job_name");
  if (task.job.empty()) {
    return sluice::InvalidArgument(
        "Run this as a cluster: sluice run --ps 1 --workers 2 ", argv[0],
        ", or give --ps_hosts=host:port,… --worker_hosts=host:port,… "
        "--job_name=ps|worker --task_index=N");
  }
  task.task = std::atoi(Flag(argc, argv, "task_index", "0").c_str());
  task.cluster = {{"ps", Hosts(Flag(argc, argv, "ps_hosts"))},
                  {"worker", Hosts(Flag(argc, argv, "worker_hosts"))}};
  return task;
}

// Variables on the parameter servers, everything else on this worker.
inline sluice::DeviceFunction OnReplica(const sluice::TaskConfig& task) {
  return sluice::ReplicaDeviceSetter(
      {.worker_device = sluice::StrCat("/job:worker/task:", task.task),
       .cluster = task.cluster});
}

// A matrix of floats, a row a line.
inline void PrintMatrix(const sluice::Tensor& matrix) {
  const auto values = matrix.data<float>();
  for (int64_t i = 0; i < matrix.size(); ++i) {
    std::cout << values[i] << ((i + 1) % matrix.dim(1) == 0 ? "\n" : " ");
  }
  std::cout << std::flush;
}

// The exit code of main, and what went wrong.
inline int Exit(const absl::Status& status) {
  if (!status.ok()) std::cerr << status << std::endl;
  return status.ok() ? 0 : 1;
}
