// Place: chooses a device for every node, by TensorFlow 1.15's rules
// (docs/placement.md): what the program asked for, what must stand together,
// which devices have a kernel, and the smallest name among what is left.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "sluice/graph/graph.h"
#include "sluice/kernel/device.h"

namespace sluice {

struct PlaceOptions {
  // Use another device of the same task when the one asked for is not there.
  bool allow_soft = false;
  // Log each node's device, on stdout too.
  bool log = false;
  // The task whose kernels this process knows; nodes asked to run elsewhere may
  // use ops that have no kernel here.
  DeviceName own_task;
  // What nothing else decides goes to own_task, as in TensorFlow 2, and not to
  // the first device by name.
  bool prefer_own_task = false;
  // Called for each node that makes state and went to another job than
  // own_task's without having asked for any, nor following others. May be
  // empty.
  std::function<void(const Node& node, const DeviceInfo& device)> strayed = {};
  // Devices of tasks that are not there. Nodes are placed as if they were: a
  // node that belongs on one has no device but an error, made by `refuse`.
  std::span<const DeviceInfo> absent = {};
  std::function<absl::Status(const Node& node, const DeviceName& device)>
      refuse = {};
};

// Why a node has no device, by node id.
using PlaceErrors = absl::flat_hash_map<int, absl::Status>;

// Sets assigned_device of every node that has none. Nodes that cannot be placed
// are left without one and their error is put into `errors`: only steps that
// reach them fail. Returns an error only if nothing can be placed at all.
absl::Status Place(Graph& graph, std::span<const DeviceInfo> devices,
                   const PlaceOptions& options, PlaceErrors* errors);

}  // namespace sluice
