// Gradients of ops that broadcast: what came from one element that was repeated
// is summed up again. The nodes and their names are those of TensorFlow's
// Python.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sluice/graph/scope.h"

namespace sluice {

// The dimensions of the result that x (first) and y (second) were repeated
// along; BroadcastGradientArgs computes the same at run time. Both empty for
// equal shapes. The shapes must fit.
std::pair<std::vector<int32_t>, std::vector<int32_t>> BroadcastGradientAxes(
    std::span<const int64_t> x, std::span<const int64_t> y);

// How to get from the gradient of a broadcast result to that of one operand.
struct BroadcastSide {
  bool reduce = true;  // False: the gradient fits as it is.
  Output axes;         // What to sum over and the shape to give the sum, as
  Output shape;        // tensors; or, if "none", the constants below.
  std::vector<int32_t> static_axes;
  std::vector<int32_t> static_shape;
};
struct BroadcastSides {
  BroadcastSide x;
  BroadcastSide y;
};

// By nodes that compute it.
BroadcastSides MakeBroadcastSides(const Scope& scope, Output x, Output y);
// Uses static shapes where they are known, as add, sub, mul, pow and squared
// difference do.
BroadcastSides MakeStaticBroadcastSides(const Scope& scope, Output x, Output y,
                                        Output grad);

// grad summed over the side's axes and reshaped.
Output SumToSide(const Scope& scope, Output grad, const BroadcastSide& side);

// Whether all three have the same, fully known shape.
bool SameStaticShape(Output x, Output y, Output grad);

}  // namespace sluice
