// Sum, Mean, Prod, Max, Min, All, Any, EuclideanNorm.

#include "sluice/ops/math/reduction.h"

#include <cmath>

#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/add_n.h"
#include "sluice/numeric/unary.h"
#include "sluice/ops/array/index_values.h"

namespace sluice {

absl::Status ReductionShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  const bool keep_dims = c.attr<bool>("keep_dims");
  const std::optional<Tensor> axes =
      input.known_rank() ? c.input_value(1) : std::nullopt;
  if (!axes) {
    c.set_output(0, keep_dims && input.known_rank()
                        ? PartialShape::UnknownOfRank(input.rank())
                        : PartialShape());
    return absl::OkStatus();
  }
  absl::InlinedVector<bool, 8> reduced(input.rank(), false);
  for (int64_t i = 0; i < axes->size(); ++i) {
    const int axis = AxisFromFront(IndexAt(*axes, i), input.rank());
    if (axis < 0) {
      return InvalidArgument("Invalid reduction dimension ", IndexAt(*axes, i),
                             " for input with ", input.rank(), " dimensions.");
    }
    reduced[axis] = true;
  }
  PartialShape result = PartialShape::Scalar();
  for (int d = 0; d < input.rank(); ++d) {
    if (!reduced[d]) {
      result.AddDim(input.dim(d));
    } else if (keep_dims) {
      result.AddDim(1);
    }
  }
  c.set_output(0, std::move(result));
  return absl::OkStatus();
}

absl::StatusOr<Reduction> Reduction::Make(KernelContext& ctx, bool keep_dims) {
  const Shape& input = ctx.input(0).shape();
  const Tensor& axes = ctx.input(1);
  absl::InlinedVector<bool, 8> reduced(input.rank(), false);
  for (int64_t i = 0; i < axes.size(); ++i) {
    const int axis = AxisFromFront(IndexAt(axes, i), input.rank());
    if (axis < 0) {
      return InvalidArgument("Invalid reduction dimension (", IndexAt(axes, i),
                             " for input with ", input.rank(), " dimension(s)");
    }
    reduced[axis] = true;
  }
  Shape result;
  for (int d = 0; d < input.rank(); ++d) {
    if (!reduced[d]) {
      result.AddDim(input.dim(d));
    } else if (keep_dims) {
      result.AddDim(1);
    }
  }
  return Reduction{
      numeric::ReducePlan(input.dims(), {reduced.data(), reduced.size()}),
      std::move(result)};
}

namespace {
namespace reduction {

// What is done with the elements beside combining them.
enum class Kind { kPlain, kMean, kNorm };

template <numeric::ReduceOp op, typename T, Kind kind>
class ReductionKernel : public Kernel {
 public:
  explicit ReductionKernel(bool keep_dims) : keep_dims_(keep_dims) {}
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<ReductionKernel>(
        construction.attr<bool>("keep_dims"));
  }

  absl::Status Run(KernelContext& ctx) override {
    SLUICE_ASSIGN_OR_RETURN(const Reduction reduction,
                            Reduction::Make(ctx, keep_dims_));
    const Tensor& x = ctx.input(0);
    // Nothing to combine: the elements stay as they are.
    if (reduction.plan.reduced == 1) {
      ctx.set_output(0, x.Reshaped(reduction.shape));
      return absl::OkStatus();
    }
    SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, reduction.shape));
    T* to = out.mutable_data<T>().data();
    const T* from = x.data<T>().data();
    if constexpr (kind == Kind::kNorm) {
      SLUICE_ASSIGN_OR_RETURN(Tensor squares,
                              Tensor::Create(x.dtype(), x.shape()));
      T* square = squares.mutable_data<T>().data();
      for (int64_t i = 0; i < x.size(); ++i) square[i] = from[i] * from[i];
      numeric::Reduce<op, T>(to, square, reduction.plan);
      for (int64_t i = 0; i < out.size(); ++i) {
        to[i] = static_cast<T>(std::sqrt(static_cast<double>(to[i])));
      }
      return absl::OkStatus();
    }
    numeric::Reduce<op, T>(to, from, reduction.plan);
    if constexpr (kind == Kind::kMean) Divide(to, out.size(), reduction);
    return absl::OkStatus();
  }

 private:
  static void Divide(T* values, int64_t n, const Reduction& reduction) {
    const int64_t count = reduction.plan.reduced;
    if constexpr (std::is_integral_v<T>) {
      for (int64_t i = 0; i < n && count != 0; ++i) {
        values[i] = static_cast<T>(values[i] / count);
      }
    } else {
      // The mean of nothing is 0 / 0.
      for (int64_t i = 0; i < n; ++i) values[i] /= static_cast<T>(count);
    }
  }

  const bool keep_dims_;
};

