// ResourceGather: rows of a resource variable, straight out of it. Its gradient
// is slices of the variable.

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/gather_rows.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/shape_rules.h"
#include "sluice/ops/state/elements.h"
#include "sluice/ops/state/variable_access.h"

namespace sluice {
namespace {
namespace resource_gather {

absl::Status GatherShape(ShapeContext& c) {
  const PartialShape& params = c.input_handle(0).shape;
  const PartialShape& indices = c.input(1);
  const int64_t batch_dims = c.attr<int64_t>("batch_dims");
  if (!params.known_rank() || !indices.known_rank()) return shapes::Unknown(c);
  if (batch_dims < 0 || batch_dims > indices.rank() ||
      batch_dims >= params.rank()) {
    return InvalidArgument("batch_dims ", batch_dims,
                           " does not fit params of rank ", params.rank(),
                           " and indices of rank ", indices.rank());
  }
  SLUICE_RETURN_IF_ERROR(
      MergeShapes(PartialShape(params.dims().first(batch_dims)),
                  PartialShape(indices.dims().first(batch_dims)))
          .status());
  c.set_output(
      0,
      JoinShapes(indices, PartialShape(params.dims().subspan(batch_dims + 1))));
  return absl::OkStatus();
}

// Sizes of a gather: for each of `batches` parts of both inputs, `picks` rows
// of `row` elements are taken from `limit`.
struct Sizes {
  int64_t batches = 1;
  int64_t limit = 1;
  int64_t picks = 1;
  int64_t row = 1;
  Shape output;
};

absl::StatusOr<Sizes> SizesOf(const Shape& params, const Shape& indices,
                              int64_t batch_dims) {
  if (params.rank() < 1) {
    return InvalidArgument("params must be at least 1 dimensional");
  }
  if (batch_dims < 0 || batch_dims > indices.rank() ||
      batch_dims >= params.rank()) {
    return InvalidArgument(
        "batch_dims ", batch_dims, " does not fit params of shape ",
        params.DebugString(), " and indices of shape ", indices.DebugString());
  }
  Sizes sizes;
  sizes.output = indices;
  for (int i = 0; i < indices.rank(); ++i) {
    if (i >= batch_dims) {
      sizes.picks *= indices.dim(i);
    } else if (indices.dim(i) != params.dim(i)) {
      return InvalidArgument("params.shape[", i, "]: ", params.dim(i),
                             " should be equal to indices.shape[", i,
                             "]: ", indices.dim(i));
    } else {
      sizes.batches *= indices.dim(i);
    }
  }
  std::vector<int64_t> dims(indices.dims().begin(), indices.dims().end());
  sizes.limit = params.dim(static_cast<int>(batch_dims));
  for (int i = static_cast<int>(batch_dims) + 1; i < params.rank(); ++i) {
    sizes.row *= params.dim(i);
    dims.push_back(params.dim(i));
  }
  SLUICE_ASSIGN_OR_RETURN(sizes.output, Shape::Create(dims));
  return sizes;
}

// Rows `begin` to `end` of the output.
void CopyRows(const Tensor& params, const IndexInput& index, int64_t row_bytes,
              int64_t begin, int64_t end, Tensor* output) {
  const char* from = static_cast<const char*>(params.raw());
  char* to = static_cast<char*>(output->mutable_raw()) + begin * row_bytes;
  index.Visit([&](const auto* indices) {
    GatherRowBytes(from, row_bytes, indices + begin, end - begin, to);
  });
}

// Works under the variable's lock and not on a snapshot: a writer that met a
// snapshot would have to copy the whole table for the few rows read here.
absl::Status Gather(KernelContext& ctx, LockedVariables::Caches& caches) {
  const Tensor& indices = ctx.input(1);
  LockedVariables locked;
  SLUICE_RETURN_IF_ERROR(
      locked.Lock(ctx, 1, ctx.node().output_type(0), caches));
  const Tensor& params = locked.value(0);
  SLUICE_ASSIGN_OR_RETURN(const Sizes sizes,
                          SizesOf(params.shape(), indices.shape(),
                                  ctx.attr<int64_t>("batch_dims")));
  SLUICE_RETURN_IF_ERROR(CheckIndices(indices, sizes.limit));
  SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, sizes.output));
  if (output.size() == 0) return absl::OkStatus();
  const IndexInput index(indices);
  // Strings have no size, and their rows are few.
  const int64_t row_bytes =
      sizes.row * static_cast<int64_t>(ElementSize(params.dtype()));
  ctx.ParallelFor(
      sizes.batches * sizes.picks,
      [&](int64_t begin, int64_t end) {
        if (row_bytes > 0 && sizes.batches == 1) {
          return CopyRows(params, index, row_bytes, begin, end, &output);
        }
        for (int64_t i = begin; i < end; ++i) {
          const int64_t from = i / sizes.picks * sizes.limit + index[i];
          CopyElements(params, from * sizes.row, &output, i * sizes.row,
                       sizes.row);
        }
      },
      // A row that is not in the cache costs a miss.
      20 + 0.1 * static_cast<double>(row_bytes));
  return absl::OkStatus();
}

// The variable's handle, which may have come into a loop.
Output HandleOf(Output handle) {
  while (handle.node->type() != "VarHandleOp" &&
         handle.node->num_inputs() > 0) {
    handle = handle.node->input(0);
  }
  return handle;
}

Output ShapeOfParams(const Scope& scope, Output handle) {
  const PartialShape& shape = handle.node->output_handle(handle.index).shape;
  if (!shape.FullyDefined()) return scope.Add("VariableShape", {handle});
  return scope.Ints(
      std::vector<int32_t>(shape.dims().begin(), shape.dims().end()));
}

Grads GatherGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output indices = op.input(1);
  const Output shape = ShapeOfParams(scope, HandleOf(op.input(0)));
  const Output count = ExpandFront(scope, SizeTensor(scope, indices));
  const Output values_shape =
      ConcatAt(scope, {count, SliceVector(scope, shape, 1, {})}, 0);
  const Output values = scope.Add("Reshape", {dy[0], values_shape});
  const Output flat = scope.Add("Reshape", {indices, count});
  return std::vector<Grad>{Grad::Slices(values, flat, shape), Grad()};
}

}  // namespace resource_gather
}  // namespace

SLUICE_OP(ResourceGather)
    .Input("resource: resource")
    .Input("indices: Tindices")
    .Output("output: dtype")
    .Attr("batch_dims: int = 0")
    .Attr("validate_indices: bool = true")
    .Attr("dtype: type")
    .Attr("Tindices: {int32, int64}")
    .Stateful()
    .Shape(resource_gather::GatherShape)
    .Gradient(resource_gather::GatherGradient);

SLUICE_KERNEL(ResourceGather, kCpu)
    .Class<VariableKernel<resource_gather::Gather>>();

}  // namespace sluice
