// ControlFlowContext: a branch of a cond (or body of a while) under
// construction. Nodes built inside see values from outside through Switch (or
// Enter) nodes that the context adds.
#pragma once

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/graph/graph.h"

namespace sluice {

struct BuildContext;

// Shared by the nodes built in it. Thread-compatible.
class ControlFlowContext
    : public std::enable_shared_from_this<ControlFlowContext> {
 public:
  virtual ~ControlFlowContext() = default;

  const std::string& name() const { return name_; }
  const std::shared_ptr<ControlFlowContext>& outer() const { return outer_; }

  // Takes in a node that was just added to the graph: re-wires its inputs and
  // adds the control edge that makes it run only when the context does.
  virtual absl::Status AddNode(Node* node) = 0;
  // The value as it is seen inside. New nodes are named below `name_scope`.
  virtual absl::StatusOr<Output> AddValue(Output value,
                                          const std::string& name_scope) = 0;
  // True for a node or value that was made inside or already brought in.
  bool Contains(Output value) const { return values_.contains(Key(value)); }
  void MarkInside(Output value) { values_.insert(Key(value)); }

 protected:
  using ValueKey = std::pair<const Node*, int>;
  static ValueKey Key(Output value) { return {value.node, value.index}; }

  ControlFlowContext(std::string name,
                     std::shared_ptr<ControlFlowContext> outer)
      : name_(std::move(name)), outer_(std::move(outer)) {}

  const std::string name_;
  const std::shared_ptr<ControlFlowContext> outer_;
  absl::flat_hash_set<ValueKey> values_;
  // Outside value -> how it is seen inside.
  absl::flat_hash_map<ValueKey, Output> external_;
};

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
  const auto& external_values() const { return external_; }

  absl::Status AddNode(Node* node) override;
  absl::StatusOr<Output> AddValue(Output value,
                                  const std::string& name_scope) override;
  // What the branch returns, as it is seen inside. A new Switch is an ordinary
  // node of the branch, built under `context`.
  absl::StatusOr<Output> AddResult(Output value, const BuildContext& context);

 private:
  CondContext(std::string name, Output pred, Output pivot, int branch,
              std::shared_ptr<ControlFlowContext> outer);

  const Output pred_;
  const Output pivot_;
  const int branch_;
};

}  // namespace sluice
