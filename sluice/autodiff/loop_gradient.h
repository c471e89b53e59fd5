// The backward loops of while loops. For every forward loop that gradients pass
// through there is a loop that runs as many times, from the last iteration to
// the first. What it needs of the forward loop is pushed on stacks there and
// popped here. Names and structure are TensorFlow 1.15's.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sluice/graph/scope.h"
#include "sluice/graph/while_context.h"

namespace sluice {

// The backward loop of one forward loop. Made for one AddGradients.
// Thread-compatible.
class LoopGradient : public LoopHistory {
 public:
  // Adds a counter of iterations to the forward loop and the backward loop that
  // counts down from it. `outer` is the one of the loop around, if gradients
  // pass through that.
  static absl::StatusOr<std::unique_ptr<LoopGradient>> Create(
      const Scope& scope, std::shared_ptr<WhileContext> forward,
      LoopGradient* outer);
  ~LoopGradient() override;

  WhileContext* forward() const override { return forward_.get(); }
  const std::shared_ptr<WhileContext>& backward() const { return backward_; }
  LoopGradient* outer() const { return outer_; }

  absl::StatusOr<Output> PastValue(Output value,
                                   const BuildContext& context) override;
  // The predicate that a cond of the forward loop had.
  absl::StatusOr<Output> PastPredicate(Output pred,
                                       const BuildContext& context);
  // nullptr-output if PastPredicate or PastValue were not asked for it.
  Output KnownPast(Output value) const;

  // Pushes `value` in every iteration; returns the stack. `dead_branch`: it is
  // a value of the branch of a cond that is not taken.
  absl::StatusOr<Output> Push(Output value, const BuildContext& context,
                              bool dead_branch = false);
  // Pops what Push(value) pushed, in the backward loop.
  absl::StatusOr<Output> Pop(Output stack, Output value,
                             const BuildContext& context,
                             bool dead_branch = false);
  // The sum over all iterations of a gradient for what the forward loop's
  // constant `enter` brings in.
  absl::StatusOr<Grad> SumOverIterations(const Scope& scope, const Node& enter,
                                         const Grad& grad);

  // The loop's results, without counters.
  const std::vector<Output>& exits() const { return exits_; }
  // Those still to be visited, and those that wait until all were seen.
  int pending_exits = 0;
  std::vector<Output> unused_exits;
  std::vector<Output> deferred_exits;
  // Per Switch of a loop variable the Merge of its gradients, in the order of
  // the first visit.
  std::vector<std::pair<const Node*, Grad>> switch_merges;

 private:
  LoopGradient(std::shared_ptr<ControlFlowContext> around,
               std::shared_ptr<WhileContext> forward, LoopGradient* outer);

  absl::StatusOr<Output> AddForwardCounter(const Scope& scope);
  absl::Status AddBackwardCounter(const Scope& scope, Output count);
  // Where the backward loop starts from.
  Scope Outside(const Scope& scope) const;
  absl::StatusOr<Output> FirstSum(const Scope& scope, Output value,
                                  Output grad);
  absl::StatusOr<Grad> SumSlices(const Scope& scope, const Node& enter,
                                 const Grad& grad);
  // A node that waits for the pushes (or pops) of an iteration.
  absl::StatusOr<Node*> ForwardSync(const BuildContext& context);
  absl::StatusOr<Node*> BackwardSync(const BuildContext& context);

  // Where the program asked for gradients.
  const std::shared_ptr<ControlFlowContext> around_;
  const std::shared_ptr<WhileContext> forward_;
  LoopGradient* const outer_;
  const std::vector<Output> exits_;
  std::shared_ptr<WhileContext> backward_;
  Node* forward_next_ = nullptr;  // NextIteration of the counters.
  Node* backward_next_ = nullptr;
  Node* forward_sync_ = nullptr;
  Node* backward_sync_ = nullptr;
  std::map<std::pair<int, int>, Output> past_;  // By node id and index.
};

// `scope` with another control-flow context.
Scope InContext(const Scope& scope, std::shared_ptr<ControlFlowContext> flow);

// Nodes of loop variables in a loop of gradients. `scope` is inside of it.
absl::StatusOr<Output> AddEnter(const Scope& scope, WhileContext& loop,
                                Output start, const PartialShape& shape,
                                std::string_view name);
// Makes `next` the value that the Merge has in the next iteration.
absl::StatusOr<Node*> AddNextIteration(const Scope& scope, Output merge,
                                       Output next, std::string_view name = "");
absl::StatusOr<Output> AddExit(const Scope& scope, WhileContext& loop,
                               Output value, std::string_view name);

}  // namespace sluice
