// A few differentiable ops whose gradients are easy to follow, for tests of the
// walk itself.
//
//   TestSource(shape, dtype)      a source
//   TestTimes(a, b)               element by element, of equal shapes
//   TestHalves(x)                 x/2, x/2 (two outputs)
//   TestRows(params, ids)         rows of params; the gradient is slices
//   TestFloor(x)                  not differentiable
//   TestOpaque(x)                 no gradient
//   TestBadCount(a, b)            a gradient with too few results
//   TestBadShape(x)               a gradient of another shape
//   TestWrongGradient(x)          x + 1, whose gradient says 2
#pragma once

#include <string_view>

#include "sluice/graph/scope.h"

namespace sluice {

// A source of this name, shape and type.
Output TestSource(const Scope& scope, std::string_view name,
                  PartialShape shape = PartialShape{2},
                  DType dtype = DType::kFloat);

}  // namespace sluice
