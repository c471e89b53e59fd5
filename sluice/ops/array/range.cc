// Range and LinSpace: numbers at equal distances.
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace range_ops {

absl::Status CheckScalarShape(const ShapeContext& c, int input,
                              std::string_view name) {
  absl::Status status = c.WithRank(input, 0).status();
  if (status.ok()) return status;
  return WithMessage(status,
                     StrCat(ToStd(status.message()), "\n\t for '", name, "'"));
}

absl::Status CheckScalar(const Tensor& tensor, std::string_view name) {
  if (tensor.rank() == 0) return absl::OkStatus();
  return InvalidArgument(name, " must be a scalar, not shape ",
                         tensor.shape().DebugString());
}

// How many numbers start, start + delta, … lie before limit.
template <typename T>
absl::StatusOr<int64_t> RangeCount(T start, T limit, T delta) {
  if (delta > T(0) && start > limit) {
    return InvalidArgument("Requires start <= limit when delta > 0: ", start,
                           "/", limit);
  }
  if (delta < T(0) && start < limit) {
    return InvalidArgument("Requires start >= limit when delta < 0: ", start,
                           "/", limit);
  }
  if constexpr (std::is_integral_v<T>) {
    // In unsigned arithmetic, where no difference overflows.
    const uint64_t length = delta > 0 ? uint64_t(limit) - uint64_t(start)
                                      : uint64_t(start) - uint64_t(limit);
    const uint64_t step = delta > 0 ? uint64_t(delta) : -uint64_t(delta);
    const uint64_t count = length / step + (length % step != 0);
    if (count > uint64_t{INT64_MAX}) {
      return InvalidArgument("The range has too many elements");
    }
    return static_cast<int64_t>(count);
  } else {
    // In T: its rounding decides, as in TensorFlow, whether limit is met.
    const T count = std::ceil(std::abs((limit - start) / delta));
    if (!(count < T(9e18))) {
      return InvalidArgument("Requires finite start, limit and delta: ", start,
                             ", ", limit, ", ", delta);
    }
    return static_cast<int64_t>(count);
  }
}

template <typename T>
absl::StatusOr<int64_t> CountOf(const Tensor& start, const Tensor& limit,
                                const Tensor& delta, bool in_kernel) {
  const T step = static_cast<T>(delta.scalar<T>());
  if (step == T(0)) {
    return in_kernel ? InvalidArgument("Requires delta != 0: ", step)
                     : InvalidArgument("Requires delta != 0");
  }
  return RangeCount<T>(start.scalar<T>(), limit.scalar<T>(), step);
}

absl::Status RangeShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(CheckScalarShape(c, 0, "start"));
  SLUICE_RETURN_IF_ERROR(CheckScalarShape(c, 1, "limit"));
  SLUICE_RETURN_IF_ERROR(CheckScalarShape(c, 2, "delta"));
  c.set_output(0, {-1});
  const std::optional<Tensor> start = c.input_value(0);
  const std::optional<Tensor> limit = c.input_value(1);
  const std::optional<Tensor> delta = c.input_value(2);
  if (!start || !limit || !delta || start->size() != 1 || limit->size() != 1 ||
      delta->size() != 1) {
    return absl::OkStatus();
  }
  absl::StatusOr<int64_t> count = -1;
  switch (c.attr<DType>("Tidx")) {
    case DType::kInt32:
      count = CountOf<int32_t>(*start, *limit, *delta, false);
      break;
    case DType::kInt64:
      count = CountOf<int64_t>(*start, *limit, *delta, false);
      break;
    case DType::kFloat:
      count = CountOf<float>(*start, *limit, *delta, false);
      break;
    case DType::kDouble:
      count = CountOf<double>(*start, *limit, *delta, false);
      break;
    default:
      return absl::OkStatus();
  }
  SLUICE_RETURN_IF_ERROR(count.status());
  c.set_output(0, {*count});
  return absl::OkStatus();
}

template <typename T>
absl::Status RangeKernel(KernelContext& ctx) {
  SLUICE_RETURN_IF_ERROR(CheckScalar(ctx.input(0), "start"));
  SLUICE_RETURN_IF_ERROR(CheckScalar(ctx.input(1), "limit"));
  SLUICE_RETURN_IF_ERROR(CheckScalar(ctx.input(2), "delta"));
  SLUICE_ASSIGN_OR_RETURN(
      const int64_t count,
      CountOf<T>(ctx.input(0), ctx.input(1), ctx.input(2), true));
  SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, {count}));
  // Added up, not multiplied, as TensorFlow's rounding is.
  const T delta = ctx.input(2).scalar<T>();
  T value = ctx.input(0).scalar<T>();
  T* out = output.mutable_data<T>().data();
  for (int64_t i = 0; i < count; ++i) {
    out[i] = value;
    if (i + 1 < count) value += delta;
  }
  return absl::OkStatus();
}

absl::Status LinSpaceShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(CheckScalarShape(c, 0, "start"));
  SLUICE_RETURN_IF_ERROR(CheckScalarShape(c, 1, "stop"));
  SLUICE_RETURN_IF_ERROR(CheckScalarShape(c, 2, "num"));
  const std::optional<int64_t> count = KnownScalar(c, 2);
  if (count && *count <= 0) {
    return InvalidArgument("Requires num > 0: ", *count);
  }
  c.set_output(0, {count.value_or(-1)});
  return absl::OkStatus();
}

template <typename T>
absl::Status LinSpaceKernel(KernelContext& ctx) {
  SLUICE_RETURN_IF_ERROR(CheckScalar(ctx.input(0), "start"));
  SLUICE_RETURN_IF_ERROR(CheckScalar(ctx.input(1), "stop"));
  SLUICE_RETURN_IF_ERROR(CheckScalar(ctx.input(2), "num"));
  const T start = ctx.input(0).scalar<T>();
  const T stop = ctx.input(1).scalar<T>();
  const int64_t count = IndexAt(ctx.input(2), 0);
  if (count <= 0) return InvalidArgument("Requires num > 0: ", count);
  SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, {count}));
  T* out = output.mutable_data<T>().data();
  const T step = count > 1 ? (stop - start) / T(count - 1) : T(0);
  for (int64_t i = 0; i < count; ++i) out[i] = start + step * T(i);
  return absl::OkStatus();
}

}  // namespace range_ops
}  // namespace

SLUICE_OP(Range)
    .Input("start: Tidx")
    .Input("limit: Tidx")
    .Input("delta: Tidx")
    .Output("output: Tidx")
    .Attr("Tidx: {bfloat16, float, double, int32, int64} = DT_INT32")
    .Shape(range_ops::RangeShape)
    .NotDifferentiable();

SLUICE_OP(LinSpace)
    .Input("start: T")
    .Input("stop: T")
    .Input("num: Tidx")
    .Output("output: T")
    .Attr("T: {bfloat16, float, double}")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Shape(range_ops::LinSpaceShape)
    .NotDifferentiable();

SLUICE_KERNEL(Range, kCpu)
    .ForTypes<RealTypes>("Tidx", []<typename T>(KernelContext& ctx) {
      return range_ops::RangeKernel<T>(ctx);
    });
SLUICE_KERNEL(LinSpace, kCpu)
    .ForTypes<FloatTypes>("T", []<typename T>(KernelContext& ctx) {
      return range_ops::LinSpaceKernel<T>(ctx);
    });

}  // namespace sluice
