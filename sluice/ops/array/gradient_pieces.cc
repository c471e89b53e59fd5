#include "sluice/ops/array/gradient_pieces.h"

#include <numeric>

namespace sluice {
namespace {

// Python writes constants below this size into the graph, and a Fill above.
constexpr int64_t kSmallConstant = 1000;

bool FitsInt32(const PartialShape& shape) {
  for (int64_t dim : shape.dims()) {
    if (dim > INT32_MAX) return false;
  }
  return true;
}

Output BoundVector(const Scope& scope, const SliceBound& bound) {
  if (bound.tensor) {
    return scope.Named("stack").Add("Pack", {bound.tensor}, {{"axis", 0}});
  }
  return scope.Named("stack").Ints({bound.number.value_or(0)});
}

Output StridedSliceOf(const Scope& scope, Output x, const SliceBound& begin,
                      const SliceBound& end, bool shrink) {
  const auto missing = [](const SliceBound& bound) {
    return !bound.number && !bound.tensor;
  };
  const Scope inner = scope.NameScope("strided_slice");
  const Output begins = BoundVector(inner, begin);
  const Output ends = BoundVector(inner, end);
  const Output strides = inner.Named("stack").Ints({1});
  return AddAs(inner, "StridedSlice", {x, begins, ends, strides},
               {{"begin_mask", missing(begin) ? 1 : 0},
                {"end_mask", missing(end) ? 1 : 0},
                {"shrink_axis_mask", shrink ? 1 : 0}});
}

}  // namespace

Node* AddNodeAs(const Scope& inner, std::string_view op,
                const std::vector<Output>& inputs, AttrMap attrs) {
  return inner.Named(inner.context().name_scope)
      .AddNode(op, inputs, std::move(attrs));
}

Output AddAs(const Scope& inner, std::string_view op,
             const std::vector<Output>& inputs, AttrMap attrs) {
  Node* node = AddNodeAs(inner, op, inputs, std::move(attrs));
  return node == nullptr ? Output() : node->output(0);
}

Output ShapeTensor(const Scope& scope, Output x, DType out_type) {
  if (!x) return scope.Add("Shape", {x});
  const PartialShape& shape = ShapeOf(x);
  if (!shape.FullyDefined() ||
      (out_type == DType::kInt32 && !FitsInt32(shape))) {
    return scope.Add("Shape", {x}, {{"out_type", out_type}});
  }
  if (out_type == DType::kInt64) {
    return scope.Named("Shape").Const(
        Tensor::Of<int64_t>({shape.rank()}, shape.dims()));
  }
  return scope.Named("Shape").Ints(
      std::vector<int32_t>(shape.dims().begin(), shape.dims().end()));
}

Output SizeTensor(const Scope& scope, Output x) {
  if (!x) return scope.Add("Size", {x});
  const int64_t size = ShapeOf(x).NumElements();
  if (size < 0 || size > INT32_MAX) return scope.Add("Size", {x});
  return scope.Named("Size").Scalar(static_cast<int32_t>(size));
}

Output RankTensor(const Scope& scope, Output x) {
  if (!x || !ShapeOf(x).known_rank()) return scope.Add("Rank", {x});
  return scope.Named("Rank").Scalar<int32_t>(ShapeOf(x).rank());
}

Output ZerosLikeTensor(const Scope& scope, Output x) {
  if (!x || !ShapeOf(x).FullyDefined()) {
    return scope.Named("zeros_like").Add("ZerosLike", {x});
  }
  const DType dtype = BaseType(TypeOf(x));
  const PartialShape& shape = ShapeOf(x);
  if (shape.NumElements() < kSmallConstant) {
    absl::StatusOr<Tensor> zeros = Tensor::Zeros(dtype, shape.AsShape());
    if (!zeros.ok()) {
      scope.Fail(zeros.status());
      return Output();
    }
    AttrValue value(*std::move(zeros));
    if (shape.NumElements() > 1) value.set_given_values(1);
    return scope.Named("zeros_like")
        .Add("Const", {}, {{"value", std::move(value)}, {"dtype", dtype}});
  }
  const Scope inner = scope.NameScope("zeros_like");
  const Output dims =
      inner.Named("shape_as_tensor")
          .Ints(std::vector<int32_t>(shape.dims().begin(), shape.dims().end()));
  return AddAs(inner, "Fill", {dims, inner.Const(ScalarOfType(dtype, 0))});
}

Output Flatten(const Scope& scope, Output x) {
  const Scope inner = scope.NameScope("Reshape");
  return AddAs(inner, "Reshape", {x, inner.Named("shape").Ints({-1})});
}

Output StackWithInt(const Scope& scope, Output a, int32_t value) {
  const Scope inner = scope.NameScope("stack");
  return AddAs(inner, "Pack", {a, inner.Named("1").Scalar(value)},
               {{"axis", 0}});
}

Output ConcatAt(const Scope& scope, std::vector<Output> values, int32_t axis) {
  const Scope inner = scope.NameScope("concat");
  values.push_back(inner.Named("axis").Scalar(axis));
  return AddAs(inner, "ConcatV2", values);
}

Output GatherRows(const Scope& scope, Output params, Output indices) {
  const Scope inner = scope.NameScope("GatherV2");
  return AddAs(inner, "GatherV2",
               {params, indices, inner.Named("axis").Scalar<int32_t>(0)});
}

Output ExpandFront(const Scope& scope, Output x) {
  const Scope inner = scope.NameScope("ExpandDims");
  return AddAs(inner, "ExpandDims", {x, inner.Named("dim").Scalar<int32_t>(0)});
}

Output RangeOf(const Scope& scope, int32_t start, Output limit, int32_t delta) {
  const Scope inner = scope.NameScope("range");
  const Output first = inner.Named("start").Scalar(start);
  const Output step = inner.Named("delta").Scalar(delta);
  return AddAs(inner, "Range", {first, limit, step});
}

Output AddInt(const Scope& scope, Output x, int32_t value) {
  const Scope inner = scope.NameScope("add");
  return AddAs(inner, "AddV2", {x, inner.Named("y").Scalar(value)});
}

Output SumAll(const Scope& scope, Output x) {
  Output axes;
  if (x && ShapeOf(x).known_rank()) {
    std::vector<int32_t> all(ShapeOf(x).rank());
    std::iota(all.begin(), all.end(), 0);
    axes = scope.Ints(std::move(all));
  } else {
    axes = RangeOf(scope, 0, RankTensor(scope, x), 1);
  }
  return scope.Add("Sum", {x, axes});
}

Output SliceVector(const Scope& scope, Output x, SliceBound begin,
                   SliceBound end) {
  return StridedSliceOf(scope, x, begin, end, /*shrink=*/false);
}

Output ElementOf(const Scope& scope, Output x, int32_t at) {
  return StridedSliceOf(scope, x, at, at + 1, /*shrink=*/true);
}

Output ElementOf(const Scope& scope, Output x, Output at) {
  return StridedSliceOf(scope, x, at, AddInt(scope, at, 1), /*shrink=*/true);
}

}  // namespace sluice
