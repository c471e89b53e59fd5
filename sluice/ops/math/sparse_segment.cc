// SparseSegmentSum, SparseSegmentMean, SparseSegmentSqrtN, the same with
// num_segments, and the ops that compute their derivatives: segments of rows
// that are picked by index.

#include <cmath>
#include <vector>

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/add_n.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/math/python_math.h"

namespace sluice {
namespace {
namespace sparse_segment {

// Output 0 is like input 0 with this many rows. `first` and `second` are the
// inputs that must have one length, in the order of the message.
absl::Status SetRows(ShapeContext& c, int64_t rows, int first = 1,
                     int second = 2) {
  SLUICE_ASSIGN_OR_RETURN(PartialShape data, c.WithRankAtLeast(0, 1));
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  SLUICE_RETURN_IF_ERROR(c.WithRank(2, 1).status());
  SLUICE_RETURN_IF_ERROR(c.Merge(first, second).status());
  if (data.known_rank()) data.set_dim(0, rows);
  c.set_output(0, std::move(data));
  return absl::OkStatus();
}

absl::Status ShapeFunction(ShapeContext& c) {
  return SetRows(c, PartialShape::kUnknownDim);
}
// Scalar input 3 if it is known; -1 otherwise.
absl::StatusOr<int64_t> RowsFromInput(const ShapeContext& c) {
  if (c.input(3).known_rank() && c.input(3).rank() != 0) {
    return InvalidArgument("Shape must be rank 0 but is rank ",
                           c.input(3).rank());
  }
  int64_t rows = PartialShape::kUnknownDim;
  if (const std::optional<Tensor> value = c.input_value(3)) {
    rows = IndexAt(*value, 0);
    if (rows < 0) {
      return InvalidArgument("Cannot specify a negative value for ",
                             c.node().op().def.inputs[3].name);
    }
  }
  return rows;
}
absl::Status ShapeWithRows(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(const int64_t rows, RowsFromInput(c));
  return SetRows(c, rows);
}
absl::Status GradShape(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(const int64_t rows, RowsFromInput(c));
  return SetRows(c, rows, 2, 1);
}

Grads SumGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output rows = ElementOf(scope, ShapeTensor(scope, op.input(0)), 0);
  std::vector<Grad> grads(op.num_inputs());
  const Output gathered = GatherRows(scope, dy[0], op.input(2));
  grads[0] = scope.Add("UnsortedSegmentSum", {gathered, op.input(1), rows});
  return grads;
}

Grads ScaledGrad(Scope& scope, const Node& op, Output grad,
                 std::string_view grad_op) {
  const Output rows = ElementOf(scope, ShapeTensor(scope, op.input(0)), 0);
  std::vector<Grad> grads(op.num_inputs());
  grads[0] = scope.Add(grad_op, {grad, op.input(1), op.input(2), rows});
  return grads;
}
Grads MeanGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return ScaledGrad(scope, op, dy[0], "SparseSegmentMeanGrad");
}
Grads SqrtNGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return ScaledGrad(scope, op, dy[0], "SparseSegmentSqrtNGrad");
}

enum class Kind { kSum, kMean, kSqrtN };

// What the sum of `count` rows is multiplied by.
double Factor(Kind kind, int64_t count) {
  if (kind == Kind::kSum || count == 0) return 1;
  const double n = static_cast<double>(count);
  return kind == Kind::kMean ? 1 / n : 1 / std::sqrt(n);
}

absl::Status CheckVectors(const Tensor& data, const Tensor& indices,
                          const Tensor& ids) {
  if (data.rank() < 1) {
    return InvalidArgument("input must be at least a vector, but has shape ",
                           data.shape().DebugString());
  }
  if (indices.rank() != 1) {
    return InvalidArgument("indices should be a vector.");
  }
  if (ids.rank() != 1) {
    return InvalidArgument("segment_ids should be a vector.");
  }
  if (indices.size() != ids.size()) {
    return InvalidArgument("segment_ids and indices should have same size.");
  }
  return absl::OkStatus();
}

