// PlanCache keeps the plans of one session, so that only the first step of a
// signature pays for planning.
//
// A plan is immutable and shared, and stays valid when the graph grows (nodes
// are append-only). A running step holds its own reference, so eviction of the
// least recently used, or of those made for a task that was restarted, takes
// nothing away from it.
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "sluice/base/mutex.h"
#include "sluice/passes/step_graph.h"

namespace sluice {

class StepPlan;

// Thread-safe. Never blocks: a plan is built by calls that are answered later,
// and those who ask meanwhile wait for the same answer.
class PlanCache {
 public:
  using PlanPtr = std::shared_ptr<const StepPlan>;
  using Done = absl::AnyInvocable<void(absl::StatusOr<PlanPtr>)>;
  using Builder = absl::FunctionRef<void(Done)>;

  explicit PlanCache(size_t capacity) : capacity_(capacity) {}

  // Calls `done` with the plan for `signature`. If there is none, `build` makes
  // it; what it is given must be called once, while the cache lives. A failure
  // is reported to everyone who waits for it and is not remembered. One that
  // throws std::bad_alloc has failed with RESOURCE_EXHAUSTED; what it was given
  // may still be called, without effect.
  void FindOrBuild(const StepSignature& signature, Builder build, Done done);
  // Only what is there; null otherwise.
  PlanPtr Find(const StepSignature& signature);
  // Removes and returns the plans for which `pred` is true. It must not ask the
  // cache.
  std::vector<PlanPtr> TakeIf(absl::FunctionRef<bool(const PlanPtr&)> pred);
  void Clear();

 private:
  struct Entry {
    PlanPtr plan;
    bool building = false;
    int builds = 0;  // Begun; the last one gives the plan.
    std::vector<Done> waiting;
    std::list<StepSignature>::iterator age;
  };
  using EntryPtr = std::shared_ptr<Entry>;

  EntryPtr FindOrAdd(const StepSignature& signature, EntryPtr* evicted)
      SLUICE_REQUIRES(mu_);
  // What came of a build. False if that was known before.
  bool Built(const EntryPtr& entry, int build,
             const absl::StatusOr<PlanPtr>& plan);

  const size_t capacity_;
  Mutex mu_;
  absl::flat_hash_map<StepSignature, EntryPtr> entries_ SLUICE_GUARDED_BY(mu_);
  std::list<StepSignature> ages_ SLUICE_GUARDED_BY(mu_);  // Newest first.
};

}  // namespace sluice
