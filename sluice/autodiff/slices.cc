#include "sluice/autodiff/slices.h"

#include <algorithm>

#include "sluice/autodiff/zeros.h"

namespace sluice {

namespace {

// `dims[0]`, as Python's indexing writes it.
Output FirstDim(const Scope& scope, Output dims) {
  const Scope inner = scope.NameScope("strided_slice");
  const Output begin = inner.Named("stack").Ints({0});
  const Output end = inner.Named("stack").Ints({1});
  const Output stride = inner.Named("stack").Ints({1});
  return inner.Named(inner.context().name_scope)
      .Add("StridedSlice", {dims, begin, end, stride},
           {{"shrink_axis_mask", 1}});
}

// 0, 1, …, limit - 1.
Output Range(const Scope& scope, Output limit) {
  const Scope inner = scope.NameScope("range");
  const DType type = BaseType(TypeOf(limit));
  const Output start = inner.Named("start").Const(ScalarOfType(type, 0));
  const Output delta = inner.Named("delta").Const(ScalarOfType(type, 1));
  return inner.Named(inner.context().name_scope)
      .Add("Range", {start, limit, delta});
}

Output ConcatRows(const Scope& scope, std::vector<Output> parts) {
  const Scope inner = scope.NameScope("concat");
  parts.push_back(inner.Named("axis").Scalar<int32_t>(0));
  return inner.Named(inner.context().name_scope).Add("ConcatV2", parts);
}

bool HasInt32Indices(const Grad& grad) {
  return BaseType(TypeOf(grad.indices)) == DType::kInt32;
}

}  // namespace

Output Densify(const Scope& scope, const Grad& grad, std::string_view name) {
  if (!grad.is_slices()) return grad.values;
  if (!grad.dense_shape) {
    scope.Fail(InvalidArgument(
        "Tensor conversion requested for IndexedSlices without dense_shape: ",
        TensorName(grad.values)));
    return Output();
  }
  const Output rows = FirstDim(scope, grad.dense_shape);
  return scope.Named(name).Add("UnsortedSegmentSum",
                               {grad.values, grad.indices, rows});
}

Grad AsSlices(const Scope& scope, const Grad& grad) {
  if (grad.is_slices()) return grad;
  const Output shape = scope.Add("Shape", {grad.values});
  const Output rows = FirstDim(scope, shape);
  if (!scope.ok()) return Grad();
  return Grad::Slices(grad.values, Range(scope, rows), shape);
}

std::vector<Grad> WithSameIndexType(const Scope& scope,
                                    std::span<const Grad> slices) {
  std::vector<Grad> result(slices.begin(), slices.end());
  const auto narrow = std::ranges::count_if(result, HasInt32Indices);
  if (narrow == 0 || narrow == static_cast<int64_t>(result.size())) {
    return result;
  }
  for (Grad& grad : result) {
    if (!HasInt32Indices(grad)) continue;
    grad.indices = scope.Add("Cast", {grad.indices}, {{"DstT", DType::kInt64}});
  }
  return result;
}

Grad ConcatSlices(const Scope& scope, std::span<const Grad> slices) {
  const std::vector<Grad> same = WithSameIndexType(scope, slices);
  std::vector<Output> values, indices;
  for (const Grad& grad : same) {
    values.push_back(grad.values);
    indices.push_back(grad.indices);
  }
  const Output all_values = ConcatRows(scope, std::move(values));
  const Output all_indices = ConcatRows(scope, std::move(indices));
  return Grad::Slices(all_values, all_indices, same[0].dense_shape);
}

}  // namespace sluice
