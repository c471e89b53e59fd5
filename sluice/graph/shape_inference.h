// ShapeContext: what a shape function sees of the node under construction, and
// the small shape functions that most ops share.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/graph/graph.h"

namespace sluice {

// Lives for one call of a shape function. Thread-compatible.
class ShapeContext {
 public:
  explicit ShapeContext(Node& node) : node_(node) {}

  const Node& node() const { return node_; }
  template <typename T>
  T attr(std::string_view name) const {
    return node_.attr<T>(name);
  }

  int num_inputs() const { return node_.num_inputs(); }
  int num_outputs() const { return node_.num_outputs(); }
  const PartialShape& input(int i) const;
  const HandleShape& input_handle(int i) const;
  // The value of input i if it is known while the graph is built.
  std::optional<Tensor> input_value(int i) const;
  // Input i, a vector of sizes, as a shape; unknown parts stay unknown. An
  // error if it cannot be a shape.
  absl::StatusOr<PartialShape> input_as_shape(int i) const;

  void set_output(int i, PartialShape shape);
  void set_output_handle(int i, HandleShape handle);

  // The input's shape, which must have this rank (or could have).
  absl::StatusOr<PartialShape> WithRank(int i, int rank) const;
  absl::StatusOr<PartialShape> WithRankAtLeast(int i, int rank) const;
  // Merges the shapes of inputs i and j.
  absl::StatusOr<PartialShape> Merge(int i, int j) const;

 private:
  Node& node_;
};

// The shape of a NumPy-style broadcast; an error when they do not fit.
absl::StatusOr<PartialShape> BroadcastShapes(const PartialShape& a,
                                             const PartialShape& b);

namespace shapes {
absl::Status Unknown(ShapeContext& c);  // Every output unknown.
absl::Status NoOutputs(ShapeContext& c);
absl::Status Scalar(ShapeContext& c);          // Every output a scalar.
absl::Status SameAsInput(ShapeContext& c);     // Output 0 like input 0.
absl::Status MergeAllInputs(ShapeContext& c);  // All inputs and output 0 alike.
absl::Status Broadcast(ShapeContext& c);       // Output 0 = broadcast(0, 1).
absl::Status FromShapeAttr(ShapeContext& c);   // Output 0 = attr "shape".
}  // namespace shapes

// Computes the value of an output whose inputs are all known, if it is cheap
// and has no side effects. Set once by kernel/, which knows how to run ops.
using ConstantEvaluator = std::function<std::optional<Tensor>(
    const Node& node, int output, std::span<const Tensor> inputs)>;
void SetConstantEvaluator(ConstantEvaluator evaluator);

// The value of `output` if it does not depend on a run: a Const, or something
// computed from constants and known shapes.
std::optional<Tensor> ConstantValue(Output output);
// A vector of sizes as a shape with unknown parts; nullopt if `output` cannot
// be one.
std::optional<PartialShape> ConstantValueAsShape(Output output);

}  // namespace sluice