// The number of segments, when all indices and ids are right.
absl::StatusOr<int64_t> CheckedSegments(KernelContext& ctx) {
  const Tensor& data = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  const Tensor& ids = ctx.input(2);
  SLUICE_RETURN_IF_ERROR(CheckVectors(data, indices, ids));
  const int64_t count = ids.size();
  int64_t segments =
      count == 0 ? 0 : int64_t{ids.data<int32_t>()[count - 1]} + 1;
  if (ctx.num_inputs() == 4) {
    const Tensor& rows = ctx.input(3);
    if (rows.rank() != 0) {
      return InvalidArgument("num_segments should be a scalar, not shape ",
                             rows.shape().DebugString());
    }
    const int64_t given = IndexAt(rows, 0);
    if (given < segments) {
      return InvalidArgument("segment ids must be < num_segments");
    }
    segments = given;
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t id = ids.data<int32_t>()[i];
    if (i > 0 && id < ids.data<int32_t>()[i - 1]) {
      return InvalidArgument("segment ids are not increasing");
    }
    if (id < 0) {
      return InvalidArgument("Segment id ", id, " out of range [0, ", segments,
                             "), possibly because 'segment_ids' input is not "
                             "sorted.");
    }
    const int64_t index = IndexAt(indices, i);
    if (index < 0 || index >= data.dim(0)) {
      return InvalidArgument("Bad: indices[", i, "] == ", index,
                             " out of range [0, ", data.dim(0), ")");
    }
  }
  return segments;
}

absl::StatusOr<Shape> WithRows(const Shape& shape, int64_t rows) {
  absl::InlinedVector<int64_t, 6> dims(shape.dims().begin(),
                                       shape.dims().end());
  dims[0] = rows;
  return Shape::Create(std::span<const int64_t>(dims.data(), dims.size()));
}

template <typename T>
absl::Status Run(KernelContext& ctx, Kind kind) {
  SLUICE_ASSIGN_OR_RETURN(const int64_t segments, CheckedSegments(ctx));
  const Tensor& data = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  const auto ids = ctx.input(2).data<int32_t>();
  SLUICE_ASSIGN_OR_RETURN(const Shape shape, WithRows(data.shape(), segments));
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, shape));
  const int64_t width = SizeBetween(shape, 1, shape.rank());
  const T* from = data.data<T>().data();
  T* to = out.mutable_data<T>().data();
  // Segments without rows are 0.
  std::fill_n(to, out.size(), T(0));
  const auto count = static_cast<int64_t>(ids.size());
  for (int64_t i = 0; i < count;) {
    T* row = to + ids[i] * width;
    int64_t end = i;
    for (; end < count && ids[end] == ids[i]; ++end) {
      numeric::AddTo(row, from + IndexAt(indices, end) * width, width);
    }
    if (kind != Kind::kSum) {
      numeric::Scale(row, static_cast<T>(Factor(kind, end - i)), width);
    }
    i = end;
  }
  return absl::OkStatus();
}

// Each index gets its share of the gradient of its segment.
template <typename T>
absl::Status RunGrad(KernelContext& ctx, Kind kind) {
  const Tensor& grad = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  const Tensor& id_input = ctx.input(2);
  SLUICE_RETURN_IF_ERROR(CheckVectors(grad, indices, id_input));
  if (ctx.input(3).rank() != 0) {
    return InvalidArgument("output_dim0 should be a scalar.");
  }
  const int64_t rows = IndexAt(ctx.input(3), 0);
  const int64_t segments = grad.dim(0);
  const auto ids = id_input.data<int32_t>();
  if (!ids.empty() && ids.back() >= segments) {
    return InvalidArgument("Invalid number of segments");
  }
  std::vector<int64_t> counts(segments);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= segments) {
      return InvalidArgument("Segment id ", ids[i], " out of range [0, ",
                             segments, ").");
    }
    const int64_t index = IndexAt(indices, static_cast<int64_t>(i));
    if (index < 0 || index >= rows) {
      return InvalidArgument("Index ", index, " out of range [0, ", rows, ").");
    }
    ++counts[ids[i]];
  }
  SLUICE_ASSIGN_OR_RETURN(const Shape shape, WithRows(grad.shape(), rows));
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, shape));
  const int64_t width = SizeBetween(shape, 1, shape.rank());
  const T* from = grad.data<T>().data();
  T* to = out.mutable_data<T>().data();
  std::fill_n(to, out.size(), T(0));
  for (size_t i = 0; i < ids.size(); ++i) {
    numeric::AddScaledTo(to + IndexAt(indices, static_cast<int64_t>(i)) * width,
                         from + ids[i] * width,
                         static_cast<T>(Factor(kind, counts[ids[i]])), width);
  }
  return absl::OkStatus();
}

template <Kind kind>
struct SparseSegmentKernel {
  template <typename T>
  absl::Status operator()(KernelContext& ctx) const {
    return Run<T>(ctx, kind);
  }
};
template <Kind kind>
struct SparseSegmentGradKernel {
  template <typename T>
  absl::Status operator()(KernelContext& ctx) const {
    return RunGrad<T>(ctx, kind);
  }
};
using SumKernel = SparseSegmentKernel<Kind::kSum>;
using MeanKernel = SparseSegmentKernel<Kind::kMean>;
using SqrtNKernel = SparseSegmentKernel<Kind::kSqrtN>;

}  // namespace sparse_segment
}  // namespace

