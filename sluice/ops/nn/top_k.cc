// TopK and TopKV2: the k largest along the last dimension, largest first; of
// equals the first.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/math/python_math.h"

namespace sluice {
namespace {
namespace top_k {

absl::Status SetShapes(ShapeContext& c, int64_t k) {
  SLUICE_ASSIGN_OR_RETURN(PartialShape shape, c.WithRankAtLeast(0, 1));
  if (shape.known_rank()) {
    const int last = shape.rank() - 1;
    if (k >= 0 && shape.dim(last) >= 0 && shape.dim(last) < k) {
      return InvalidArgument("input must have last dimension >= k = ", k,
                             " but is ", shape.dim(last));
    }
    shape.set_dim(last, k);
  }
  c.set_output(0, shape);
  c.set_output(1, std::move(shape));
  return absl::OkStatus();
}

absl::Status ShapeFunction(ShapeContext& c) {
  return SetShapes(c, c.attr<int64_t>("k"));
}
absl::Status ShapeFunctionV2(ShapeContext& c) {
  int64_t k = PartialShape::kUnknownDim;
  if (const std::optional<Tensor> value = c.input_value(1)) {
    if (value->rank() != 0) {
      return InvalidArgument("Input must be scalar but has rank ",
                             value->rank());
    }
    k = value->data<int32_t>()[0];
    if (k < 0) {
      return InvalidArgument(
          "Dimension size, given by scalar input 1, must be "
          "non-negative but is ",
          k);
    }
  }
  return SetShapes(c, k);
}

// The size of the last dimension, as int64.
Output LastSize(const Scope& scope, Output shape) {
  const Output wide = python::Cast(scope, shape, DType::kInt64);
  const Output last = python::Sub(scope, SizeTensor(scope, shape), 1);
  return GatherRows(scope, wide, last);
}

// Row numbers times the row size, as a column.
Output RowOffsets(const Scope& scope, Output rows, Output row_size) {
  const Output limit =
      python::Mul(scope, python::Cast(scope, rows, DType::kInt64), row_size);
  const Scope range = scope.NameScope("range");
  const Output start = range.Named("start").Scalar<int32_t>(0);
  const Output wide = range.Add("Cast", {start}, {{"DstT", DType::kInt64}});
  const Output offsets = AddAs(range, "Range", {wide, limit, row_size});
  return python::Cast(scope, python::ExpandDims(scope, offsets, -1),
                      DType::kInt32);
}

// Puts each gradient back where its value was taken from.
Output ScatterBack(const Scope& scope, const Node& op, Output grad) {
  const Output in_shape = ShapeTensor(scope, op.input(0));
  const Output index_shape = ShapeTensor(scope, op.output(1));
  const Output k = LastSize(scope, index_shape);
  const Scope stack = scope.NameScope("stack");
  const Output any = stack.Named("0").Scalar<int64_t>(-1);
  const Output flat_shape = AddAs(stack, "Pack", {any, k}, {{"axis", 0}});
  const Output flat = scope.Add("Reshape", {op.output(1), flat_shape});
  const Output row_size = LastSize(scope, in_shape);
  const Output rows = ElementOf(scope, ShapeTensor(scope, flat), 0);
  const Output indices = Flatten(
      scope, python::Add(scope, flat, RowOffsets(scope, rows, row_size)));
  const Output column = python::ExpandDims(scope, indices, -1);
  const Output values = Flatten(scope, grad);
  const Output size = python::ProdAll(scope, in_shape);
  const Scope scatter = scope.NameScope("ScatterNd");
  const Output shape =
      scatter.Named("shape").Add("Pack", {size}, {{"axis", 0}});
  const Output scattered = AddAs(scatter, "ScatterNd", {column, values, shape});
  return scope.Add("Reshape", {scattered, in_shape});
}

Grads Gradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  std::vector<Grad> grads = {ScatterBack(scope, op, dy[0])};
  if (op.num_inputs() == 2) {
    grads.push_back(scope.Named("zeros").Scalar<int32_t>(0));
  }
  return grads;
}

// Whether element i comes before j. A NaN comes last.
template <typename T>
struct Before {
  const T* row;
  bool operator()(int32_t i, int32_t j) const {
    const T a = row[i], b = row[j];
    if (a > b) return true;
    if (a < b) return false;
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a) != std::isnan(b)) return std::isnan(b);
    }
    return i < j;
  }
};

template <typename T>
absl::Status Run(KernelContext& ctx, int64_t k) {
  const Tensor& x = ctx.input(0);
  if (k < 0) return InvalidArgument("Need k >= 0, got ", k);
  if (x.rank() < 1) {
    return InvalidArgument("input must be >= 1-D, got shape ",
                           x.shape().DebugString());
  }
  const int64_t columns = x.dim(x.rank() - 1);
  if (columns < k) {
    return InvalidArgument("input must have at least k columns. Had ", columns,
                           ", needed ", k);
  }
  if (columns > INT32_MAX) {
    return InvalidArgument("input must have fewer than 2^31 columns, not ",
                           columns);
  }
  Shape shape = x.shape();
  shape.SetDim(x.rank() - 1, k);
  SLUICE_ASSIGN_OR_RETURN(Tensor & values, ctx.Output(0, shape));
  SLUICE_ASSIGN_OR_RETURN(Tensor & indices, ctx.Output(1, shape));
  if (values.size() == 0) return absl::OkStatus();
  const T* from = x.data<T>().data();
  T* value = values.mutable_data<T>().data();
  int32_t* index = indices.mutable_data<int32_t>().data();
  ctx.ParallelFor(
      x.size() / columns,
      [&](int64_t begin, int64_t end) {
        std::vector<int32_t> order(columns);
        for (int64_t r = begin; r < end; ++r) {
          const T* row = from + r * columns;
          std::iota(order.begin(), order.end(), 0);
          std::partial_sort(order.begin(), order.begin() + k, order.end(),
                            Before<T>{row});
          for (int64_t i = 0; i < k; ++i) {
            index[r * k + i] = order[i];
            value[r * k + i] = row[order[i]];
          }
        }
      },
      static_cast<double>(columns) * 3);
  return absl::OkStatus();
}

}  // namespace top_k
}  // namespace

SLUICE_OP(TopK)
    .Input("input: T")
    .Output("values: T")
    .Output("indices: int32")
    .Attr("k: int >= 0")
    .Attr("sorted: bool = true")
    .Attr("T: realnumbertype")
    .Shape(top_k::ShapeFunction)
    .Gradient(top_k::Gradient);
SLUICE_KERNEL(TopK, kCpu)
    .ForTypes<RealTypes>("T", []<typename T>(KernelContext& ctx) {
      return top_k::Run<T>(ctx, ctx.attr<int64_t>("k"));
    });

SLUICE_OP(TopKV2)
    .Input("input: T")
    .Input("k: int32")
    .Output("values: T")
    .Output("indices: int32")
    .Attr("sorted: bool = true")
    .Attr("T: realnumbertype")
    .Shape(top_k::ShapeFunctionV2)
    .Gradient(top_k::Gradient);
SLUICE_KERNEL(TopKV2, kCpu)
    .HostMemory("k")
    .ForTypes<RealTypes>(
        "T", []<typename T>(KernelContext& ctx) -> absl::Status {
          if (ctx.input(1).rank() != 0) {
            return InvalidArgument("k must be scalar, got shape ",
                                   ctx.input(1).shape().DebugString());
          }
          return top_k::Run<T>(ctx, ctx.input(1).data<int32_t>()[0]);
        });

}  // namespace sluice
