// Gradients of the reductions, node for node those of TensorFlow's Python.

#include <algorithm>

#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/math/python_math.h"
#include "sluice/ops/math/reduction.h"

namespace sluice {
namespace {
namespace reduction_gradient {

// The input's shape with 1 for each reduced dimension. `shape` and `axes` are
// int32 vectors (axes may be a scalar).
Output KeptShape(const Scope& scope, Output shape, Output axes) {
  const Output rank = SizeTensor(scope, shape);
  const Output from_front =
      python::Mod(scope, python::Add(scope, axes, rank), rank);
  const Output axes_shape = ShapeTensor(scope, from_front);
  const Output all = RangeOf(scope, 0, rank, 1);
  const Output ones = python::FillOne(scope, axes_shape);
  return scope.Add("DynamicStitch", {all, from_front, shape, ones}, {{"N", 2}});
}

Output KeptShapeOf(const Scope& scope, Output input_shape, Output axes) {
  return KeptShape(scope, input_shape,
                   python::Cast(scope, axes, DType::kInt32));
}

// How often to repeat each dimension; 0 / 0 is 0.
Output Repeats(const Scope& scope, Output shape, Output kept) {
  return python::FloorDiv(scope, shape,
                          python::Call(scope, "Maximum", kept, 1));
}

// The same of constants, which Python computes with nodes that it then leaves
// behind.
void AddStaticShapeNodes(const Scope& scope,
                         const std::vector<int32_t>& input_shape,
                         const std::vector<int32_t>& axes,
                         const std::vector<int32_t>& kept_shape) {
  const Output shape = scope.NameScope("Cast").Named("x").Ints(input_shape);
  const Output axes_constant = scope.NameScope("Cast").Named("x").Ints(axes);
  KeptShape(scope, shape, axes_constant);
  const Scope maximum = scope.NameScope("Maximum");
  const Output kept = maximum.Named("x").Ints(kept_shape);
  const Output one = maximum.Named("y").Scalar<int32_t>(1);
  const Output divisor = AddAs(maximum, "Maximum", {kept, one});
  const Scope division = scope.NameScope("floordiv");
  const Output dividend = division.Named("x").Ints(input_shape);
  AddAs(division, "FloorDiv", {dividend, divisor});
}

Output ReshapeTo(const Scope& scope, Output x, std::vector<int32_t> shape) {
  const Scope inner = scope.NameScope("Reshape");
  return AddAs(inner, "Reshape",
               {x, inner.Named("shape").Ints(std::move(shape))});
}

std::vector<int32_t> Sizes(const PartialShape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

bool NamesAllDimensions(const Tensor& axes, int rank) {
  if (axes.rank() != 1 || axes.size() != rank) return false;
  for (int i = 0; i < rank; ++i) {
    if (IndexAt(axes, i) != i) return false;
  }
  return true;
}

Output TileStatically(const Scope& scope, Output grad,
                      const PartialShape& input, const Tensor& axes) {
  const std::vector<int32_t> input_shape = Sizes(input);
  std::vector<int32_t> kept = input_shape;
  std::vector<int32_t> given;
  std::string key = StrCat("reduce ", input.DebugString());
  for (int64_t i = 0; i < axes.size(); ++i) {
    const int axis = AxisFromFront(IndexAt(axes, i), input.rank());
    if (axis >= 0) kept[axis] = 1;
    given.push_back(static_cast<int32_t>(IndexAt(axes, i)));
    StrAppend(&key, " ", given.back());
  }
  if (scope.graph().build().FirstTime(key)) {
    AddStaticShapeNodes(scope, input_shape, given, kept);
  }
  std::vector<int32_t> repeats = input_shape;
  for (size_t i = 0; i < repeats.size(); ++i) {
    repeats[i] /= std::max(kept[i], 1);
  }
  const Output reshaped = ReshapeTo(scope, grad, kept);
  const Scope tile = scope.NameScope("Tile");
  return AddAs(tile, "Tile",
               {reshaped, tile.Named("multiples").Ints(std::move(repeats))});
}

// grad, repeated over what was summed up.
Output SumGrad(const Scope& scope, const Node& op, Output grad) {
  const Output input = op.input(0);
  const PartialShape& shape = ShapeOf(input);
  const std::optional<Tensor> axes =
      shape.known_rank() ? ConstantValue(op.input(1)) : std::nullopt;
  if (axes) {
    if (NamesAllDimensions(*axes, shape.rank())) {
      const Output reshaped =
          ReshapeTo(scope, grad, std::vector<int32_t>(shape.rank(), 1));
      const Output multiples = shape.FullyDefined() ? scope.Ints(Sizes(shape))
                                                    : ShapeTensor(scope, input);
      return scope.Add("Tile", {reshaped, multiples});
    }
    if (shape.FullyDefined()) {
      return TileStatically(scope, grad, shape, *axes);
    }
  }
  const Output input_shape = ShapeTensor(scope, input);
  const Scope beside = scope.Colocate(input_shape.node);
  const Output kept = KeptShapeOf(beside, input_shape, op.input(1));
  const Output repeats = Repeats(beside, input_shape, kept);
  const Output reshaped = scope.Add("Reshape", {grad, kept});
  return scope.Add("Tile", {reshaped, repeats});
}

}  // namespace reduction_gradient
}  // namespace

Grads SumGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  return std::vector<Grad>{reduction_gradient::SumGrad(scope, op, dy[0]),
                           Grad()};
}

Grads MeanGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output sum = reduction_gradient::SumGrad(scope, op, dy[0]);
  if (!sum) return scope.status();
  const PartialShape& input = ShapeOf(op.input(0));
  const PartialShape& result = op.output_shape(0);
  const DType dtype = python::DTypeOfOutput(sum);
  Output factor;
  if (input.FullyDefined() && result.FullyDefined()) {
    const int64_t repeats =
        input.NumElements() / std::max<int64_t>(result.NumElements(), 1);
    factor = python::Constant(scope, static_cast<double>(repeats), dtype);
  } else {
    const Output input_shape = ShapeTensor(scope, op.input(0));
    const Output result_shape = ShapeTensor(scope, op.output(0));
    const Output input_size = python::ProdAll(scope, input_shape);
    const Output result_size = python::ProdAll(scope, result_shape);
    factor = reduction_gradient::Repeats(scope, input_size, result_size);
  }
  return std::vector<Grad>{
      python::TrueDiv(scope, sum, python::Cast(scope, factor, dtype)), Grad()};
}

