// DynamicPartition and DynamicStitch: rows dealt out by number, and laid
// together again.
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace dynamic_stitch_ops {

// What is left of `data` behind the dimensions of `prefix`, which must be its
// first ones. Both ranks must be known.
absl::StatusOr<PartialShape> RestAfter(const PartialShape& data,
                                       const PartialShape& prefix) {
  SLUICE_RETURN_IF_ERROR(CheckRankAtLeast(data, prefix.rank()));
  for (int i = 0; i < prefix.rank(); ++i) {
    SLUICE_RETURN_IF_ERROR(MergeDims(data.dim(i), prefix.dim(i)).status());
  }
  return SubShape(data, prefix.rank(), data.rank());
}

bool StartsWith(const Shape& data, const Shape& prefix) {
  if (data.rank() < prefix.rank()) return false;
  for (int i = 0; i < prefix.rank(); ++i) {
    if (data.dim(i) != prefix.dim(i)) return false;
  }
  return true;
}

absl::Status PartitionShape(ShapeContext& c) {
  const PartialShape& data = c.input(0);
  const PartialShape& partitions = c.input(1);
  if (!data.known_rank() || !partitions.known_rank()) {
    return shapes::Unknown(c);
  }
  SLUICE_ASSIGN_OR_RETURN(PartialShape rest, RestAfter(data, partitions));
  for (int i = 0; i < c.num_outputs(); ++i) {
    c.set_output(i, JoinShapes(PartialShape({-1}), rest));
  }
  return absl::OkStatus();
}

absl::Status PartitionKernel(KernelContext& ctx) {
  const Tensor& data = ctx.input(0);
  const Tensor& partitions = ctx.input(1);
  const int count = ctx.num_outputs();
  if (!StartsWith(data.shape(), partitions.shape())) {
    return InvalidArgument(
        "data.shape must start with partitions.shape, got data.shape = ",
        data.shape().DebugString(),
        ", partitions.shape = ", partitions.shape().DebugString());
  }
  const auto part_of = partitions.data<int32_t>();
  absl::InlinedVector<int64_t, 16> sizes(count);
  for (size_t i = 0; i < part_of.size(); ++i) {
    if (part_of[i] < 0 || part_of[i] >= count) {
      return InvalidArgument("partitions[", i, "] = ", part_of[i],
                             " is not in [0, ", count, ")");
    }
    ++sizes[part_of[i]];
  }
  const Mover mover = MoverOf(data.dtype());
  const int64_t row = SizeBetween(data.shape(), partitions.rank(), data.rank());
  const int64_t row_bytes = row * mover.size;
  absl::InlinedVector<char*, 16> next(count);
  for (int p = 0; p < count; ++p) {
    Shape shape({sizes[p]});
    for (int d = partitions.rank(); d < data.rank(); ++d) {
      shape.AddDim(data.dim(d));
    }
    SLUICE_ASSIGN_OR_RETURN(Tensor & part, ctx.Output(p, shape));
    next[p] = ElementAt(part, mover, 0);
  }
  const char* from = ElementAt(data, mover, 0);
  for (const int32_t p : part_of) {
    mover.run(next[p], mover.size, from, mover.size, row);
    next[p] += row_bytes;
    from += row_bytes;
  }
  return absl::OkStatus();
}

// Row numbers are dealt out in the same way, and say where each row of dy goes.
Grads PartitionGradient(Scope& scope, const Node& op,
                        std::span<const Output> dy) {
  const Output partitions = op.input(1);
  const Output shape = ShapeTensor(scope, partitions);
  const Output axes = scope.Ints({0});
  const Output count = scope.Add("Prod", {shape, axes});
  const Output numbers =
      scope.Add("Reshape", {RangeOf(scope, 0, count, 1), shape});
  std::vector<Output> inputs =
      scope.AddMulti("DynamicPartition", {numbers, partitions},
                     {{"num_partitions", static_cast<int64_t>(dy.size())}});
  inputs.insert(inputs.end(), dy.begin(), dy.end());
  const Output rows = scope.Add("DynamicStitch", inputs,
                                {{"N", static_cast<int64_t>(dy.size())}});
  return std::vector<Grad>{
      scope.Add("Reshape", {rows, ShapeTensor(scope, op.input(0))}), Grad()};
}

absl::Status StitchShape(ShapeContext& c) {
  const int count = c.num_inputs() / 2;
  PartialShape rest;
  int64_t largest = -1;
  bool all_known = true;
  for (int i = 0; i < count; ++i) {
    const PartialShape& indices = c.input(i);
    const PartialShape& data = c.input(count + i);
    if (indices.known_rank() && data.known_rank()) {
      SLUICE_ASSIGN_OR_RETURN(PartialShape mine, RestAfter(data, indices));
      SLUICE_ASSIGN_OR_RETURN(rest, MergeShapes(rest, mine));
    }
    const std::optional<Tensor> values = c.input_value(i);
    all_known &= values.has_value();
    for (int64_t k = 0; values && k < values->size(); ++k) {
      largest = std::max(largest, IndexAt(*values, k));
    }
  }
  c.set_output(0,
               JoinShapes(PartialShape({all_known ? largest + 1 : -1}), rest));
  return absl::OkStatus();
}

absl::Status CheckStitch(const KernelContext& ctx, int count) {
  const Shape& first_indices = ctx.input(0).shape();
  const Shape& first = ctx.input(count).shape();
  for (int i = 0; i < count; ++i) {
    const Shape& indices = ctx.input(i).shape();
    const Shape& data = ctx.input(count + i).shape();
    if (!StartsWith(data, indices)) {
      return InvalidArgument("data[", i, "].shape = ", data.DebugString(),
                             " does not start with indices[", i,
                             "].shape = ", indices.DebugString());
    }
    const auto rest = data.dims().subspan(indices.rank());
    const auto expected = first.dims().subspan(first_indices.rank());
    if (!std::ranges::equal(rest, expected)) {
      return InvalidArgument(
          "Need data[0].shape[", first_indices.rank(), ":] = data[", i,
          "].shape[", indices.rank(),
          ":], got data[0].shape = ", first.DebugString(), ", data[", i,
          "].shape = ", data.DebugString(),
          ", indices[0].shape = ", first_indices.DebugString(), ", indices[", i,
          "].shape = ", indices.DebugString());
    }
  }
  return absl::OkStatus();
}

absl::Status StitchKernel(KernelContext& ctx) {
  const int count = ctx.num_inputs() / 2;
  SLUICE_RETURN_IF_ERROR(CheckStitch(ctx, count));
  int64_t rows = 0;
  int64_t given = 0;
  for (int i = 0; i < count; ++i) {
    const auto indices = ctx.input(i).data<int32_t>();
    for (size_t k = 0; k < indices.size(); ++k) {
      if (indices[k] < 0) {
        return InvalidArgument("indices[", k, "] is out of range");
      }
      rows = std::max<int64_t>(rows, int64_t{indices[k]} + 1);
    }
    given += static_cast<int64_t>(indices.size());
  }
  const int prefix = ctx.input(0).rank();
  const Tensor& first = ctx.input(count);
  IndexVector dims = {rows};
  for (int d = prefix; d < first.rank(); ++d) dims.push_back(first.dim(d));
  SLUICE_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::Create(std::span<const int64_t>(dims.data(), dims.size())));
  SLUICE_ASSIGN_OR_RETURN(Tensor & merged, ctx.Output(0, shape));
  const Mover mover = MoverOf(merged.dtype());
  const int64_t row = SizeBetween(shape, 1, shape.rank());
  // Rows that nobody names become zeros; a row named twice may hide one.
  std::vector<bool> named(rows);
  int64_t different = 0;
  for (int i = 0; given >= rows && i < count; ++i) {
    for (const int32_t to : ctx.input(i).data<int32_t>()) {
      different += !named[to];
      named[to] = true;
    }
  }
  if (different < rows) FillWithZeros(ctx, merged);
  for (int i = 0; i < count; ++i) {
    const Tensor& data = ctx.input(count + i);
    const auto indices = ctx.input(i).data<int32_t>();
    for (size_t k = 0; k < indices.size(); ++k) {
      mover.run(ElementAt(merged, mover, indices[k] * row), mover.size,
                ElementAt(data, mover, static_cast<int64_t>(k) * row),
                mover.size, row);
    }
  }
  return absl::OkStatus();
}

