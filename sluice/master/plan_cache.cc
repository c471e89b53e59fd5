#include "sluice/master/plan_cache.h"

#include <new>
#include <utility>

#include "sluice/base/status.h"

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
  int number = 0;
  {
    MutexLock lock(mu_);
    entry = FindOrAdd(signature, &evicted);
    plan = entry->plan;
    if (plan == nullptr) {
      entry->waiting.push_back(std::exchange(done, nullptr));
      if (std::exchange(entry->building, true)) return;
      number = ++entry->builds;
    }
  }
  if (plan != nullptr) {
    done(std::move(plan));
    return;
  }
  try {
    build([this, entry, number](absl::StatusOr<PlanPtr> built) {
      Built(entry, number, built);
    });
  } catch (const std::bad_alloc&) {
    // If the outcome was known, one who waited for it ran out of memory: that
    // is for the caller to tell.
    if (!Built(entry, number,
               ResourceExhausted("Out of memory while planning a step"))) {
      throw;
    }
  }
}

bool PlanCache::Built(const EntryPtr& entry, int build,
                      const absl::StatusOr<PlanPtr>& plan) {
  std::vector<Done> waiting;
  {
    MutexLock lock(mu_);
    if (!entry->building || entry->builds != build) return false;
    entry->building = false;
    if (plan.ok()) entry->plan = *plan;
    waiting.swap(entry->waiting);
  }
  for (Done& done : waiting) done(plan);
  return true;
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
