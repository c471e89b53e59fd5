// AddGradients: adds to a graph the nodes that compute the gradients of some
// tensors with respect to others. Every op brings its own gradient (SLUICE_OP,
// graph/op_registry.h); here is the walk from ys to xs, which sums what reaches
// a tensor on several ways. Names, order and number of the new nodes are those
// of TensorFlow 1.15 (tests/golden/graphs).
//
// Errors, and what Python raises for them:
//   kNotFound                                  LookupError
//   kInvalidArgument with kPythonErrorPayload  what the payload says: TypeError
//   kInvalidArgument                           ValueError
//   what the callback returned                 comes out as it is
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/scope.h"

namespace sluice {

// How the gradients that reach one tensor are summed.
enum class AggregationMethod {
  kAddN = 0,         // One AddN per device, then one over these.
  kTree = 1,         // AddNs of two, one after the other.
  kAccumulateN = 2,  // AccumulateNV2 if shapes are known, else as kTree.
};

// A gradient from outside of the op registry, asked before the op's own one:
// nullopt means that it has none for `op`. `dy` has an entry per output, the
// result one per input. While it runs, the graph's current context is that of
// `scope`, so what it builds lands in `<op>_grad/` either way.
using GradientCallback = std::function<std::optional<Grads>(
    const Node& op, std::span<const Grad> dy, Scope& scope)>;

struct GradientOptions {
  // The name scope of all new nodes; made unique.
  std::string name = "gradients";
  // Place the gradient of an op beside the op.
  bool colocate_with_ops = false;
  // Let the gradients of an op's inputs be used only when all are ready.
  bool gate = false;
  AggregationMethod aggregation = AggregationMethod::kAddN;
  // Tensors through which nothing flows back.
  std::vector<Output> stop_gradients;
  // Zeros instead of none for an x that no y depends on.
  bool zero_for_unconnected = false;
  GradientCallback callback;
  // Ops that the callback's owner declared to have no gradient. Besides those
  // of the registry; may be empty.
  std::function<bool(const Node& op)> not_differentiable;
};

// The sum over ys of dy/dx for every x; none where no y depends on x.
// `grad_ys` is empty, or has one entry per y: the gradient to start from, where
// none means ones. A ref variable stands in `xs` as its ref output, a resource
// variable as its handle.
absl::StatusOr<std::vector<Grad>> AddGradients(
    const Scope& scope, std::span<const Output> ys, std::span<const Output> xs,
    std::span<const Grad> grad_ys = {}, const GradientOptions& options = {});

}  // namespace sluice
