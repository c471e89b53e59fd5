// DeviceName: the parts of "/job:ps/replica:0/task:1/device:CPU:0", each of
// which may be missing ("anything").
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace sluice {

// A value.
struct DeviceName {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;  // Upper case for CPU and GPU.
  std::optional<int> id;

  // TensorFlow's native grammar (spec: runtime §2.1); also takes lower-case
  // cpu and gpu as a device type.
  static absl::StatusOr<DeviceName> Parse(std::string_view text);

  // "/job:ps/task:1/device:CPU:0"; only the parts that are set.
  std::string ToString() const;
  bool empty() const { return !job && !replica && !task && !type && !id; }
  bool full() const { return job && replica && task && type && id; }

  // Whether every part set here has the same value in `full`.
  bool Covers(const DeviceName& full) const;
  // Fills parts that are unset here from `other`.
  void FillFrom(const DeviceName& other);
  // Parts set in `other` replace those here.
  void OverrideWith(const DeviceName& other);
  // "/job:ps/replica:0/task:1": the part that names a task.
  std::string TaskName() const;
  bool SameTask(const DeviceName& other) const {
    return job == other.job && replica == other.replica && task == other.task;
  }
  bool operator==(const DeviceName&) const = default;
};

// Letter, then letters, digits and '_'.
bool IsValidJobName(std::string_view name);

// The task part of a full device name, without parsing the rest.
std::string_view TaskOf(std::string_view full_device);

}  // namespace sluice
