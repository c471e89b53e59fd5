// GatherNd and ScatterNd: slices of a tensor by coordinates, read and added up.
#include "absl/strings/str_join.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace gather_nd_ops {

// indices [count, depth]: each row of `depth` coordinates names a slice of
// `slice` elements.
struct Sizes {
  int64_t count = 0;
  int64_t depth = 0;
  int64_t slice = 1;
};

Sizes SizesOf(const Tensor& indices, const Shape& params) {
  Sizes sizes;
  sizes.depth = indices.dim(indices.rank() - 1);
  sizes.count = SizeBetween(indices.shape(), 0, indices.rank() - 1);
  sizes.slice =
      SizeBetween(params, static_cast<int>(sizes.depth), params.rank());
  return sizes;
}

// The number of the slice that row i of `indices` names, or -1.
int64_t SliceNumber(const Tensor& indices, int64_t row, const Shape& params,
                    int64_t depth) {
  int64_t number = 0;
  for (int d = 0; d < depth; ++d) {
    const int64_t at = IndexAt(indices, row * depth + d);
    if (at < 0 || at >= params.dim(d)) return -1;
    number = number * params.dim(d) + at;
  }
  return number;
}

absl::Status BadRow(const Tensor& indices, int64_t row, int64_t depth,
                    std::string_view what, const Shape& params) {
  IndexVector values;
  for (int64_t d = 0; d < depth; ++d) {
    values.push_back(IndexAt(indices, row * depth + d));
  }
  std::string position;
  for (int d = indices.rank() - 2; d >= 0; --d) {
    position = StrCat(d == 0 ? "[" : ",", row % indices.dim(d), position);
    row /= indices.dim(d);
  }
  if (!position.empty()) position += "]";
  return InvalidArgument("indices", position, " = [",
                         absl::StrJoin(values, ", "), "] does not index into ",
                         what, " ", params.DebugString());
}

absl::Status GatherNdShape(ShapeContext& c) {
  const PartialShape& params = c.input(0);
  const PartialShape& indices = c.input(1);
  SLUICE_RETURN_IF_ERROR(CheckRankAtLeast(indices, 1));
  if (!params.known_rank() || !indices.known_rank()) return shapes::Unknown(c);
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth < 0) return shapes::Unknown(c);
  if (depth > params.rank()) {
    return InvalidArgument(
        "indices.shape[-1] must be <= params.rank, but saw indices shape: ",
        indices.DebugString(), " and params shape: ", params.DebugString());
  }
  c.set_output(
      0, JoinShapes(SubShape(indices, 0, indices.rank() - 1),
                    SubShape(params, static_cast<int>(depth), params.rank())));
  return absl::OkStatus();
}

absl::Status GatherNdKernel(KernelContext& ctx) {
  const Tensor& params = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  if (params.rank() < 1) {
    return InvalidArgument("params must be at least a vector");
  }
  if (indices.rank() < 1) {
    return InvalidArgument("indices must be at least a vector");
  }
  if (indices.dim(indices.rank() - 1) > params.rank()) {
    return InvalidArgument(
        "index innermost dimension length must be <= params rank; saw: ",
        indices.dim(indices.rank() - 1), " vs. ", params.rank());
  }
  const Sizes sizes = SizesOf(indices, params.shape());
  IndexVector dims;
  for (int i = 0; i + 1 < indices.rank(); ++i) dims.push_back(indices.dim(i));
  for (int i = static_cast<int>(sizes.depth); i < params.rank(); ++i) {
    dims.push_back(params.dim(i));
  }
  SLUICE_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::Create(std::span<const int64_t>(dims.data(), dims.size())));
  if (sizes.count > 0 && params.size() == 0 && shape.size() > 0) {
    return InvalidArgument(
        "Requested more than 0 entries, but params is empty.  Params shape: ",
        params.shape().DebugString());
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, shape));
  if (indices.size() == 0 && output.size() == 0) return absl::OkStatus();
  const Mover mover = MoverOf(params.dtype());
  for (int64_t i = 0; i < sizes.count; ++i) {
    const int64_t from = SliceNumber(indices, i, params.shape(), sizes.depth);
    if (from < 0) {
      return BadRow(indices, i, sizes.depth, "param shape", params.shape());
    }
    mover.run(ElementAt(output, mover, i * sizes.slice), mover.size,
              ElementAt(params, mover, from * sizes.slice), mover.size,
              sizes.slice);
  }
  return absl::OkStatus();
}

Grads GatherNdGradient(Scope& scope, const Node& op,
                       std::span<const Output> dy) {
  const Output indices = op.input(1);
  const Output shape =
      ShapeTensor(scope, op.input(0), BaseType(TypeOf(indices)));
  const PartialShape& at = ShapeOf(indices);
  if (at.known_rank() && at.rank() == 2 && at.dim(1) == 1) {
    const Output rows = scope.Add("Squeeze", {indices},
                                  {{"squeeze_dims", std::vector<int64_t>{-1}}});
    return std::vector<Grad>{Grad::Slices(dy[0], rows, shape), Grad()};
  }
  return std::vector<Grad>{scope.Add("ScatterNd", {indices, dy[0], shape}),
                           Grad()};
}

