// Child processes whose output is shown line by line with a prefix.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sluice::tools {

struct Task {
  std::string job;
  int index = 0;
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;  // Added to ours.
};

// Starts all tasks, shows their lines as "[job/index] line" (what is above 64 KB
// in pieces), and waits. A task of job "ps" is ended when all others are done,
// if there are any; when a task fails, all are ended. Returns the exit status of
// the first that failed, 130 after Ctrl-C.
int RunTasks(const std::vector<Task>& tasks);

}  // namespace sluice::tools
