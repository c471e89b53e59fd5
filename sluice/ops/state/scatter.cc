// ScatterUpdate, ScatterAdd and the like: combine rows, or the slices that
// several coordinates name (ScatterNdUpdate, …), of a ref or resource variable
// with updates. Repeated indices take effect one after the
// other. All indices are checked first, so a bad one changes nothing.

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/binary.h"
#include "sluice/ops/state/elements.h"
#include "sluice/ops/state/row_walk.h"
#include "sluice/ops/state/variable_access.h"
#include "sluice/ops/state/variable_shapes.h"

namespace sluice {
namespace {
namespace scatter_op {

// Combines the rows of `row` elements that `index` names with the updates, or
// with the one update there is.
using RowsFn = void (*)(Tensor* variable, int64_t row, const IndexInput& index,
                        const Tensor& updates);

template <typename T, numeric::BinaryOp kOp>
void CombineRows(Tensor* variable, int64_t row, const IndexInput& index,
                 const Tensor& updates) {
  T* const table = variable->mutable_data<T>().data();
  const T* const update = updates.data<T>().data();
  const int64_t step = updates.rank() == 0 ? 0 : 1;
  index.Visit([&](const auto* indices) {
    numeric::BinaryRows<kOp>(table, row, indices, index.size(), update, step);
  });
}

void ReplaceRows(Tensor* variable, int64_t row, const IndexInput& index,
                 const Tensor& updates) {
  // Strings are not on the rows themselves.
  const int64_t bytes =
      row * static_cast<int64_t>(ElementSize(variable->dtype()));
  const char* data = static_cast<const char*>(variable->raw());
  const bool fill = updates.rank() == 0;
  ForEachRow(
      index, [&](int64_t at) { PrefetchRow<true>(data + at * bytes, bytes); },
      [&](int64_t i, int64_t at) {
        if (fill) {
          FillElements(updates, variable, at * row, row);
        } else {
          CopyElements(updates, i * row, variable, at * row, row);
        }
      });
}

absl::Status CheckShapes(const Tensor& params, const Tensor& indices,
                         const Tensor& updates) {
  if (params.rank() < 1) {
    return InvalidArgument("params must be at least 1-D, got shape ",
                           params.shape().DebugString());
  }
  if (updates.rank() == 0) return absl::OkStatus();
  Shape expected = indices.shape();
  for (int i = 1; i < params.rank(); ++i) expected.AddDim(params.dim(i));
  if (updates.shape() == expected) return absl::OkStatus();
  return InvalidArgument(
      "Must have updates.shape = indices.shape + params.shape[1:] or "
      "updates.shape = [], got updates.shape ",
      updates.shape().DebugString(), ", indices.shape ",
      indices.shape().DebugString(), ", params.shape ",
      params.shape().DebugString());
}

absl::Status Scatter(KernelContext& ctx, LockedVariables::Caches& caches,
                     RowsFn combine) {
  const Tensor& indices = ctx.input(1);
  const Tensor& updates = ctx.input(2);
  LockedVariables locked;
  SLUICE_RETURN_IF_ERROR(locked.Lock(ctx, 1, updates.dtype(), caches));
  SLUICE_RETURN_IF_ERROR(CheckShapes(locked.value(0), indices, updates));
  const int64_t rows = locked.value(0).dim(0);
  SLUICE_RETURN_IF_ERROR(CheckIndices(indices, rows));
  if (indices.size() > 0) {
    SLUICE_ASSIGN_OR_RETURN(Tensor * variable, locked.mutable_value(0));
    combine(variable, variable->size() / rows, IndexInput(indices), updates);
  }
  ForwardUpdatedRef(ctx);
  return absl::OkStatus();
}

// The numbers of the slices that the rows of `indices` […, depth] name.
absl::StatusOr<Tensor> SliceNumbers(const Tensor& indices, int64_t depth,
                                    const Shape& params) {
  const IndexInput index(indices);
  int64_t count = 1;
  for (int i = 0; i + 1 < indices.rank(); ++i) count *= indices.dim(i);
  Tensor numbers(DType::kInt64, {count});
  for (int64_t i = 0; i < count; ++i) {
    int64_t number = 0;
    for (int d = 0; d < depth; ++d) {
      const int64_t at = index[i * depth + d];
      if (at < 0 || at >= params.dim(d)) {
        return InvalidArgument("indices[", i, "] has ", at, " at position ", d,
                               ", which does not index into param shape ",
                               params.DebugString());
      }
      number = number * params.dim(d) + at;
    }
    numbers.mutable_data<int64_t>()[i] = number;
  }
  return numbers;
}

absl::Status CheckNdShapes(const Tensor& params, const Tensor& indices,
                           const Tensor& updates) {
  if (params.rank() < 1 || indices.rank() < 1) {
    return InvalidArgument(
        "params and indices must be at least 1-D, got shapes ",
        params.shape().DebugString(), " and ", indices.shape().DebugString());
  }
  const int64_t depth = indices.dim(indices.rank() - 1);
  Shape expected;
  for (int i = 0; i + 1 < indices.rank(); ++i) expected.AddDim(indices.dim(i));
  if (depth <= params.rank()) {
    for (int i = static_cast<int>(depth); i < params.rank(); ++i) {
      expected.AddDim(params.dim(i));
    }
    if (updates.shape() == expected) return absl::OkStatus();
  }
  return InvalidArgument(
      "Must have updates.shape = indices.shape[:-1] + "
      "params.shape[indices.shape[-1]:], got updates.shape ",
      updates.shape().DebugString(), ", indices.shape ",
      indices.shape().DebugString(), ", params.shape ",
      params.shape().DebugString());
}

// As Scatter, for slices named by several coordinates.
absl::Status ScatterNd(KernelContext& ctx, LockedVariables::Caches& caches,
                       RowsFn combine) {
  const Tensor& indices = ctx.input(1);
  const Tensor& updates = ctx.input(2);
  LockedVariables locked;
  SLUICE_RETURN_IF_ERROR(locked.Lock(ctx, 1, updates.dtype(), caches));
  const Shape shape = locked.value(0).shape();
  SLUICE_RETURN_IF_ERROR(CheckNdShapes(locked.value(0), indices, updates));
  const int64_t depth = indices.dim(indices.rank() - 1);
  SLUICE_ASSIGN_OR_RETURN(const Tensor numbers,
                          SliceNumbers(indices, depth, shape));
  if (numbers.size() > 0 && updates.size() > 0) {
    SLUICE_ASSIGN_OR_RETURN(Tensor * variable, locked.mutable_value(0));
    combine(variable, updates.size() / numbers.size(), IndexInput(numbers),
            updates);
  }
  ForwardUpdatedRef(ctx);
  return absl::OkStatus();
}

template <RowsFn kCombine>
absl::Status ScatterNdWith(KernelContext& ctx,
                           LockedVariables::Caches& caches) {
  return ScatterNd(ctx, caches, kCombine);
}
using NdUpdateKernel = VariableKernel<ScatterNdWith<ReplaceRows>>;
template <RowsFn kCombine>
absl::Status ScatterWith(KernelContext& ctx, LockedVariables::Caches& caches) {
  return Scatter(ctx, caches, kCombine);
}
using RowUpdateKernel = VariableKernel<ScatterWith<ReplaceRows>>;
template <numeric::BinaryOp kOp>
struct Combining {
  template <typename T>
  using Kernel = VariableKernel<ScatterWith<CombineRows<T, kOp>>>;
  template <typename T>
  using NdKernel = VariableKernel<ScatterNdWith<CombineRows<T, kOp>>>;
};

absl::Status ScatterNdShape(ShapeContext& c) {
  if (c.num_outputs() > 0) c.set_output(0, VariableShapeAt(c, 0));
  return absl::OkStatus();
}

}  // namespace scatter_op
}  // namespace

#define SLUICE_SCATTER_OP(NAME, TYPES, LOCKING) \
  SLUICE_OP(NAME)                               \
      .Input("ref: Ref(T)")                     \
      .Input("indices: Tindices")               \
      .Input("updates: T")                      \
      .Output("output_ref: Ref(T)")             \
      .Attr("T: " TYPES)                        \
      .Attr("Tindices: {int32, int64}")         \
      .Attr("use_locking: bool = " LOCKING)     \
      .Shape(ScatterShape)
#define SLUICE_RESOURCE_SCATTER_OP(NAME, TYPES) \
  SLUICE_OP(NAME)                               \
      .Input("resource: resource")              \
      .Input("indices: Tindices")               \
      .Input("updates: dtype")                  \
      .Attr("dtype: " TYPES)                    \
      .Attr("Tindices: {int32, int64}")         \
      .Stateful()                               \
      .Shape(ScatterShape)
#define SLUICE_SCATTER_KERNELS(NAME, OP)                                    \
  SLUICE_KERNEL(Scatter##NAME, kCpu)                                        \
      .ClassForTypes<UpdateTypes,                                           \
                     scatter_op::Combining<numeric::BinaryOp::OP>::Kernel>( \
          "T");                                                             \
  SLUICE_KERNEL(ResourceScatter##NAME, kCpu)                                \
      .ClassForTypes<UpdateTypes,                                           \
                     scatter_op::Combining<numeric::BinaryOp::OP>::Kernel>( \
          "dtype")

SLUICE_SCATTER_OP(ScatterUpdate, "type", "true");
SLUICE_SCATTER_OP(ScatterAdd, "numbertype", "false").NotDifferentiable();
SLUICE_SCATTER_OP(ScatterSub, "numbertype", "false").NotDifferentiable();
SLUICE_SCATTER_OP(ScatterMul, "numbertype", "false").NotDifferentiable();
SLUICE_SCATTER_OP(ScatterDiv, "numbertype", "false").NotDifferentiable();
SLUICE_SCATTER_OP(ScatterMin, "{half, bfloat16, float, double, int32, int64}",
                  "false");
SLUICE_SCATTER_OP(ScatterMax, "{half, bfloat16, float, double, int32, int64}",
                  "false");

SLUICE_RESOURCE_SCATTER_OP(ResourceScatterUpdate, "type");
SLUICE_RESOURCE_SCATTER_OP(ResourceScatterAdd, "numbertype");
SLUICE_RESOURCE_SCATTER_OP(ResourceScatterSub, "numbertype");
SLUICE_RESOURCE_SCATTER_OP(ResourceScatterMul, "numbertype");
SLUICE_RESOURCE_SCATTER_OP(ResourceScatterDiv, "numbertype");
SLUICE_RESOURCE_SCATTER_OP(ResourceScatterMin, "numbertype");
SLUICE_RESOURCE_SCATTER_OP(ResourceScatterMax, "numbertype");

SLUICE_KERNEL(ScatterUpdate, kCpu).Class<scatter_op::RowUpdateKernel>();
SLUICE_KERNEL(ResourceScatterUpdate, kCpu).Class<scatter_op::RowUpdateKernel>();
SLUICE_SCATTER_KERNELS(Add, kAdd);
SLUICE_SCATTER_KERNELS(Sub, kSub);
SLUICE_SCATTER_KERNELS(Mul, kMul);
SLUICE_SCATTER_KERNELS(Div, kDiv);
SLUICE_SCATTER_KERNELS(Min, kMinimum);
SLUICE_SCATTER_KERNELS(Max, kMaximum);

#define SLUICE_SCATTER_ND_OP(NAME, TYPES, LOCKING) \
  SLUICE_OP(NAME)                                  \
      .Input("ref: Ref(T)")                        \
      .Input("indices: Tindices")                  \
      .Input("updates: T")                         \
      .Output("output_ref: Ref(T)")                \
      .Attr("T: " TYPES)                           \
      .Attr("Tindices: {int32, int64}")            \
      .Attr("use_locking: bool = " LOCKING)        \
      .Shape(scatter_op::ScatterNdShape)           \
      .NotDifferentiable()
#define SLUICE_RESOURCE_SCATTER_ND_OP(NAME) \
  SLUICE_OP(NAME)                           \
      .Input("ref: resource")               \
      .Input("indices: Tindices")           \
      .Input("updates: T")                  \
      .Attr("T: type")                      \
      .Attr("Tindices: {int32, int64}")     \
      .Attr("use_locking: bool = true")     \
      .Stateful()                           \
      .Shape(scatter_op::ScatterNdShape)

SLUICE_SCATTER_ND_OP(ScatterNdUpdate, "type", "true");
SLUICE_SCATTER_ND_OP(ScatterNdAdd, "numbertype", "false");
SLUICE_SCATTER_ND_OP(ScatterNdSub, "numbertype", "false");
SLUICE_RESOURCE_SCATTER_ND_OP(ResourceScatterNdUpdate);
SLUICE_RESOURCE_SCATTER_ND_OP(ResourceScatterNdAdd);
SLUICE_RESOURCE_SCATTER_ND_OP(ResourceScatterNdSub);

SLUICE_KERNEL(ScatterNdUpdate, kCpu).Class<scatter_op::NdUpdateKernel>();
SLUICE_KERNEL(ResourceScatterNdUpdate, kCpu)
    .Class<scatter_op::NdUpdateKernel>();
#define SLUICE_SCATTER_ND_KERNELS(NAME, OP)                                   \
  SLUICE_KERNEL(ScatterNd##NAME, kCpu)                                        \
      .ClassForTypes<UpdateTypes,                                             \
                     scatter_op::Combining<numeric::BinaryOp::OP>::NdKernel>( \
          "T");                                                               \
  SLUICE_KERNEL(ResourceScatterNd##NAME, kCpu)                                \
      .ClassForTypes<UpdateTypes,                                             \
                     scatter_op::Combining<numeric::BinaryOp::OP>::NdKernel>( \
          "T")
SLUICE_SCATTER_ND_KERNELS(Add, kAdd);
SLUICE_SCATTER_ND_KERNELS(Sub, kSub);

#undef SLUICE_SCATTER_ND_OP
#undef SLUICE_RESOURCE_SCATTER_ND_OP
#undef SLUICE_SCATTER_ND_KERNELS
#undef SLUICE_SCATTER_OP
#undef SLUICE_RESOURCE_SCATTER_OP
#undef SLUICE_SCATTER_KERNELS

}  // namespace sluice