absl::Status ScatterNdShape(ShapeContext& c) {
  const PartialShape& indices = c.input(0);
  const PartialShape& updates = c.input(1);
  SLUICE_RETURN_IF_ERROR(CheckRankAtLeast(indices, 1));
  SLUICE_RETURN_IF_ERROR(CheckRankAtLeast(updates, 1));
  SLUICE_ASSIGN_OR_RETURN(PartialShape out, ShapeFromInput(c, 2));
  if (out.NumElements() == 0 && indices.NumElements() > 0 &&
      updates.NumElements() > 0) {
    return InvalidArgument(
        "Indices and updates specified for empty output shape");
  }
  if (indices.known_rank() && updates.known_rank()) {
    const int outer = indices.rank() - 1;
    if (updates.rank() < outer) {
      return CheckRankAtLeast(updates, outer);
    }
    absl::Status fits =
        MergeShapes(SubShape(indices, 0, outer), SubShape(updates, 0, outer))
            .status();
    if (!fits.ok()) {
      return InvalidArgument(
          "The outer ", outer,
          " dimensions of indices.shape=", indices.DebugString(),
          " must match the outer ", outer,
          " dimensions of updates.shape=", updates.DebugString(), ": ",
          ToStd(fits.message()));
    }
    const int64_t depth = indices.dim(outer);
    if (out.known_rank() && depth >= 0 && depth <= out.rank()) {
      const int at = static_cast<int>(depth);
      fits = MergeShapes(SubShape(out, at, out.rank()),
                         SubShape(updates, outer, updates.rank()))
                 .status();
      if (!fits.ok()) {
        return InvalidArgument(
            "The inner ", out.rank() - at,
            " dimensions of output.shape=", out.DebugString(),
            " must match the inner ", updates.rank() - outer,
            " dimensions of updates.shape=", updates.DebugString(), ": ",
            ToStd(fits.message()));
      }
    }
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status CheckScatter(const Tensor& indices, const Tensor& updates,
                          const Shape& shape) {
  if (indices.rank() < 1) {
    return InvalidArgument("Indices shape must have rank at least one. Found:",
                           indices.shape().DebugString());
  }
  if (updates.rank() < 1) {
    return InvalidArgument("Updates shape must have rank at least one. Found:",
                           updates.shape().DebugString());
  }
  if (shape.size() == 0 && (indices.size() > 0 || updates.size() > 0)) {
    return InvalidArgument(
        "Indices and updates specified for empty output.  indices shape: ",
        indices.shape().DebugString());
  }
  const int outer = indices.rank() - 1;
  const int64_t depth = indices.dim(outer);
  bool fits = updates.rank() >= outer;
  for (int i = 0; fits && i < outer; ++i) {
    fits = updates.dim(i) == indices.dim(i);
  }
  if (!fits) {
    return InvalidArgument(
        "Outer dimensions of indices and update must match. Indices shape: ",
        indices.shape().DebugString(),
        ", updates shape:", updates.shape().DebugString());
  }
  if (depth > shape.rank() || updates.rank() - outer != shape.rank() - depth) {
    return InvalidArgument(
        "Inner dimensions of output shape must match inner dimensions of "
        "updates shape. Output: ",
        shape.DebugString(), " updates: ", updates.shape().DebugString());
  }
  for (int i = outer; i < updates.rank(); ++i) {
    if (updates.dim(i) != shape.dim(static_cast<int>(depth) + i - outer)) {
      return InvalidArgument(
          "The inner ", shape.rank() - depth,
          " dimensions of output.shape=", shape.DebugString(),
          " must match the inner ", updates.rank() - outer,
          " dimensions of updates.shape=", updates.shape().DebugString());
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status ScatterNd(KernelContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& updates = ctx.input(1);
  if (ctx.input(2).rank() != 1) {
    return InvalidArgument("Shape must be a vector");
  }
  SLUICE_ASSIGN_OR_RETURN(const Shape shape, ShapeOfSizes(ctx.input(2)));
  SLUICE_RETURN_IF_ERROR(CheckScatter(indices, updates, shape));
  SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, shape));
  FillWithZeros(ctx, output);
  if (indices.size() == 0 && updates.size() == 0) return absl::OkStatus();
  const Sizes sizes = SizesOf(indices, shape);
  const T* from = updates.data<T>().data();
  T* out = output.mutable_data<T>().data();
  for (int64_t i = 0; i < sizes.count; ++i) {
    const int64_t at = SliceNumber(indices, i, shape, sizes.depth);
    if (at < 0) return BadRow(indices, i, sizes.depth, "shape", shape);
    T* to = out + at * sizes.slice;
    for (int64_t k = 0; k < sizes.slice; ++k) {
      if constexpr (std::is_same_v<T, bool>) {
        to[k] = to[k] || from[i * sizes.slice + k];
      } else {
        to[k] += from[i * sizes.slice + k];
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace gather_nd_ops
}  // namespace

SLUICE_OP(GatherNd)
    .Input("params: Tparams")
    .Input("indices: Tindices")
    .Output("output: Tparams")
    .Attr("Tparams: type")
    .Attr("Tindices: {int32, int64}")
    .Shape(gather_nd_ops::GatherNdShape)
    .Gradient(gather_nd_ops::GatherNdGradient);

SLUICE_OP(ScatterNd)
    .Input("indices: Tindices")
    .Input("updates: T")
    .Input("shape: Tindices")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tindices: {int32, int64}")
    .Shape(gather_nd_ops::ScatterNdShape)
    .Gradient([](Scope& scope, const Node& op,
                 std::span<const Output> dy) -> Grads {
      return std::vector<Grad>{
          Grad(), scope.Add("GatherNd", {dy[0], op.input(0)}), Grad()};
    });

SLUICE_KERNEL(GatherNd, kCpu).Function(gather_nd_ops::GatherNdKernel);
SLUICE_KERNEL(ScatterNd, kCpu)
    .ForTypes<AllTypes>("T", []<typename T>(KernelContext& ctx) {
      return gather_nd_ops::ScatterNd<T>(ctx);
    });

}  // namespace sluice