SLUICE_OP(SparseSegmentSum)
    .Input("data: T")
    .Input("indices: Tidx")
    .Input("segment_ids: int32")
    .Output("output: T")
    .Attr("T: realnumbertype")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Shape(sparse_segment::ShapeFunction)
    .Gradient(sparse_segment::SumGrad);
SLUICE_KERNEL(SparseSegmentSum, kCpu)
    .ForTypes<RealTypes>("T", sparse_segment::SumKernel());

SLUICE_OP(SparseSegmentSumWithNumSegments)
    .Input("data: T")
    .Input("indices: Tidx")
    .Input("segment_ids: int32")
    .Input("num_segments: Tnumsegments")
    .Output("output: T")
    .Attr("T: realnumbertype")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Attr("Tnumsegments: {int32, int64} = DT_INT32")
    .Shape(sparse_segment::ShapeWithRows)
    .Gradient(sparse_segment::SumGrad);
SLUICE_KERNEL(SparseSegmentSumWithNumSegments, kCpu)
    .HostMemory("num_segments")
    .ForTypes<RealTypes>("T", sparse_segment::SumKernel());

SLUICE_OP(SparseSegmentMean)
    .Input("data: T")
    .Input("indices: Tidx")
    .Input("segment_ids: int32")
    .Output("output: T")
    .Attr("T: {float, double}")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Shape(sparse_segment::ShapeFunction)
    .Gradient(sparse_segment::MeanGrad);
SLUICE_KERNEL(SparseSegmentMean, kCpu)
    .ForTypes<FloatTypes>("T", sparse_segment::MeanKernel());

SLUICE_OP(SparseSegmentMeanWithNumSegments)
    .Input("data: T")
    .Input("indices: Tidx")
    .Input("segment_ids: int32")
    .Input("num_segments: Tnumsegments")
    .Output("output: T")
    .Attr("T: {float, double}")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Attr("Tnumsegments: {int32, int64} = DT_INT32")
    .Shape(sparse_segment::ShapeWithRows)
    .Gradient(sparse_segment::MeanGrad);
SLUICE_KERNEL(SparseSegmentMeanWithNumSegments, kCpu)
    .HostMemory("num_segments")
    .ForTypes<FloatTypes>("T", sparse_segment::MeanKernel());

SLUICE_OP(SparseSegmentSqrtN)
    .Input("data: T")
    .Input("indices: Tidx")
    .Input("segment_ids: int32")
    .Output("output: T")
    .Attr("T: {float, double}")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Shape(sparse_segment::ShapeFunction)
    .Gradient(sparse_segment::SqrtNGrad);
SLUICE_KERNEL(SparseSegmentSqrtN, kCpu)
    .ForTypes<FloatTypes>("T", sparse_segment::SqrtNKernel());

SLUICE_OP(SparseSegmentSqrtNWithNumSegments)
    .Input("data: T")
    .Input("indices: Tidx")
    .Input("segment_ids: int32")
    .Input("num_segments: Tnumsegments")
    .Output("output: T")
    .Attr("T: {float, double}")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Attr("Tnumsegments: {int32, int64} = DT_INT32")
    .Shape(sparse_segment::ShapeWithRows)
    .Gradient(sparse_segment::SqrtNGrad);
SLUICE_KERNEL(SparseSegmentSqrtNWithNumSegments, kCpu)
    .HostMemory("num_segments")
    .ForTypes<FloatTypes>("T", sparse_segment::SqrtNKernel());

SLUICE_OP(SparseSegmentMeanGrad)
    .Input("grad: T")
    .Input("indices: Tidx")
    .Input("segment_ids: int32")
    .Input("output_dim0: int32")
    .Output("output: T")
    .Attr("T: {float, double}")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Shape(sparse_segment::GradShape);
SLUICE_KERNEL(SparseSegmentMeanGrad, kCpu)
    .HostMemory("output_dim0")
    .ForTypes<FloatTypes>(
        "T",
        sparse_segment::SparseSegmentGradKernel<sparse_segment::Kind::kMean>());

SLUICE_OP(SparseSegmentSqrtNGrad)
    .Input("grad: T")
    .Input("indices: Tidx")
    .Input("segment_ids: int32")
    .Input("output_dim0: int32")
    .Output("output: T")
    .Attr("T: {float, double}")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Shape(sparse_segment::GradShape);
SLUICE_KERNEL(SparseSegmentSqrtNGrad, kCpu)
    .HostMemory("output_dim0")
    .ForTypes<FloatTypes>("T", sparse_segment::SparseSegmentGradKernel<
                                   sparse_segment::Kind::kSqrtN>());

}  // namespace sluice
