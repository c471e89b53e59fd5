// UnsortedSegmentSum, UnsortedSegmentProd, UnsortedSegmentMax,
// UnsortedSegmentMin: rows are combined into the segment that each names. Rows
// with negative numbers are left out.

#include <limits>

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/add_n.h"
#include "sluice/numeric/binary.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/math/python_math.h"

namespace sluice {
namespace {
namespace unsorted_segment {

absl::Status ShapeFunction(ShapeContext& c) {
  const PartialShape& data = c.input(0);
  const PartialShape& ids = c.input(1);
  if (c.input(2).known_rank() && c.input(2).rank() != 0) {
    return InvalidArgument("Shape must be rank 0 but is rank ",
                           c.input(2).rank());
  }
  int64_t segments = PartialShape::kUnknownDim;
  if (const std::optional<Tensor> value = c.input_value(2)) {
    segments = IndexAt(*value, 0);
    if (segments < 0) {
      return InvalidArgument(
          "Dimension size, given by scalar input 2, must be "
          "non-negative but is ",
          segments);
    }
  }
  if (!data.known_rank() || !ids.known_rank()) {
    c.set_output(0, PartialShape());
    return absl::OkStatus();
  }
  if (data.rank() < ids.rank()) {
    return InvalidArgument("Shape must be at least rank ", ids.rank(),
                           " but is rank ", data.rank());
  }
  PartialShape result({segments});
  for (int d = 0; d < data.rank(); ++d) {
    if (d >= ids.rank()) {
      result.AddDim(data.dim(d));
    } else if (data.dim(d) >= 0 && ids.dim(d) >= 0 &&
               data.dim(d) != ids.dim(d)) {
      return InvalidArgument("Dimensions must be equal, but are ", data.dim(d),
                             " and ", ids.dim(d));
    }
  }
  c.set_output(0, std::move(result));
  return absl::OkStatus();
}

// The row of `params` for each of `ids`, zeros for negative ones.
struct Gathered {
  Output rows;
  Output clipped;   // ids with 0 for negative ones.
  Output positive;  // Mask of the shape of rows.
};
Gathered GatherDroppingNegatives(const Scope& scope, Output params, Output ids,
                                 Output clipped = {}, Output positive = {}) {
  if (!clipped) {
    clipped = scope.Add("Maximum", {ids, ZerosLikeTensor(scope, ids)});
  }
  const Output gathered = GatherRows(scope, params, clipped);
  if (!gathered) return {};
  if (!positive) {
    positive = python::Call(scope, "GreaterEqual", ids, 0);
    if (positive && ShapeOf(gathered).known_rank() &&
        ShapeOf(positive).known_rank()) {
      const int missing = ShapeOf(gathered).rank() - ShapeOf(positive).rank();
      for (int i = 0; i < missing; ++i) {
        positive = python::ExpandDims(scope, positive, -1);
      }
    } else {
      scope.Fail(InvalidArgument(
          "The gradient of an unsorted segment op needs inputs of known rank"));
    }
    positive = python::And(scope, positive,
                           python::OnesLike(scope, gathered, DType::kBool));
  }
  const Output zeros = ZerosLikeTensor(scope, gathered);
  return {python::Where(scope, positive, gathered, zeros), clipped, positive};
}

Grads SumGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return std::vector<Grad>{
      GatherDroppingNegatives(scope, dy[0], op.input(1)).rows, Grad(), Grad()};
}

// Split equally among all that are the extreme.
Grads ExtremeGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output data = op.input(0), ids = op.input(1);
  const Gathered results = GatherDroppingNegatives(scope, op.output(0), ids);
  Output chosen = scope.Add("Equal", {data, results.rows});
  chosen = scope.Add("LogicalAnd", {chosen, results.positive});
  const Output counts =
      scope.Add("UnsortedSegmentSum",
                {python::Cast(scope, chosen, python::DTypeOfOutput(dy[0])), ids,
                 op.input(2)});
  const Output shares = python::TrueDiv(scope, dy[0], counts);
  const Gathered gathered = GatherDroppingNegatives(
      scope, shares, {}, results.clipped, results.positive);
  const Output zeros = ZerosLikeTensor(scope, gathered.rows);
  return std::vector<Grad>{python::Where(scope, chosen, gathered.rows, zeros),
                           Grad(), Grad()};
}

// The product of the others. With one zero in a segment that is the product of
// the rest for it and 0 for the rest; with more it is 0 for all.
Grads ProdGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output data = op.input(0), ids = op.input(1), segments = op.input(2);
  const Output is_zero = python::Call(scope, "Equal", data, 0);
  const Output zeros =
      scope.Add("UnsortedSegmentSum",
                {python::Cast(scope, is_zero, DType::kInt32), ids, segments});
  const Output many = python::Call(scope, "Greater", zeros, 1);
  const Output no_grad = ZerosLikeTensor(scope, dy[0]);
  const Output grad = python::Where(scope, many, no_grad, dy[0]);
  const Output ones =
      python::OnesLike(scope, data, python::DTypeOfOutput(data));
  const Output filled = python::Where(scope, is_zero, ones, data);
  const Output product =
      scope.Add("UnsortedSegmentProd", {filled, ids, segments});
  const Output clipped =
      scope.Add("Maximum", {ids, ZerosLikeTensor(scope, ids)});
  const Output whole = GatherRows(scope, op.output(0), clipped);
  const Output rest = GatherRows(scope, product, clipped);
  const Output divided = python::TrueDiv(scope, whole, data);
  const Output partial = python::Where(scope, is_zero, rest, divided);
  const Gathered gathered = GatherDroppingNegatives(scope, grad, ids, clipped);
  return std::vector<Grad>{python::Mul(scope, gathered.rows, partial), Grad(),
                           Grad()};
}