// Split equally among all that are the extreme.
Grads ExtremeGradient(Scope& scope, const Node& op,
                      std::span<const Output> dy) {
  const Output input_shape = ShapeTensor(scope, op.input(0));
  const Output kept =
      reduction_gradient::KeptShapeOf(scope, input_shape, op.input(1));
  const Output y = scope.Add("Reshape", {op.output(0), kept});
  const Output grad = scope.Add("Reshape", {dy[0], kept});
  const Output chosen = python::Cast(
      scope, scope.Add("Equal", {y, op.input(0)}), python::DTypeOfOutput(grad));
  const Output sum = scope.Add("Sum", {chosen, op.input(1)});
  const Output count = scope.Add("Reshape", {sum, kept});
  const Output share = python::TrueDiv(scope, chosen, count);
  return std::vector<Grad>{python::Mul(scope, share, grad), Grad()};
}

// The product of all others: of those before times those after, so that zeros
// do no harm.
Grads ProdGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output x = op.input(0);
  const Output shape = ShapeTensor(scope, x);
  const Output axes = Flatten(scope, op.input(1));
  const Output kept =
      reduction_gradient::KeptShapeOf(scope, shape, op.input(1));
  const Output repeats = reduction_gradient::Repeats(scope, shape, kept);
  const Output reshaped = scope.Add("Reshape", {dy[0], kept});
  const Output grad = scope.Add("Tile", {reshaped, repeats});

  // The reduced dimensions go first and become one.
  const Scope cpu = scope.Device("/cpu:0");
  const Output rank = RankTensor(cpu, x);
  const Output from_front =
      python::Mod(cpu, python::Add(cpu, axes, rank), rank);
  const Output reduced = python::Cast(cpu, from_front, DType::kInt32);
  const Output all = RangeOf(cpu, 0, rank, 1);
  const Output others = cpu.Add("ListDiff", {all, reduced});
  const Output order = ConcatAt(cpu, {reduced, others}, 0);
  const Output reduced_size =
      python::ProdAll(cpu, GatherRows(cpu, shape, reduced));
  const Output other_size =
      python::ProdAll(cpu, GatherRows(cpu, shape, others));

  const Output turned = scope.Named("transpose").Add("Transpose", {x, order});
  const Output turned_shape = ShapeTensor(scope, turned);
  const Scope flat_scope = scope.NameScope("Reshape");
  const Output flat_shape = flat_scope.Named("shape").Add(
      "Pack", {reduced_size, other_size}, {{"axis", 0}});
  const Output flat = AddAs(flat_scope, "Reshape", {turned, flat_shape});
  const auto running = [&](bool reverse) {
    const Scope inner = scope.NameScope("Cumprod");
    return AddAs(inner, "Cumprod",
                 {flat, inner.Named("axis").Scalar<int32_t>(0)},
                 {{"exclusive", true}, {"reverse", reverse}});
  };
  const Output before = running(false);
  const Output after = running(true);
  const Output product =
      scope.Add("Reshape", {python::Mul(scope, before, after), turned_shape});
  const Output back = scope.Add("InvertPermutation", {order});
  const Output result = python::Mul(
      scope, grad, scope.Named("transpose").Add("Transpose", {product, back}));
  return std::vector<Grad>{scope.Add("Reshape", {result, shape}), Grad()};
}

}  // namespace sluice
