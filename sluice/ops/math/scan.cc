// Cumsum and Cumprod: running sums and products along a dimension.

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/reduce.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/math/python_math.h"

namespace sluice {
namespace {
namespace scan {

// A scan like that of `op`, or the other way round.
Output ScanLike(const Scope& scope, const Node& op, std::string_view name,
                Output x, bool turned) {
  const bool reverse = op.attr<bool>("reverse");
  return scope.Add(name, {x, op.input(1)},
                   {{"exclusive", op.attr<bool>("exclusive")},
                    {"reverse", turned ? !reverse : reverse}});
}

Grads CumsumGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  return std::vector<Grad>{ScanLike(scope, op, "Cumsum", dy[0], true), Grad()};
}

// Wrong where x holds zeros, as in TensorFlow.
Grads CumprodGrad(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output x = op.input(0);
  const Output product = ScanLike(scope, op, "Cumprod", x, false);
  const Output sum =
      ScanLike(scope, op, "Cumsum", python::Mul(scope, product, dy[0]), true);
  return std::vector<Grad>{python::TrueDiv(scope, sum, x), Grad()};
}

template <typename T>
absl::Status Run(KernelContext& ctx, bool product) {
  const Tensor& x = ctx.input(0);
  const Tensor& axis_input = ctx.input(1);
  if (axis_input.rank() != 0) {
    return InvalidArgument("ScanOp: axis must be a scalar, not ",
                           axis_input.shape().DebugString());
  }
  const int axis = AxisFromFront(IndexAt(axis_input, 0), x.rank());
  if (axis < 0) {
    return InvalidArgument("ScanOp: Expected scan axis in the range [",
                           -x.rank(), ", ", x.rank(), "), but got ",
                           IndexAt(axis_input, 0));
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.OutputLike(0));
  const numeric::ScanOptions options{.product = product,
                                     .exclusive = ctx.attr<bool>("exclusive"),
                                     .reverse = ctx.attr<bool>("reverse")};
  if (x.size() == 0) return absl::OkStatus();
  const int64_t size = x.dim(axis);
  const int64_t inner = SizeBetween(x.shape(), axis + 1, x.rank());
  const T* from = x.data<T>().data();
  T* to = out.mutable_data<T>().data();
  ctx.ParallelFor(
      SizeBetween(x.shape(), 0, axis),
      [&](int64_t begin, int64_t end) {
        const int64_t offset = begin * size * inner;
        numeric::Scan(to + offset, from + offset, end - begin, size, inner,
                      options);
      },
      static_cast<double>(size * inner));
  return absl::OkStatus();
}

}  // namespace scan
}  // namespace

SLUICE_OP(Cumsum)
    .Input("x: T")
    .Input("axis: Tidx")
    .Output("out: T")
    .Attr("exclusive: bool = false")
    .Attr("reverse: bool = false")
    .Attr("T: numbertype")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Shape(shapes::SameAsInput)
    .Gradient(scan::CumsumGrad);
SLUICE_KERNEL(Cumsum, kCpu)
    .HostMemory("axis")
    .ForTypes<RealTypes>("T", []<typename T>(KernelContext& ctx) {
      return scan::Run<T>(ctx, /*product=*/false);
    });

SLUICE_OP(Cumprod)
    .Input("x: T")
    .Input("axis: Tidx")
    .Output("out: T")
    .Attr("exclusive: bool = false")
    .Attr("reverse: bool = false")
    .Attr("T: numbertype")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Shape(shapes::SameAsInput)
    .Gradient(scan::CumprodGrad);
SLUICE_KERNEL(Cumprod, kCpu)
    .HostMemory("axis")
    .ForTypes<RealTypes>("T", []<typename T>(KernelContext& ctx) {
      return scan::Run<T>(ctx, /*product=*/true);
    });

}  // namespace sluice
