// LateTasks: whom a synchronous training waits for.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "sluice/proto/task_status.pb.h"

namespace sluice {

using AskTaskStatus =
    std::function<absl::StatusOr<pb::TaskStatus>(const std::string& address)>;

// Asks the task at `target` and all it knows of what they do. Returns
// sentences, each after a space, about those that do not answer, and those
// whose sessions do not wait for a token of a synchronous training; empty if
// there are none. Blocks.
std::string LateTasks(const std::string& target);
// With the answers of `ask`.
std::string LateTasks(const std::string& target, const AskTaskStatus& ask);

}  // namespace sluice
