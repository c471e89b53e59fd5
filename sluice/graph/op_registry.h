// The registry of ops. An op stands in one file under ops/: its definition,
// shape function and gradient are given to SLUICE_OP, its kernel to
// SLUICE_KERNEL (kernel/kernel_registry.h).
//
// Start-up only stores pointers to text; a definition is parsed when first
// asked for.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/base/status.h"
#include "sluice/graph/op_def.h"

namespace sluice {

class Node;
class Scope;
class ShapeContext;

// One output of a node; what other nodes take as input. A null node is "none".
struct Output {
  Node* node = nullptr;
  int index = 0;
  explicit operator bool() const { return node != nullptr; }
  bool operator==(const Output&) const = default;
};

// The gradient of one tensor: nothing, a dense tensor, or rows of one
// (IndexedSlices: `values[i]` belongs to row `indices[i]`, rows may repeat and
// then add up).
struct Grad {
  Output values;
  Output indices;      // Set only for slices.
  Output dense_shape;  // May be missing for slices.

  Grad() = default;
  Grad(Output dense) : values(dense) {}  // NOLINT: a dense gradient is one.
  static Grad Slices(Output values, Output indices, Output dense_shape) {
    Grad grad(values);
    grad.indices = indices;
    grad.dense_shape = dense_shape;
    return grad;
  }
  explicit operator bool() const { return static_cast<bool>(values); }
  bool is_slices() const { return static_cast<bool>(indices); }
};
using Grads = absl::StatusOr<std::vector<Grad>>;

using ShapeFn = absl::Status (*)(ShapeContext&);
// Returns one gradient per input of `op`. `dy[i]` belongs to output i and is
// "none" where nothing depends on it (only for outputs that have no gradient by
// type; others arrive as zeros).
using GradientFn = Grads (*)(Scope& scope, const Node& op,
                             std::span<const Output> dy);
// For the few ops that pass slices on as they are; others get them densified.
using SlicesGradientFn = Grads (*)(Scope& scope, const Node& op,
                                   std::span<const Grad> dy);

struct OpInfo {
  OpDef def;
  // The source file that SLUICE_OP stands in; empty for ops made at run time.
  const char* file = "";
  ShapeFn shape = nullptr;  // nullptr: every output shape is unknown.
  GradientFn gradient = nullptr;
  SlicesGradientFn slices_gradient = nullptr;
  bool not_differentiable = false;
};

// What SLUICE_OP collects. All text must live for ever (string literals).
struct OpText {
  const char* name = nullptr;
  std::vector<const char*> inputs, outputs, attrs;
  OpInfo info;
};

// Thread-safe. Entries are never removed, so pointers stay valid.
class OpRegistry {
 public:
  static OpRegistry& Global();

  // nullptr if there is no such op.
  const OpInfo* Find(std::string_view name);
  // Find, with TensorFlow's words when there is none.
  absl::StatusOr<const OpInfo*> Lookup(std::string_view name);
  // All names, sorted.
  std::vector<std::string> Names();

  void Add(OpText text);
  // A definition made at run time (custom ops). Refuses a second one that
  // differs.
  absl::Status AddDefinition(OpDef def);

 private:
  struct State;
  State& state();
};

class OpBuilder {
 public:
  OpBuilder(const char* name, const char* file) {
    text_.name = name;
    text_.info.file = file;
  }
  OpBuilder&& Input(const char* t) && {
    text_.inputs.push_back(t);
    return std::move(*this);
  }
  OpBuilder&& Output(const char* t) && {
    text_.outputs.push_back(t);
    return std::move(*this);
  }
  OpBuilder&& Attr(const char* t) && {
    text_.attrs.push_back(t);
    return std::move(*this);
  }
  OpBuilder&& Stateful() && {
    text_.info.def.stateful = true;
    return std::move(*this);
  }
  OpBuilder&& Aggregate() && {
    text_.info.def.aggregate = true;
    return std::move(*this);
  }
  OpBuilder&& Commutative() && {
    text_.info.def.commutative = true;
    return std::move(*this);
  }
  OpBuilder&& AllowsUninitialized() && {
    text_.info.def.allows_uninitialized_input = true;
    return std::move(*this);
  }
  OpBuilder&& Shape(ShapeFn fn) && {
    text_.info.shape = fn;
    return std::move(*this);
  }
  OpBuilder&& Gradient(GradientFn fn) && {
    text_.info.gradient = fn;
    return std::move(*this);
  }
  OpBuilder&& SlicesGradient(SlicesGradientFn fn) && {
    text_.info.slices_gradient = fn;
    return std::move(*this);
  }
  // Every input's gradient is "none".
  OpBuilder&& NotDifferentiable() && {
    text_.info.not_differentiable = true;
    return std::move(*this);
  }

 private:
  friend struct OpRegistration;
  OpText text_;
};

struct OpRegistration {
  OpRegistration(OpBuilder&& op) {  // NOLINT: SLUICE_OP reads better.
    OpRegistry::Global().Add(std::move(op.text_));
  }
};

// SLUICE_OP(Name).Input("x: T").Output("y: T").Attr("T: {float}").Shape(…);
#define SLUICE_OP(NAME)                                                 \
  [[maybe_unused]] static const ::sluice::OpRegistration SLUICE_CONCAT( \
      sluice_op_, __COUNTER__) = ::sluice::OpBuilder(#NAME, __FILE__)

}  // namespace sluice
