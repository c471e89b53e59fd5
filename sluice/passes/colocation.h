// ColocationGroups: nodes that must stand together, as disjoint sets. Each set
// knows what device its members ask for and which device types can run all of
// them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "sluice/graph/device_name.h"
#include "sluice/graph/graph.h"

namespace sluice {

struct ColocationGroup {
  int parent;  // Itself for the root of a set.
  int rank = 0;
  // `requested` has every part that `assigned` or `resource` has, and the same
  // in it, whatever soft placement dropped.
  DeviceName assigned;   // Of members that have a device already.
  DeviceName resource;   // What members that hold state ask for.
  DeviceName requested;  // What any member asks for.
  // Types every member has a kernel for, best first.
  std::vector<std::string> types;

  // Gives `requested` back what `resource` and `assigned` say.
  void KeepSpecific() {
    requested.OverrideWith(resource);
    requested.OverrideWith(assigned);
  }
};

// Thread-compatible. Members are node ids.
class ColocationGroups {
 public:
  // `describe` tells of a set, by its root, in errors of types.
  ColocationGroups(int num_nodes, std::function<std::string(int)> describe);

  ColocationGroup& of(int node) { return groups_[Find(node)]; }
  int Find(int node);

  // Unites two sets. With `allow_soft`, contradicting types and ids are dropped
  // instead of failing; jobs, replicas and tasks never are.
  absl::Status Unite(const Node& a, const Node& b, bool allow_soft);

 private:
  const std::function<std::string(int)> describe_;
  std::vector<ColocationGroup> groups_;
};

// Merges `from` into `into`. With `allow_soft`, a type or id they do not agree
// on is dropped.
absl::Status MergeDeviceNames(const DeviceName& from, bool allow_soft,
                              DeviceName* into);

}  // namespace sluice
