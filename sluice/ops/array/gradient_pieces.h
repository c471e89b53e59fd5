// The small graphs that Python's array functions make (tf.shape, x[1:],
// tf.concat, …), node for node and name for name, so that gradients written
// with them look like those of TensorFlow's Python front end.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sluice/graph/scope.h"

namespace sluice {

// Constant arguments of an op stand in the name scope of the op itself:
//   Scope inner = scope.NameScope("mul");
//   AddAs(inner, "Mul", {x, inner.Named("y").Scalar<int32_t>(2)});
// makes mul/y and mul. AddAs adds the node that `inner` is named after.
Node* AddNodeAs(const Scope& inner, std::string_view op,
                const std::vector<Output>& inputs, AttrMap attrs = {});
Output AddAs(const Scope& inner, std::string_view op,
             const std::vector<Output>& inputs, AttrMap attrs = {});

// What x's static shape says is a Const, otherwise a Shape, Size or Rank node.
Output ShapeTensor(const Scope& scope, Output x,
                   DType out_type = DType::kInt32);
Output SizeTensor(const Scope& scope, Output x);
Output RankTensor(const Scope& scope, Output x);
// A Const or Fill for a static shape, otherwise a ZerosLike node.
Output ZerosLikeTensor(const Scope& scope, Output x);

// tf.reshape(x, [-1]).
Output Flatten(const Scope& scope, Output x);
// tf.stack([a, value]) of a scalar and a number.
Output StackWithInt(const Scope& scope, Output a, int32_t value);
// tf.concat(values, axis).
Output ConcatAt(const Scope& scope, std::vector<Output> values, int32_t axis);
// tf.gather(params, indices).
Output GatherRows(const Scope& scope, Output params, Output indices);
// tf.expand_dims(x, 0).
Output ExpandFront(const Scope& scope, Output x);
// tf.range(start, limit, delta).
Output RangeOf(const Scope& scope, int32_t start, Output limit, int32_t delta);
// x + value for int32.
Output AddInt(const Scope& scope, Output x, int32_t value);
// tf.reduce_sum(x) over all dimensions.
Output SumAll(const Scope& scope, Output x);

// A bound of a slice: missing, a number, or a scalar tensor.
struct SliceBound {
  SliceBound() = default;
  SliceBound(int32_t n) : number(n) {}  // NOLINT: written as in Python.
  SliceBound(Output t) : tensor(t) {}   // NOLINT
  std::optional<int32_t> number;
  Output tensor;
};
// x[begin:end].
Output SliceVector(const Scope& scope, Output x, SliceBound begin,
                   SliceBound end);
// x[at].
Output ElementOf(const Scope& scope, Output x, int32_t at);
Output ElementOf(const Scope& scope, Output x, Output at);

}  // namespace sluice
