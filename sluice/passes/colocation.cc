#include "sluice/passes/colocation.h"

#include <algorithm>

#include "sluice/base/status.h"

namespace sluice {
namespace {

absl::Status Conflict(const char* what, const DeviceName& a,
                      const DeviceName& b) {
  return InvalidArgument("Cannot merge devices with incompatible ", what, ": '",
                         a.ToString(), "' and '", b.ToString(), "'");
}

template <typename T>
bool Differ(const std::optional<T>& a, const std::optional<T>& b) {
  return a && b && *a != *b;
}

}  // namespace

absl::Status MergeDeviceNames(const DeviceName& from, bool allow_soft,
                              DeviceName* into) {
  if (Differ(from.job, into->job)) return Conflict("jobs", *into, from);
  if (Differ(from.replica, into->replica))
    return Conflict("replicas", *into, from);
  if (Differ(from.task, into->task)) return Conflict("tasks", *into, from);
  const DeviceName before = *into;
  if (Differ(from.type, into->type)) {
    if (!allow_soft) return Conflict("types", *into, from);
    into->type.reset();
    into->id.reset();
    DeviceName rest = from;
    rest.type.reset();
    rest.id.reset();
    into->FillFrom(rest);
    return absl::OkStatus();
  }
  if (Differ(from.id, into->id)) {
    if (!allow_soft) return Conflict("ids", *into, from);
    into->id.reset();
    DeviceName rest = from;
    rest.id.reset();
    into->FillFrom(rest);
    return absl::OkStatus();
  }
  into->FillFrom(from);
  return absl::OkStatus();
}

ColocationGroups::ColocationGroups(int num_nodes,
                                   std::function<std::string(int)> describe)
    : describe_(std::move(describe)), groups_(num_nodes) {
  for (int i = 0; i < num_nodes; ++i) groups_[i].parent = i;
}

int ColocationGroups::Find(int node) {
  while (groups_[node].parent != node) {
    groups_[node].parent = groups_[groups_[node].parent].parent;
    node = groups_[node].parent;
  }
  return node;
}

absl::Status ColocationGroups::Unite(const Node& a, const Node& b,
                                     bool allow_soft) {
  int x = Find(a.id());
  int y = Find(b.id());
  if (x == y) return absl::OkStatus();
  if (groups_[x].rank < groups_[y].rank) std::swap(x, y);
  // Work on copies: a failed union must leave both sets as they were.
  DeviceName assigned = groups_[x].assigned;
  DeviceName resource = groups_[x].resource;
  DeviceName requested = groups_[x].requested;
  const auto fail = [&](const absl::Status& s) {
    return InvalidArgument("Cannot colocate nodes {{colocation_node ", a.name(),
                           "}} and {{colocation_node ", b.name(),
                           "}}: ", s.message());
  };
  absl::Status merged = MergeDeviceNames(groups_[y].assigned, false, &assigned);
  if (merged.ok())
    merged = MergeDeviceNames(groups_[y].resource, false, &resource);
  if (merged.ok())
    merged = MergeDeviceNames(groups_[y].requested, allow_soft, &requested);
  if (!merged.ok()) return fail(merged);
  std::vector<std::string> types;
  for (const std::string& type : groups_[x].types) {
    if (std::ranges::count(groups_[y].types, type) > 0) types.push_back(type);
  }
  if (types.empty()) {
    return InvalidArgument(
        "Cannot colocate nodes {{colocation_node ", a.name(),
        "}} and {{colocation_node ", b.name(),
        "}} because no device type supports both of those nodes and the other "
        "nodes colocated with them.",
        describe_(x), describe_(y));
  }
  groups_[x].assigned = std::move(assigned);
  groups_[x].resource = std::move(resource);
  groups_[x].requested = std::move(requested);
  groups_[x].types = std::move(types);
  groups_[x].KeepSpecific();
  if (groups_[x].rank == groups_[y].rank) ++groups_[x].rank;
  groups_[y].parent = x;
  return absl::OkStatus();
}

}  // namespace sluice
