// ReplicaDeviceSetter: variables go to parameter servers, one after the other,
// everything else to the worker. All workers must build their variables in the
// same order, so that they share them.
//
//   Scope scope = root.Device(ReplicaDeviceSetter({.cluster = cluster}));
#pragma once

#include <functional>
#include <string>

#include "sluice/graph/build_context.h"
#include "sluice/server/cluster_spec.h"

namespace sluice {

struct ReplicaDeviceSetterOptions {
  // The number of ps tasks, unless `cluster` says it.
  int ps_tasks = 0;
  std::string ps_device = "/job:ps";
  std::string worker_device = "/job:worker";
  ClusterSpec cluster = {};
  // Chooses the task of a variable; empty: 0, 1, …, 0, … in order of creation.
  std::function<int(const Node&)> ps_strategy = {};
};

// Empty, which changes nothing, if there are no ps tasks. Parts of a device
// that inner scopes name stay.
DeviceFunction ReplicaDeviceSetter(ReplicaDeviceSetterOptions options);

// The task with the fewest bytes of variables so far.
std::function<int(const Node&)> GreedyByteSizeStrategy(int ps_tasks);

}  // namespace sluice