enum class Kind { kSum, kProd, kMax, kMin };

template <Kind kind, typename T>
constexpr T Neutral() {
  using Limits = std::numeric_limits<T>;
  if constexpr (kind == Kind::kSum) return T(0);
  if constexpr (kind == Kind::kProd) return T(1);
  if constexpr (kind == Kind::kMax) return Limits::lowest();
  return Limits::max();
}

template <Kind kind, typename T>
void Combine(T* out, const T* row, int64_t n) {
  using numeric::BinaryMap;
  using numeric::BinaryOp;
  if constexpr (kind == Kind::kSum) {
    numeric::AddTo(out, row, n);
  } else if constexpr (kind == Kind::kProd) {
    BinaryMap<BinaryOp::kMul, T>(out, out, 1, row, 1, n);
  } else if constexpr (kind == Kind::kMax) {
    BinaryMap<BinaryOp::kMaximum, T>(out, out, 1, row, 1, n);
  } else {
    BinaryMap<BinaryOp::kMinimum, T>(out, out, 1, row, 1, n);
  }
}

// "[1,2]" for element i of a tensor of this shape.
std::string IndexText(const Shape& shape, int64_t i) {
  std::string text;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    text = StrCat(i % shape.dim(d), text.empty() ? "" : ",", text);
    i /= shape.dim(d);
  }
  return StrCat("[", text, "]");
}

absl::StatusOr<Shape> OutputShape(const Tensor& data, const Tensor& ids,
                                  const Tensor& num_segments) {
  if (num_segments.rank() != 0) {
    return InvalidArgument("num_segments should be a scalar, not shape ",
                           num_segments.shape().DebugString());
  }
  const int64_t segments = IndexAt(num_segments, 0);
  if (segments < 0) {
    return InvalidArgument("Input num_segments == ", segments,
                           " must not be negative.");
  }
  const auto dims = data.shape().dims();
  if (ids.rank() > data.rank() ||
      !std::ranges::equal(ids.shape().dims(), dims.first(ids.rank()))) {
    return InvalidArgument(
        "data.shape = ", data.shape().DebugString(),
        " does not start with segment_ids.shape = ", ids.shape().DebugString());
  }
  absl::InlinedVector<int64_t, 6> result = {segments};
  for (int64_t dim : dims.subspan(ids.rank())) result.push_back(dim);
  return Shape::Create(std::span<const int64_t>(result.data(), result.size()));
}