// Each value gets the rows of dy that it was laid to.
Grads StitchGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const int count = op.num_inputs() / 2;
  std::vector<Grad> grads(count);
  for (int i = 0; i < count; ++i) {
    grads.push_back(GatherRows(scope, dy[0], op.input(i)));
  }
  return grads;
}

Grads StitchSlicesGradient(Scope& scope, const Node& op,
                           std::span<const Grad> dy) {
  if (!dy[0].is_slices()) {
    return StitchGradient(scope, op, std::vector<Output>{dy[0].values});
  }
  const Output rows = ElementOf(scope, ShapeTensor(scope, op.output(0)), 0);
  const Output dense =
      scope.Add("UnsortedSegmentSum", {dy[0].values, dy[0].indices, rows});
  return StitchGradient(scope, op, std::vector<Output>{dense});
}

}  // namespace dynamic_stitch_ops
}  // namespace

SLUICE_OP(DynamicPartition)
    .Input("data: T")
    .Input("partitions: int32")
    .Output("outputs: num_partitions * T")
    .Attr("num_partitions: int >= 1")
    .Attr("T: type")
    .Shape(dynamic_stitch_ops::PartitionShape)
    .Gradient(dynamic_stitch_ops::PartitionGradient);

SLUICE_OP(DynamicStitch)
    .Input("indices: N * int32")
    .Input("data: N * T")
    .Output("merged: T")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .Shape(dynamic_stitch_ops::StitchShape)
    .Gradient(dynamic_stitch_ops::StitchGradient)
    .SlicesGradient(dynamic_stitch_ops::StitchSlicesGradient);

SLUICE_OP(ParallelDynamicStitch)
    .Input("indices: N * int32")
    .Input("data: N * T")
    .Output("merged: T")
    .Attr("N: int >= 1")
    .Attr("T: type")
    .Shape(dynamic_stitch_ops::StitchShape)
    .Gradient(dynamic_stitch_ops::StitchGradient)
    .SlicesGradient(dynamic_stitch_ops::StitchSlicesGradient);

SLUICE_KERNEL(DynamicPartition, kCpu)
    .Function(dynamic_stitch_ops::PartitionKernel);
SLUICE_KERNEL(DynamicStitch, kCpu).Function(dynamic_stitch_ops::StitchKernel);
SLUICE_KERNEL(ParallelDynamicStitch, kCpu)
    .Function(dynamic_stitch_ops::StitchKernel);

}  // namespace sluice
