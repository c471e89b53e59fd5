// ControlFlowContext: a branch of a cond or the body of a while loop. Nodes
// built inside see values from outside through Switch or Enter nodes that the
// context adds. while_context.h has the loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/graph/frames.h"
#include "sluice/graph/graph.h"

namespace sluice {

struct BuildContext;
class WhileContext;

// Shared by the nodes built in it. Thread-compatible.
class ControlFlowContext
    : public std::enable_shared_from_this<ControlFlowContext> {
 public:
  using ValueKey = std::pair<Node*, int>;

  virtual ~ControlFlowContext() = default;

  const std::string& name() const { return name_; }
  const std::shared_ptr<ControlFlowContext>& outer() const { return outer_; }
  // The innermost loop around what is built here; may be this one. nullptr if
  // there is none.
  virtual WhileContext* loop() {
    return outer_ == nullptr ? nullptr : outer_->loop();
  }
  // What nodes without inputs wait for. nullptr before there is one.
  virtual Node* control_pivot() const = 0;

  // Takes in a node that was just added to the graph: re-wires its inputs and
  // adds the control edge that makes it run only when the context does.
  // `context` is what nodes are built under that have to be added for it; its
  // control_flow is where the program builds now, which may be another one.
  virtual absl::Status AddNode(Node* node, const BuildContext& context) = 0;
  // Lets `node` wait for nodes outside of the loop it runs in, which
  // TakeOutsideControls took from it.
  virtual absl::Status AddOutsideControls(Node* node,
                                          const std::vector<Node*>& controls,
                                          const BuildContext& context) = 0;
  // The value as it is seen inside.
  virtual absl::StatusOr<Output> AddValue(Output value,
                                          const BuildContext& context) = 0;

  // Removes from `controls`, and returns, what is not in the loop that nodes of
  // this context run in.
  std::vector<Node*> TakeOutsideControls(std::vector<Node*>* controls);

  // True for a value that was made inside or already brought in.
  bool Contains(Output value) const { return values_.contains(Key(value)); }
  void MarkInside(Output value) { values_.insert(Key(value)); }
  // For values that were brought in: how they are seen inside.
  void MarkBroughtIn(Output outside, Output inside) {
    external_[Key(outside)] = inside;
  }
  const auto& values() const { return values_; }
  const auto& external_values() const { return external_; }

 protected:
  static ValueKey Key(Output value) { return {value.node, value.index}; }

  ControlFlowContext(std::string name,
                     std::shared_ptr<ControlFlowContext> outer)
      : name_(std::move(name)), outer_(std::move(outer)) {}
  // A value that is contained, as it is seen inside.
  Output Seen(Output value) const;
  // Brings the inputs of a new node in.
  absl::Status AddInputs(Node* node, const BuildContext& context);

  const std::string name_;
  const std::shared_ptr<ControlFlowContext> outer_;
  absl::flat_hash_set<ValueKey> values_;
  // Outside value -> how it is seen inside.
  absl::flat_hash_map<ValueKey, Output> external_;
};

// Where a node's outputs are seen: those of an Exit are outside of its loop.
ControlFlowContext* OutputContext(const Node& node);
// The innermost loop a node is built in; nullptr if there is none.
WhileContext* LoopOf(const Node& node);

// An error unless the outputs of `input` may be used by `node`: what is in a
// loop leaves it by the loop's results only.
absl::Status CheckInputContext(const Node& node, const Node& input);

// A Switch (or RefSwitch) beside its data, whatever else `context` places.
absl::StatusOr<Node*> BuildSwitch(BuildContext context, Output data,
                                  Output pred);

// One branch of a cond: runs when `pred` equals `branch`.
class CondContext : public ControlFlowContext {
 public:
  // `pivot` is the identity of the Switch output that is live in this branch.
  static std::shared_ptr<CondContext> Create(
      std::string name, Output pred, Output pivot, int branch,
      std::shared_ptr<ControlFlowContext> outer);

  Output pred() const { return pred_; }
  Output pivot() const { return pivot_; }
  int branch() const { return branch_; }

  Node* control_pivot() const override { return pivot_.node; }
  absl::Status AddNode(Node* node, const BuildContext& context) override;
  // A branch drops them, as TensorFlow does.
  absl::Status AddOutsideControls(Node*, const std::vector<Node*>&,
                                  const BuildContext&) override {
    return absl::OkStatus();
  }
  absl::StatusOr<Output> AddValue(Output value,
                                  const BuildContext& context) override;
  // What the branch returns, as it is seen inside. A new Switch is an ordinary
  // node of the branch.
  absl::StatusOr<Output> AddResult(Output value, const BuildContext& context);

 private:
  CondContext(std::string name, Output pred, Output pivot, int branch,
              std::shared_ptr<ControlFlowContext> outer);

  const Output pred_;
  const Output pivot_;
  const int branch_;
};

}  // namespace sluice
