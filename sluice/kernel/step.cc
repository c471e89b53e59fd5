#include "sluice/kernel/step.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "sluice/base/logging.h"
#include "sluice/base/status.h"

namespace sluice {

WaitTable& WaitTable::Global() {
  static WaitTable* table = new WaitTable;
  return *table;
}

WaitTable::Token WaitTable::Add(WaitInfo info) {
  MutexLock lock(mu_);
  const Token token = next_++;
  waits_.emplace_hint(waits_.end(), token, std::move(info));
  return token;
}

void WaitTable::Remove(Token token) {
  MutexLock lock(mu_);
  waits_.erase(token);
}

std::vector<WaitInfo> WaitTable::List() const {
  std::vector<WaitInfo> list;
  MutexLock lock(mu_);
  for (const auto& [token, info] : waits_) list.push_back(info);
  return list;
}

namespace {

constexpr char kDeadFetch[] = "sluice/dead_fetch";

}  // namespace

absl::Status DeadFetch(int index) {
  absl::Status status =
      InvalidArgument("Retval[", index, "] does not have value");
  status.SetPayload(kDeadFetch, absl::Cord(StrCat(index)));
  return status;
}

std::optional<int> DeadFetchOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kDeadFetch);
  int index = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &index)) return {};
  return index;
}

void StepStatsCollector::Add(std::string_view device, NodeStats stats) {
  const int64_t before = num_nodes_.fetch_add(1, std::memory_order_relaxed);
  if (before >= most_nodes_) {
    if (before > most_nodes_) return;
    SLUICE_LOG(WARNING) << "A trace has at most " << most_nodes_
                        << " nodes; the rest of this step is not in it";
    return;
  }
  MutexLock lock(mu_);
  for (DeviceStats& entry : devices_) {
    if (entry.device == device) {
      entry.nodes.push_back(std::move(stats));
      return;
    }
  }
  devices_.push_back({std::string(device), {}});
  devices_.back().nodes.push_back(std::move(stats));
}

std::vector<StepStatsCollector::DeviceStats> StepStatsCollector::Take() {
  MutexLock lock(mu_);
  return std::move(devices_);
}

}  // namespace sluice
