// Zeros and shapes as nodes, in the forms that TensorFlow's Python gives them:
// what is known while the graph is built becomes a Const.
#pragma once

#include "sluice/graph/scope.h"

namespace sluice {

// The shape of `tensor` as an int32 vector, named "Shape".
Output ShapeNode(const Scope& scope, Output tensor);

// What stands in for the gradient of output `index` of `op` if nothing depends
// on it. For the untaken output of a Switch in a cond the zeros are made only
// when that side runs.
Output ZerosForOutput(const Scope& scope, const Node& op, int index);

// The gradient of an x that no y depends on.
Output ZerosForUnconnected(const Scope& scope, Output x);

}  // namespace sluice
