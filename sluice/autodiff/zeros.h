// Zeros and shapes as nodes, in the forms that TensorFlow's Python gives them:
// what is known while the graph is built becomes a Const.
#pragma once

#include "sluice/graph/scope.h"

namespace sluice {

// The shape of `tensor` as an int32 vector, named "Shape".
Output ShapeNode(const Scope& scope, Output tensor);

// Zeros of a shape that is computed, named "zeros".
Output Zeros(const Scope& scope, Output shape, DType type);
// A constant 0 in all of a known shape.
Output ConstZeros(const Scope& scope, const PartialShape& shape, DType type);
// Zeros of a known shape, named "zeros".
Output ZerosOfKnownShape(const Scope& scope, const PartialShape& shape,
                         DType type);

// What stands in for the gradient of output `index` of `op` if nothing depends
// on it. For the untaken output of a Switch in a cond the zeros are made only
// when that side runs.
Output ZerosForOutput(const Scope& scope, const Node& op, int index);

// The gradient of an x that no y depends on.
Output ZerosForUnconnected(const Scope& scope, Output x);

}  // namespace sluice
