#include "sluice/master/plan_cache.h"

#include <utility>

namespace sluice {

PlanCache::EntryPtr PlanCache::FindOrAdd(const StepSignature& signature,
                                         EntryPtr* evicted) {
  auto [it, added] = entries_.try_emplace(signature);
  if (!added) {
    ages_.splice(ages_.begin(), ages_, it->second->age);
    return it->second;
  }
  const EntryPtr entry = it->second = std::make_shared<Entry>();
  ages_.push_front(signature);
  entry->age = ages_.begin();
  if (entries_.size() > capacity_) {
    const StepSignature oldest = ages_.back();
    ages_.pop_back();
    if (oldest != signature) {
      *evicted = std::move(entries_.extract(oldest).mapped());
    }
  }
  return entry;
}

void PlanCache::FindOrBuild(const StepSignature& signature, Builder build,
                            Done done) {
  EntryPtr entry;
  EntryPtr evicted;  // Its end may be a call to a task: not under the lock.
  PlanPtr plan;
  {
    MutexLock lock(mu_);
    entry = FindOrAdd(signature, &evicted);
    plan = entry->plan;
    if (plan == nullptr) {
      entry->waiting.push_back(std::exchange(done, nullptr));
      if (std::exchange(entry->building, true)) return;
    }
  }
  if (plan != nullptr) {
    done(std::move(plan));
    return;
  }
  build([this, entry](absl::StatusOr<PlanPtr> built) { Built(entry, built); });
}

void PlanCache::Built(const EntryPtr& entry,
                      const absl::StatusOr<PlanPtr>& plan) {
  std::vector<Done> waiting;
  {
    MutexLock lock(mu_);
    entry->building = false;
    if (plan.ok()) entry->plan = *plan;
    waiting.swap(entry->waiting);
  }
  for (Done& done : waiting) done(plan);
}

PlanCache::PlanPtr PlanCache::Find(const StepSignature& signature) {
  MutexLock lock(mu_);
  auto it = entries_.find(signature);
  if (it == entries_.end()) return nullptr;
  ages_.splice(ages_.begin(), ages_, it->second->age);
  return it->second->plan;
}

std::vector<PlanCache::PlanPtr> PlanCache::TakeIf(
    absl::FunctionRef<bool(const PlanPtr&)> pred) {
  std::vector<PlanPtr> taken;
  MutexLock lock(mu_);
  for (auto it = entries_.begin(); it != entries_.end();) {
    const Entry& entry = *it->second;
    if (entry.plan == nullptr || !pred(entry.plan)) {
      ++it;
      continue;
    }
    taken.push_back(entry.plan);
    ages_.erase(entry.age);
    entries_.erase(it++);
  }
  return taken;
}

void PlanCache::Clear() {
  absl::flat_hash_map<StepSignature, EntryPtr> gone;
  MutexLock lock(mu_);
  gone.swap(entries_);
  ages_.clear();
}

}  // namespace sluice