template <Kind kind, typename T>
absl::Status Run(KernelContext& ctx) {
  const Tensor& data = ctx.input(0);
  const Tensor& ids = ctx.input(1);
  SLUICE_ASSIGN_OR_RETURN(const Shape shape,
                          OutputShape(data, ids, ctx.input(2)));
  const int64_t segments = shape.dim(0);
  for (int64_t i = 0; i < ids.size(); ++i) {
    if (IndexAt(ids, i) >= segments) {
      return InvalidArgument("segment_ids", IndexText(ids.shape(), i), " = ",
                             IndexAt(ids, i), " is out of range [0, ", segments,
                             ")");
    }
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, shape));
  const int64_t width = SizeBetween(shape, 1, shape.rank());
  const T* from = data.data<T>().data();
  T* to = out.mutable_data<T>().data();
  std::fill_n(to, out.size(), Neutral<kind, T>());
  for (int64_t i = 0; i < ids.size(); ++i) {
    const int64_t id = IndexAt(ids, i);
    if (id < 0) continue;
    Combine<kind>(to + id * width, from + i * width, width);
  }
  return absl::OkStatus();
}

template <Kind kind>
struct UnsortedSegmentKernel {
  template <typename T>
  absl::Status operator()(KernelContext& ctx) const {
    return Run<kind, T>(ctx);
  }
};

}  // namespace unsorted_segment
}  // namespace

SLUICE_OP(UnsortedSegmentSum)
    .Input("data: T")
    .Input("segment_ids: Tindices")
    .Input("num_segments: Tnumsegments")
    .Output("output: T")
    .Attr("T: numbertype")
    .Attr("Tindices: {int32, int64}")
    .Attr("Tnumsegments: {int32, int64} = DT_INT32")
    .Shape(unsorted_segment::ShapeFunction)
    .Gradient(unsorted_segment::SumGrad);
SLUICE_KERNEL(UnsortedSegmentSum, kCpu)
    .HostMemory("num_segments")
    .ForTypes<RealTypes>("T", unsorted_segment::UnsortedSegmentKernel<
                                  unsorted_segment::Kind::kSum>());

SLUICE_OP(UnsortedSegmentProd)
    .Input("data: T")
    .Input("segment_ids: Tindices")
    .Input("num_segments: Tnumsegments")
    .Output("output: T")
    .Attr("T: numbertype")
    .Attr("Tindices: {int32, int64}")
    .Attr("Tnumsegments: {int32, int64} = DT_INT32")
    .Shape(unsorted_segment::ShapeFunction)
    .Gradient(unsorted_segment::ProdGrad);
SLUICE_KERNEL(UnsortedSegmentProd, kCpu)
    .HostMemory("num_segments")
    .ForTypes<RealTypes>("T", unsorted_segment::UnsortedSegmentKernel<
                                  unsorted_segment::Kind::kProd>());

SLUICE_OP(UnsortedSegmentMax)
    .Input("data: T")
    .Input("segment_ids: Tindices")
    .Input("num_segments: Tnumsegments")
    .Output("output: T")
    .Attr("T: realnumbertype")
    .Attr("Tindices: {int32, int64}")
    .Attr("Tnumsegments: {int32, int64} = DT_INT32")
    .Shape(unsorted_segment::ShapeFunction)
    .Gradient(unsorted_segment::ExtremeGrad);
SLUICE_KERNEL(UnsortedSegmentMax, kCpu)
    .HostMemory("num_segments")
    .ForTypes<RealTypes>("T", unsorted_segment::UnsortedSegmentKernel<
                                  unsorted_segment::Kind::kMax>());

SLUICE_OP(UnsortedSegmentMin)
    .Input("data: T")
    .Input("segment_ids: Tindices")
    .Input("num_segments: Tnumsegments")
    .Output("output: T")
    .Attr("T: realnumbertype")
    .Attr("Tindices: {int32, int64}")
    .Attr("Tnumsegments: {int32, int64} = DT_INT32")
    .Shape(unsorted_segment::ShapeFunction)
    .Gradient(unsorted_segment::ExtremeGrad);
SLUICE_KERNEL(UnsortedSegmentMin, kCpu)
    .HostMemory("num_segments")
    .ForTypes<RealTypes>("T", unsorted_segment::UnsortedSegmentKernel<
                                  unsorted_segment::Kind::kMin>());

}  // namespace sluice