template <typename T>
using SumKernel = ReductionKernel<numeric::ReduceOp::kSum, T, Kind::kPlain>;
template <typename T>
using MeanKernel = ReductionKernel<numeric::ReduceOp::kSum, T, Kind::kMean>;
template <typename T>
using NormKernel = ReductionKernel<numeric::ReduceOp::kSum, T, Kind::kNorm>;
template <typename T>
using ProdKernel = ReductionKernel<numeric::ReduceOp::kProd, T, Kind::kPlain>;
template <typename T>
using MaxKernel = ReductionKernel<numeric::ReduceOp::kMax, T, Kind::kPlain>;
template <typename T>
using MinKernel = ReductionKernel<numeric::ReduceOp::kMin, T, Kind::kPlain>;
using AllKernel = ReductionKernel<numeric::ReduceOp::kAnd, bool, Kind::kPlain>;
using AnyKernel = ReductionKernel<numeric::ReduceOp::kOr, bool, Kind::kPlain>;

}  // namespace reduction
}  // namespace

SLUICE_OP(Sum)
    .Input("input: T")
    .Input("reduction_indices: Tidx")
    .Output("output: T")
    .Attr("keep_dims: bool = false")
    .Attr("T: numbertype")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Shape(ReductionShape)
    .Gradient(SumGradient);
SLUICE_KERNEL(Sum, kCpu)
    .HostMemory("reduction_indices")
    .ClassForTypes<RealTypes, reduction::SumKernel>("T");

SLUICE_OP(Mean)
    .Input("input: T")
    .Input("reduction_indices: Tidx")
    .Output("output: T")
    .Attr("keep_dims: bool = false")
    .Attr("T: numbertype")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Shape(ReductionShape)
    .Gradient(MeanGradient);
SLUICE_KERNEL(Mean, kCpu)
    .HostMemory("reduction_indices")
    .ClassForTypes<RealTypes, reduction::MeanKernel>("T");

SLUICE_OP(Prod)
    .Input("input: T")
    .Input("reduction_indices: Tidx")
    .Output("output: T")
    .Attr("keep_dims: bool = false")
    .Attr("T: numbertype")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Shape(ReductionShape)
    .Gradient(ProdGradient);
SLUICE_KERNEL(Prod, kCpu)
    .HostMemory("reduction_indices")
    .ClassForTypes<RealTypes, reduction::ProdKernel>("T");

SLUICE_OP(Max)
    .Input("input: T")
    .Input("reduction_indices: Tidx")
    .Output("output: T")
    .Attr("keep_dims: bool = false")
    .Attr("T: numbertype")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Shape(ReductionShape)
    .Gradient(ExtremeGradient);
SLUICE_KERNEL(Max, kCpu)
    .HostMemory("reduction_indices")
    .ClassForTypes<RealTypes, reduction::MaxKernel>("T");

SLUICE_OP(Min)
    .Input("input: T")
    .Input("reduction_indices: Tidx")
    .Output("output: T")
    .Attr("keep_dims: bool = false")
    .Attr("T: numbertype")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Shape(ReductionShape)
    .Gradient(ExtremeGradient);
SLUICE_KERNEL(Min, kCpu)
    .HostMemory("reduction_indices")
    .ClassForTypes<RealTypes, reduction::MinKernel>("T");

SLUICE_OP(All)
    .Input("input: bool")
    .Input("reduction_indices: Tidx")
    .Output("output: bool")
    .Attr("keep_dims: bool = false")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Shape(ReductionShape);
SLUICE_KERNEL(All, kCpu)
    .HostMemory("reduction_indices")
    .Class<reduction::AllKernel>();

SLUICE_OP(Any)
    .Input("input: bool")
    .Input("reduction_indices: Tidx")
    .Output("output: bool")
    .Attr("keep_dims: bool = false")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Shape(ReductionShape);
SLUICE_KERNEL(Any, kCpu)
    .HostMemory("reduction_indices")
    .Class<reduction::AnyKernel>();

SLUICE_OP(EuclideanNorm)
    .Input("input: T")
    .Input("reduction_indices: Tidx")
    .Output("output: T")
    .Attr("keep_dims: bool = false")
    .Attr("T: numbertype")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Shape(ReductionShape)
    .NotDifferentiable();
SLUICE_KERNEL(EuclideanNorm, kCpu)
    .HostMemory("reduction_indices")
    .ClassForTypes<RealTypes, reduction::NormKernel>("T");

}  // namespace sluice
