// LoopGradients: the backward loops of one AddGradients, and in which of them
// the gradient of an op is built.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "sluice/autodiff/between.h"
#include "sluice/autodiff/loop_gradient.h"

namespace sluice {

// Whether `node` is the Switch of a loop variable, not of a cond in the loop.
bool IsLoopSwitch(const Node& node);

// Thread-compatible.
class LoopGradients {
 public:
  // Makes a backward loop for every loop with a result between ys and xs, and
  // adds its other results to `between`. `scope_of` gives the scope that an
  // op's gradient is built under.
  absl::Status AddLoops(const std::function<Scope(Node*)>& scope_of,
                        BetweenOps* between);

  bool empty() const { return loops_.empty(); }
  // The one whose forward loop `op` is in; nullptr if there is none. The
  // gradients that come into an Exit are summed outside of its loop.
  LoopGradient* Of(const Node& op) const;
  LoopGradient* OfOutput(const Node& op) const;

  // The results that no y depends on, of loops that no other result keeps
  // waiting. Called once, before the first op is visited.
  std::vector<Output> UnusedExits(const std::vector<bool>& queued,
                                  const BetweenOps& between);

  // Zeros that a result starts with which no y depends on.
  absl::StatusOr<Output> ZerosForExit(const Scope& scope, Output exit) const;
  // ZerosForOutput, also for ops in loops; none for a loop's Switch.
  absl::StatusOr<Output> ZerosForOutput(const Scope& scope, const Node& op,
                                        int index) const;

  // Gives the variables zeros whose value in one iteration does not depend on
  // that in the one before.
  absl::Status CloseOpenMerges(const Scope& scope);

 private:
  LoopGradient* Find(const WhileContext* forward) const;
  absl::StatusOr<Output> ZerosInLoop(const Scope& scope, LoopGradient& loop,
                                     const Node& op, int index) const;

  std::vector<std::unique_ptr<LoopGradient>> loops_;
};

}  // namespace sluice
