#include "sluice/kernel/step.h"

#include <algorithm>

namespace sluice {

WaitTable& WaitTable::Global() {
  static WaitTable* table = new WaitTable;
  return *table;
}

WaitTable::Token WaitTable::Add(WaitInfo info) {
  MutexLock lock(mu_);
  const Token token = next_++;
  waits_.emplace_back(token, std::move(info));
  return token;
}

void WaitTable::Remove(Token token) {
  MutexLock lock(mu_);
  // Tokens grow, so the vector is sorted.
  auto it = std::lower_bound(
      waits_.begin(), waits_.end(), token,
      [](const auto& entry, Token t) { return entry.first < t; });
  if (it != waits_.end() && it->first == token) waits_.erase(it);
}

std::vector<WaitInfo> WaitTable::List() const {
  std::vector<WaitInfo> list;
  MutexLock lock(mu_);
  for (const auto& [token, info] : waits_) list.push_back(info);
  return list;
}

void StepStatsCollector::Add(std::string_view device, NodeStats stats) {
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
