// WhileContext: the body of a while loop, and its frame while it runs.
#pragma once

#include "sluice/graph/control_flow.h"

namespace sluice {

// What a backward loop knows of its forward loop (autodiff implements it).
class LoopHistory {
 public:
  virtual ~LoopHistory() = default;
  virtual WhileContext* forward() const = 0;
  // The value that `value` of the forward loop had in the iteration which the
  // backward loop goes back through.
  virtual absl::StatusOr<Output> PastValue(Output value,
                                           const BuildContext& context) = 0;
};

struct WhileOptions {
  int parallel_iterations = 10;
  bool back_prop = true;     // Whether gradients flow through.
  bool swap_memory = false;  // For the stacks of gradients; a hint.
  Output maximum_iterations = {};
};

// Thread-compatible.
class WhileContext : public ControlFlowContext {
 public:
  // The name is that of the frame, unique in the graph.
  static std::shared_ptr<WhileContext> Create(
      std::string name, const WhileOptions& options,
      std::shared_ptr<ControlFlowContext> outer);

  const WhileOptions& options() const { return options_; }
  WhileContext* loop() override { return this; }
  Node* control_pivot() const override {
    return pivot_for_body_ ? pivot_for_body_.node : pivot_for_pred_.node;
  }

  absl::Status AddNode(Node* node, const BuildContext& context) override;
  absl::Status AddOutsideControls(Node* node,
                                  const std::vector<Node*>& controls,
                                  const BuildContext& context) override;
  // A value from outside is the same in all iterations.
  absl::StatusOr<Output> AddValue(Output value,
                                  const BuildContext& context) override;

  // The Enter of a loop variable. Its control inputs are those of `context`
  // that stand outside of the loop, too.
  absl::StatusOr<Output> EnterVariable(Output value, std::string_view name,
                                       const BuildContext& context);
  // The Exit of a variable, seen by the context around the loop.
  void MarkExit(Output exit);

  // The condition; what nodes of the condition, and of the body, wait for.
  Output pivot() const { return pivot_; }
  Output pivot_for_pred() const { return pivot_for_pred_; }
  Output pivot_for_body() const { return pivot_for_body_; }
  void set_pivot(Output pivot) { pivot_ = pivot; }
  void set_pivot_for_pred(Output pivot) { pivot_for_pred_ = pivot; }
  void set_pivot_for_body(Output pivot) { pivot_for_body_ = pivot; }

  std::vector<Output>& enters() { return enters_; }
  const std::vector<Output>& enters() const { return enters_; }
  const std::vector<Output>& exits() const { return exits_; }
  // Forgets which values are inside, but for these.
  void ResetValues(const std::vector<Output>& values);

  // Of a backward loop while gradients are built; nullptr otherwise.
  LoopHistory* history() const { return history_; }
  void set_history(LoopHistory* history) {
    is_backward_ |= history != nullptr;
    history_ = history;
  }
  bool is_backward() const { return is_backward_; }

 private:
  WhileContext(std::string name, const WhileOptions& options,
               std::shared_ptr<ControlFlowContext> outer)
      : ControlFlowContext(std::move(name), std::move(outer)),
        options_(options) {}

  absl::StatusOr<Node*> BuildEnter(Output value, std::string_view name,
                                   bool is_constant,
                                   const BuildContext& context);
  // Gives an Enter, which is built outside of everything, its place.
  void AdoptEnter(Node* enter, const BuildContext& context);

  const WhileOptions options_;
  Output pivot_;
  Output pivot_for_pred_;
  Output pivot_for_body_;
  std::vector<Output> enters_;
  std::vector<Output> exits_;
  LoopHistory* history_ = nullptr;
  bool is_backward_ = false;
};

// Whether `node` brings a value in that is the same in all iterations.
bool IsConstantEnter(const Node& node);

// The context that a new node belongs to when `context` is the current one. A
// backward loop needs no more of a forward value than its shape if that is all
// it asks for, so shapes are taken in the forward loop.
std::shared_ptr<ControlFlowContext> ContextOfNewNode(
    const BuildContext& context, std::string_view op,
    const std::vector<Output>& inputs);

}  // namespace sluice
