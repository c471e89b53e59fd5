// SegmentSum, SegmentMean, SegmentProd, SegmentMax, SegmentMin: rows that
// follow each other and have the same segment number are combined.

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/add_n.h"
#include "sluice/numeric/binary.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/math/python_math.h"

namespace sluice {
namespace {
namespace segment {

absl::Status ShapeFunction(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(PartialShape data, c.WithRankAtLeast(0, 1));
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  if (data.known_rank()) data.set_dim(0, PartialShape::kUnknownDim);
  c.set_output(0, std::move(data));
  return absl::OkStatus();
}

Grads SumGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return std::vector<Grad>{GatherRows(scope, dy[0], op.input(1)), Grad()};
}

Grads MeanGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output data = op.input(0), ids = op.input(1);
  const Output rank = RankTensor(scope, data);
  const Output ids_shape = ShapeTensor(scope, ids);
  const Output ones =
      python::FillOne(scope, ExpandFront(scope, python::Sub(scope, rank, 1)));
  const Output shape = ConcatAt(scope, {ids_shape, ones}, 0);
  const Output one = python::Constant(scope, 1, python::DTypeOfOutput(dy[0]));
  const Output rows = scope.Add("Fill", {shape, one});
  const Output counts = scope.Add("SegmentSum", {rows, ids});
  const Output scaled = python::TrueDiv(scope, dy[0], counts);
  return std::vector<Grad>{GatherRows(scope, scaled, ids), Grad()};
}

// Split equally among all that are the extreme.
Grads ExtremeGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output data = op.input(0), ids = op.input(1);
  const Output zeros = ZerosLikeTensor(scope, data);
  const Output results = GatherRows(scope, op.output(0), ids);
  const Output chosen = scope.Add("Equal", {data, results});
  const Output counts = scope.Add(
      "SegmentSum",
      {python::Cast(scope, chosen, python::DTypeOfOutput(dy[0])), ids});
  const Output shares = python::TrueDiv(scope, dy[0], counts);
  const Output gathered = GatherRows(scope, shares, ids);
  return std::vector<Grad>{python::Where(scope, chosen, gathered, zeros),
                           Grad()};
}

enum class Kind { kSum, kMean, kProd, kMax, kMin };

template <Kind kind, typename T>
void Combine(T* out, const T* row, int64_t n) {
  using numeric::BinaryMap;
  using numeric::BinaryOp;
  if constexpr (kind == Kind::kSum || kind == Kind::kMean) {
    numeric::AddTo(out, row, n);
  } else if constexpr (kind == Kind::kProd) {
    BinaryMap<BinaryOp::kMul, T>(out, out, 1, row, 1, n);
  } else if constexpr (kind == Kind::kMax) {
    BinaryMap<BinaryOp::kMaximum, T>(out, out, 1, row, 1, n);
  } else {
    BinaryMap<BinaryOp::kMinimum, T>(out, out, 1, row, 1, n);
  }
}

absl::Status CheckIds(const Tensor& data, const Tensor& ids) {
  if (ids.rank() != 1) {
    return InvalidArgument("segment_ids should be a vector.");
  }
  if (data.rank() < 1 || ids.dim(0) != data.dim(0)) {
    return InvalidArgument(
        "segment_ids should be the same size as dimension 0 of input.");
  }
  for (int64_t i = 1; i < ids.size(); ++i) {
    if (IndexAt(ids, i) < IndexAt(ids, i - 1)) {
      return InvalidArgument("segment ids are not increasing");
    }
  }
  if (ids.size() > 0 && IndexAt(ids, 0) < 0) {
    return InvalidArgument("Segment id ", IndexAt(ids, 0), " out of range [0, ",
                           IndexAt(ids, ids.size() - 1) + 1,
                           "), possibly because 'segment_ids' input is not "
                           "sorted.");
  }
  return absl::OkStatus();
}

