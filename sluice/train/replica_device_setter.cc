#include "sluice/train/replica_device_setter.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "sluice/base/status.h"
#include "sluice/graph/device_name.h"

namespace sluice {
namespace {

// The ops that hold state which workers share.
constexpr std::array<std::string_view, 13> kPsOps = {
    "Variable",
    "VariableV2",
    "AutoReloadVariable",
    "MutableHashTable",
    "MutableHashTableV2",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "VarHandleOp",
    "BoostedTreesEnsembleResourceHandleOp",
    "BoostedTreesQuantileStreamResourceHandleOp",
    "ResourceConditionalAccumulator"};

std::function<int(const Node&)> RoundRobin(int tasks) {
  auto next = std::make_shared<int>(0);
  return [tasks, next](const Node&) {
    const int task = *next;
    *next = (task + 1) % tasks;
    return task;
  };
}

}  // namespace

DeviceFunction ReplicaDeviceSetter(ReplicaDeviceSetterOptions options) {
  const auto fail = [](absl::Status status) -> DeviceFunction {
    return
        [status](const Node&) -> absl::StatusOr<std::string> { return status; };
  };
  const absl::StatusOr<DeviceName> ps = DeviceName::Parse(options.ps_device);
  if (!ps.ok()) return fail(ps.status());
  const absl::StatusOr<DeviceName> worker =
      DeviceName::Parse(options.worker_device);
  if (!worker.ok()) return fail(worker.status());
  if (!options.cluster.empty()) {
    options.ps_tasks = options.cluster.num_tasks(ps->job.value_or(""));
  }
  if (options.ps_tasks <= 0) return {};
  if (!options.ps_strategy) options.ps_strategy = RoundRobin(options.ps_tasks);
  return [ps = *ps, worker = *worker, strategy = options.ps_strategy](
             const Node& node) -> absl::StatusOr<std::string> {
    DeviceName current;
    if (!node.device().empty()) {
      SLUICE_ASSIGN_OR_RETURN(current, DeviceName::Parse(node.device()));
    }
    DeviceName chosen = worker;
    if (std::ranges::find(kPsOps, node.type()) != kPsOps.end()) {
      chosen = ps;
      if (ps.job && (!current.job || current.job == ps.job)) {
        chosen.task = strategy(node);
      }
    }
    chosen.OverrideWith(current);
    return chosen.ToString();
  };
}

std::function<int(const Node&)> GreedyByteSizeStrategy(int ps_tasks) {
  auto loads = std::make_shared<std::vector<double>>(std::max(ps_tasks, 1));
  return [loads](const Node& node) {
    const auto least = std::ranges::min_element(*loads);
    const PartialShape shape = node.attr<PartialShape>("shape");
    const auto count =
        static_cast<double>(std::max<int64_t>(shape.NumElements(), 1));
    *least +=
        count * static_cast<double>(ElementSize(node.attr<DType>("dtype")));
    return static_cast<int>(least - loads->begin());
  };
}

}  // namespace sluice
