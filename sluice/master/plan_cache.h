// PlanCache keeps the plans of one session, so that only the first step of a
// signature pays for planning.
//
// A plan is immutable and shared, and stays valid when the graph grows (nodes
// are append-only). A running step holds its own reference, so eviction of the
// least recently used takes nothing away from it.
#pragma once

#include <list>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "sluice/base/mutex.h"
#include "sluice/passes/step_graph.h"

namespace sluice {

class StepPlan;

// Thread-safe. Plans are built outside the lock; if two threads miss on the
// same signature, one builds and the other waits for the result.
class PlanCache {
 public:
  using PlanPtr = std::shared_ptr<const StepPlan>;
  using Builder = absl::FunctionRef<absl::StatusOr<PlanPtr>()>;

  explicit PlanCache(size_t capacity) : capacity_(capacity) {}

  // Returns the plan for `signature`, calling `build` if there is none. A build
  // that fails is reported to everyone who waits for it and is not remembered.
  absl::StatusOr<PlanPtr> FindOrBuild(const StepSignature& signature,
                                      Builder build);
  // Only what is there; null otherwise.
  PlanPtr Find(const StepSignature& signature);
  void Clear();

 private:
  struct Entry {
    Mutex mu;  // Held while the plan is built.
    PlanPtr plan SLUICE_GUARDED_BY(mu);
    std::list<StepSignature>::iterator age;
  };

  const size_t capacity_;
  Mutex mu_;
  absl::flat_hash_map<StepSignature, std::shared_ptr<Entry>> entries_
      SLUICE_GUARDED_BY(mu_);
  std::list<StepSignature> ages_ SLUICE_GUARDED_BY(mu_);  // Newest first.
};

}  // namespace sluice
