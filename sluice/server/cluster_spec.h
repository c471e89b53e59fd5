// ClusterSpec: the jobs of a cluster, their tasks and addresses.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice {

namespace pb {
class ClusterDef;
}  // namespace pb

// A value. Task indices may have holes.
class ClusterSpec {
 public:
  ClusterSpec() = default;
  // {"ps": ["host:1"], "worker": ["host:2", "host:3"]}
  ClusterSpec(
      std::initializer_list<std::pair<std::string, std::vector<std::string>>>
          jobs);
  static absl::StatusOr<ClusterSpec> FromProto(const pb::ClusterDef& def);
  // "ps=h:1,h:2;worker=h:3", TensorFlow's "ps|h:1;h:2,worker|h:3", or JSON
  // {"ps": ["h:1"]} (also {"cluster": …} as in TF_CONFIG).
  static absl::StatusOr<ClusterSpec> Parse(std::string_view text);

  void AddTask(const std::string& job, int index, const std::string& address);
  // Jobs sorted by name, tasks by index.
  void ToProto(pb::ClusterDef* def) const;

  std::vector<std::string> jobs() const;
  bool HasJob(const std::string& job) const { return jobs_.contains(job); }
  int num_tasks(const std::string& job) const;
  // Errors: "No such job in cluster: 'x'", "No task with index 3 in job 'x'".
  absl::StatusOr<std::string> TaskAddress(const std::string& job,
                                          int index) const;
  const std::map<std::string, std::map<int, std::string>>& tasks() const {
    return jobs_;
  }
  bool empty() const { return jobs_.empty(); }
  bool operator==(const ClusterSpec&) const = default;

 private:
  std::map<std::string, std::map<int, std::string>> jobs_;
};

// The place of a process in a cluster, as TF_CONFIG tells it:
// {"cluster": {"ps": ["h:1"], …}, "task": {"type": "ps", "index": 0}}.
struct TaskConfig {
  ClusterSpec cluster;
  std::string job;
  int task = 0;

  static absl::StatusOr<TaskConfig> Parse(std::string_view json);
  // Of this process, from the environment. NOT_FOUND if it is not set.
  static absl::StatusOr<TaskConfig> FromEnvironment();
};

}  // namespace sluice
