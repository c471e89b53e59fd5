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

// Starts all tasks, shows their lines as "[job/index] line" (those above 64 KB
// in pieces), and waits. A task of job "ps" is ended when all others are done,
// if there are any; when a task fails, all are ended, each with what it
// started. Ctrl-C goes to the tasks as it came; who is told to end and does not
// is told harder. Returns the exit status of the first that failed, 130 if we
// were told to end.
int RunTasks(const std::vector<Task>& tasks);

}  // namespace sluice::tools
