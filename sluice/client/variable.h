// Variable: a tensor that lives between steps, as a program sees it. Its nodes
// are named as TensorFlow's Python names them, so that checkpoints and other
// workers find it: `w`, `w/Assign`, `w/read`.
//
//   Variable w(scope.Named("w"), GlorotUniformInitializer({784, 10}));
//   Variable b(scope.Named("b"), ZerosInitializer({10}));
//   Variable scale(scope.Named("scale"), 1.0f);
//   Output y = (ops::MatMul(scope, x, w) + b) * scale;
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sluice/client/graph_keys.h"
#include "sluice/client/input.h"
#include "sluice/graph/scope.h"

namespace sluice {

// Builds the first value of a variable; what it adds is named
// `<variable>/Initializer/…` and runs where the variable lives.
using Initializer = std::function<Output(const Scope&)>;

// Where a part lies in the variable that it is a part of. Checkpoints have the
// whole one under its name, however it is cut.
struct SaveSlice {
  std::string full_name;
  Shape full_shape;
  // Of the part's first element, for each dimension.
  std::vector<int64_t> offset;
};

struct VariableOptions {
  // Optimizers update it unless told otherwise.
  bool trainable = true;
  // A resource variable (VarHandleOp) instead of a ref one (VariableV2).
  bool resource = false;
  // False: the value may change its shape.
  bool validate_shape = true;
  // Besides kTrainableVariables, which `trainable` is for.
  std::vector<std::string> collections = {keys::kGlobalVariables};
  // The part of a larger variable that it is, if it is one.
  std::optional<SaveSlice> slice = std::nullopt;
};

// A value; the graph owns the nodes. Thread-compatible.
class Variable {
 public:
  Variable() = default;  // None.
  // `scope` gives the name (Named; "Variable" otherwise). An error goes to the
  // scope and leaves a variable that is none.
  Variable(const Scope& scope, Output initial_value,
           const VariableOptions& options = {});
  Variable(const Scope& scope, Tensor initial_value,
           const VariableOptions& options = {});
  template <typename T>
    requires std::is_arithmetic_v<T>
  Variable(const Scope& scope, T initial_value,
           const VariableOptions& options = {})
      : Variable(scope, Tensor::Scalar(initial_value), options) {}
  Variable(const Scope& scope, const Initializer& initial_value,
           const VariableOptions& options = {});

  explicit operator bool() const { return static_cast<bool>(ref_); }
  bool operator==(const Variable& other) const { return ref_ == other.ref_; }

  // "w": the name of its node.
  const std::string& name() const { return ref_.node->name(); }
  Graph& graph() const { return ref_.node->graph(); }
  Node* node() const { return ref_.node; }
  const std::string& device() const { return ref_.node->device(); }
  DType dtype() const;
  PartialShape shape() const;
  bool trainable() const { return trainable_; }
  bool resource() const;

  // The part that it is of a larger variable, or null.
  const SaveSlice* slice() const { return slice_.get(); }
  // Its tensor in a checkpoint, and which slice of that: "table" and "100 20
  // 50,50:0,20", or its own name and "" if it is no part.
  const std::string& saved_name() const;
  std::string saved_slice() const;

  // The reference, or the handle: what updates and gradients take.
  Output ref() const { return ref_; }
  // Its value when a step reads it.
  Output value() const { return value_; }
  // NOLINTNEXTLINE: it stands for its value.
  operator Output() const { return value_; }
  Output initial_value() const { return initial_value_; }
  // Gives it its first value.
  Node* initializer() const { return initializer_; }

  // Updates. The output is the new value.
  Output Assign(const Scope& scope, const Input& value) const;
  Output AssignAdd(const Scope& scope, const Input& delta) const;
  Output AssignSub(const Scope& scope, const Input& delta) const;

  // From nodes that exist already, as a meta graph names them.
  struct Nodes {
    Output ref, value, initial_value;
    Node* initializer = nullptr;
    bool trainable = true;
    std::optional<SaveSlice> slice = std::nullopt;
  };
  explicit Variable(const Nodes& nodes);

 private:
  void Build(const Scope& scope, const Initializer& initial_value,
             bool in_initializer_scope, const VariableOptions& options);
  void BuildRef(const Scope& scope, const VariableOptions& options);
  void BuildResource(const Scope& scope);
  Output Update(const Scope& scope, std::string op, const Input& value) const;

  Output ref_;
  Output value_;
  Output initial_value_;
  Node* initializer_ = nullptr;
  bool trainable_ = true;
  // Shared by copies; most variables have none.
  std::shared_ptr<const SaveSlice> slice_;
};

}  // namespace sluice