template <Kind kind, typename T>
absl::Status Run(KernelContext& ctx) {
  const Tensor& data = ctx.input(0);
  const Tensor& ids = ctx.input(1);
  SLUICE_RETURN_IF_ERROR(CheckIds(data, ids));
  const int64_t rows = ids.size();
  const int64_t segments = rows == 0 ? 0 : IndexAt(ids, rows - 1) + 1;
  absl::InlinedVector<int64_t, 6> dims(data.shape().dims().begin(),
                                       data.shape().dims().end());
  dims[0] = segments;
  SLUICE_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::Create(std::span<const int64_t>(dims.data(), dims.size())));
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, shape));
  const int64_t width = SizeBetween(data.shape(), 1, data.rank());
  const T* from = data.data<T>().data();
  T* to = out.mutable_data<T>().data();
  int64_t next = 0;  // The first segment not yet written.
  for (int64_t i = 0; i < rows;) {
    const int64_t id = IndexAt(ids, i);
    // Segments without rows.
    std::fill_n(to + next * width, (id - next) * width,
                kind == Kind::kProd ? T(1) : T(0));
    T* row = to + id * width;
    std::copy_n(from + i * width, width, row);
    int64_t end = i + 1;
    for (; end < rows && IndexAt(ids, end) == id; ++end) {
      Combine<kind>(row, from + end * width, width);
    }
    if (kind == Kind::kMean) {
      const T count = static_cast<T>(end - i);
      for (int64_t j = 0; j < width; ++j) row[j] /= count;
    }
    next = id + 1;
    i = end;
  }
  return absl::OkStatus();
}

template <Kind kind>
struct SegmentKernel {
  template <typename T>
  absl::Status operator()(KernelContext& ctx) const {
    return Run<kind, T>(ctx);
  }
};

}  // namespace segment
}  // namespace

SLUICE_OP(SegmentSum)
    .Input("data: T")
    .Input("segment_ids: Tindices")
    .Output("output: T")
    .Attr("T: numbertype")
    .Attr("Tindices: {int32, int64}")
    .Shape(segment::ShapeFunction)
    .Gradient(segment::SumGrad);
SLUICE_KERNEL(SegmentSum, kCpu)
    .ForTypes<RealTypes>("T", segment::SegmentKernel<segment::Kind::kSum>());

SLUICE_OP(SegmentMean)
    .Input("data: T")
    .Input("segment_ids: Tindices")
    .Output("output: T")
    .Attr("T: numbertype")
    .Attr("Tindices: {int32, int64}")
    .Shape(segment::ShapeFunction)
    .Gradient(segment::MeanGrad);
SLUICE_KERNEL(SegmentMean, kCpu)
    .ForTypes<RealTypes>("T", segment::SegmentKernel<segment::Kind::kMean>());

SLUICE_OP(SegmentProd)
    .Input("data: T")
    .Input("segment_ids: Tindices")
    .Output("output: T")
    .Attr("T: numbertype")
    .Attr("Tindices: {int32, int64}")
    .Shape(segment::ShapeFunction);
SLUICE_KERNEL(SegmentProd, kCpu)
    .ForTypes<RealTypes>("T", segment::SegmentKernel<segment::Kind::kProd>());

SLUICE_OP(SegmentMax)
    .Input("data: T")
    .Input("segment_ids: Tindices")
    .Output("output: T")
    .Attr("T: realnumbertype")
    .Attr("Tindices: {int32, int64}")
    .Shape(segment::ShapeFunction)
    .Gradient(segment::ExtremeGrad);
SLUICE_KERNEL(SegmentMax, kCpu)
    .ForTypes<RealTypes>("T", segment::SegmentKernel<segment::Kind::kMax>());

SLUICE_OP(SegmentMin)
    .Input("data: T")
    .Input("segment_ids: Tindices")
    .Output("output: T")
    .Attr("T: realnumbertype")
    .Attr("Tindices: {int32, int64}")
    .Shape(segment::ShapeFunction)
    .Gradient(segment::ExtremeGrad);
SLUICE_KERNEL(SegmentMin, kCpu)
    .ForTypes<RealTypes>("T", segment::SegmentKernel<segment::Kind::kMin>());

}  // namespace sluice
