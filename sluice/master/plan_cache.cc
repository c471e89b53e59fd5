#include "sluice/master/plan_cache.h"

namespace sluice {

absl::StatusOr<PlanCache::PlanPtr> PlanCache::FindOrBuild(
    const StepSignature& signature, Builder build) {
  std::shared_ptr<Entry> entry;
  {
    MutexLock lock(mu_);
    auto [it, added] = entries_.try_emplace(signature);
    if (added) {
      it->second = std::make_shared<Entry>();
      ages_.push_front(signature);
      it->second->age = ages_.begin();
      if (entries_.size() > capacity_) {
        const StepSignature oldest = ages_.back();
        ages_.pop_back();
        if (oldest != signature) entries_.erase(oldest);
      }
    } else {
      ages_.splice(ages_.begin(), ages_, it->second->age);
    }
    entry = entries_[signature];
  }
  MutexLock lock(entry->mu);
  if (entry->plan != nullptr) return entry->plan;
  absl::StatusOr<PlanPtr> plan = build();
  if (plan.ok()) entry->plan = *plan;
  return plan;
}

PlanCache::PlanPtr PlanCache::Find(const StepSignature& signature) {
  std::shared_ptr<Entry> entry;
  {
    MutexLock lock(mu_);
    auto it = entries_.find(signature);
    if (it == entries_.end()) return nullptr;
    ages_.splice(ages_.begin(), ages_, it->second->age);
    entry = it->second;
  }
  if (!entry->mu.TryLock()) return nullptr;  // Being built.
  PlanPtr plan = entry->plan;
  entry->mu.Unlock();
  return plan;
}

void PlanCache::Clear() {
  MutexLock lock(mu_);
  entries_.clear();
  ages_.clear();
}

}  // namespace sluice
