#include "sluice/ops/math/broadcast_gradient.h"

#include <algorithm>

#include "sluice/ops/array/gradient_pieces.h"

namespace sluice {
namespace {
namespace broadcast_gradient {

std::vector<int32_t> Sizes(const PartialShape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

BroadcastSides Sides(Output x_shape, Output y_shape,
                     const std::vector<Output>& axes) {
  BroadcastSides sides;
  if (axes.size() != 2) return sides;  // The scope holds the error.
  sides.x.axes = axes[0];
  sides.y.axes = axes[1];
  sides.x.shape = x_shape;
  sides.y.shape = y_shape;
  return sides;
}

}  // namespace broadcast_gradient
}  // namespace

std::pair<std::vector<int32_t>, std::vector<int32_t>> BroadcastGradientAxes(
    std::span<const int64_t> x, std::span<const int64_t> y) {
  std::pair<std::vector<int32_t>, std::vector<int32_t>> axes;
  if (std::ranges::equal(x, y)) return axes;
  const size_t rank = std::max(x.size(), y.size());
  for (size_t i = 0; i < rank; ++i) {
    const auto size = [&](std::span<const int64_t> dims) {
      const size_t missing = rank - dims.size();
      return i < missing ? 1 : dims[i - missing];
    };
    // Where both are 1 either may be missing, so both are summed.
    const bool both = size(x) == 1 && size(y) == 1;
    if (both || size(x) < size(y)) axes.first.push_back(static_cast<int>(i));
    if (both || size(y) < size(x)) axes.second.push_back(static_cast<int>(i));
  }
  return axes;
}

BroadcastSides MakeBroadcastSides(const Scope& scope, Output x, Output y) {
  const Output x_shape = ShapeTensor(scope, x);
  const Output y_shape = ShapeTensor(scope, y);
  return broadcast_gradient::Sides(
      x_shape, y_shape,
      scope.AddMulti("BroadcastGradientArgs", {x_shape, y_shape}));
}

BroadcastSides MakeStaticBroadcastSides(const Scope& scope, Output x, Output y,
                                        Output grad) {
  if (!x || !y || !grad || !ShapeOf(x).FullyDefined() ||
      !ShapeOf(y).FullyDefined()) {
    const Output x_shape = scope.Add("Shape", {x});
    const Output y_shape = scope.Add("Shape", {y});
    return broadcast_gradient::Sides(
        x_shape, y_shape,
        scope.AddMulti("BroadcastGradientArgs", {x_shape, y_shape}));
  }
  BroadcastSides sides;
  sides.x.static_shape = broadcast_gradient::Sizes(ShapeOf(x));
  sides.y.static_shape = broadcast_gradient::Sizes(ShapeOf(y));
  sides.x.reduce = ShapeOf(x) != ShapeOf(grad);
  sides.y.reduce = ShapeOf(y) != ShapeOf(grad);
  // Python computes the axes with a node that it then leaves behind, once for
  // each pair of shapes in a graph.
  const std::string key =
      StrCat("broadcast ", ShapeOf(x).DebugString(), ShapeOf(y).DebugString());
  if (scope.graph().build().FirstTime(key)) {
    const Scope inner = scope.NameScope("BroadcastGradientArgs");
    const Output x_shape = inner.Named("s0").Ints(sides.x.static_shape);
    const Output y_shape = inner.Named("s1").Ints(sides.y.static_shape);
    AddAs(inner, "BroadcastGradientArgs", {x_shape, y_shape});
  }
  std::tie(sides.x.static_axes, sides.y.static_axes) =
      BroadcastGradientAxes(ShapeOf(x).dims(), ShapeOf(y).dims());
  return sides;
}

Output SumToSide(const Scope& scope, Output grad, const BroadcastSide& side) {
  if (!side.reduce) return grad;
  if (side.axes) {
    const Output sum = scope.Add("Sum", {grad, side.axes});
    return scope.Add("Reshape", {sum, side.shape});
  }
  const Scope sum_scope = scope.NameScope("Sum");
  const Output axes =
      sum_scope.Named("reduction_indices").Ints(side.static_axes);
  const Output sum = AddAs(sum_scope, "Sum", {grad, axes});
  const Scope reshape_scope = scope.NameScope("Reshape");
  const Output shape = reshape_scope.Named("shape").Ints(side.static_shape);
  return AddAs(reshape_scope, "Reshape", {sum, shape});
}

bool SameStaticShape(Output x, Output y, Output grad) {
  return x && y && grad && ShapeOf(x).FullyDefined() &&
         ShapeOf(x) == ShapeOf(y) && ShapeOf(x) == ShapeOf(grad);
}

}  // namespace sluice
