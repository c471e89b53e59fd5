// ClipByValue: min(max(t, low), high).

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/binary.h"

namespace sluice {
namespace {
namespace clip {

template <typename T>
absl::Status Run(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  for (int i : {1, 2}) {
    const Tensor& bound = ctx.input(i);
    if (bound.rank() != 0 && bound.shape() != x.shape()) {
      return InvalidArgument(
          "clip_value_min and clip_value_max must be either of the same shape "
          "as input, or a scalar. input shape: ",
          x.shape().DebugString(),
          "clip_value_min shape: ", ctx.input(1).shape().DebugString(),
          "clip_value_max shape: ", ctx.input(2).shape().DebugString());
    }
  }
  // In place, unless x is also a bound, which the first loop would overwrite.
  const bool shared =
      x.SharesBufferWith(ctx.input(1)) || x.SharesBufferWith(ctx.input(2));
  SLUICE_ASSIGN_OR_RETURN(
      Tensor & out, shared ? ctx.Output(0, x.shape()) : ctx.OutputLike(0));
  const T* from = x.data<T>().data();
  const T* low = ctx.input(1).data<T>().data();
  const T* high = ctx.input(2).data<T>().data();
  const int64_t low_step = ctx.input(1).rank() == 0 ? 0 : 1;
  const int64_t high_step = ctx.input(2).rank() == 0 ? 0 : 1;
  T* to = out.mutable_data<T>().data();
  // In pieces, so that the second loop finds its data in the cache.
  constexpr int64_t kPiece = 1024;
  ctx.ParallelFor(
      x.size(),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i += kPiece) {
          const int64_t n = std::min(kPiece, end - i);
          numeric::BinaryMap<numeric::BinaryOp::kMinimum, T>(
              to + i, from + i, 1, high + i * high_step, high_step, n);
          numeric::BinaryMap<numeric::BinaryOp::kMaximum, T>(
              to + i, to + i, 1, low + i * low_step, low_step, n);
        }
      },
      0.5);
  return absl::OkStatus();
}

}  // namespace clip
}  // namespace

SLUICE_OP(ClipByValue)
    .Input("t: T")
    .Input("clip_value_min: T")
    .Input("clip_value_max: T")
    .Output("output: T")
    .Attr("T: numbertype")
    .Shape(shapes::SameAsInput);
SLUICE_KERNEL(ClipByValue, kCpu)
    .ForTypes<RealTypes>("T", []<typename T>(KernelContext& ctx) {
      return clip::Run<T>(ctx);
    });

}  // namespace sluice
