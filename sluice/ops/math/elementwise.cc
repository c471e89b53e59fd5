#include "sluice/ops/math/elementwise.h"

#include "sluice/numeric/broadcast.h"

namespace sluice {
namespace {
namespace elementwise {

// Up to here nothing is gained by asking whether to split.
constexpr int64_t kSmall = 2048;

template <typename T>
T* Advance(T* base, int64_t elements, int size) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return static_cast<Byte*>(base) + elements * size;
}

// `out` elements in one run, through which a and b go by their steps.
absl::Status RunFlat(KernelContext& ctx, const BinaryLoop& loop, Tensor& out,
                     int64_t a_step, int64_t b_step) {
  const int64_t n = out.size();
  void* to = out.mutable_raw();
  const void* a = ctx.input(0).raw();
  const void* b = ctx.input(1).raw();
  if (n <= kSmall) {
    if (n > 0) loop.run(to, a, a_step, b, b_step, n);
    return absl::OkStatus();
  }
  ctx.ParallelFor(
      n,
      [&](int64_t begin, int64_t end) {
        loop.run(Advance(to, begin, loop.output_size),
                 Advance(a, begin * a_step, loop.input_size), a_step,
                 Advance(b, begin * b_step, loop.input_size), b_step,
                 end - begin);
      },
      loop.nanos);
  return absl::OkStatus();
}

absl::Status RunBroadcast(KernelContext& ctx, const BinaryLoop& loop) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  numeric::BroadcastPlan plan;
  if (!plan.Make(a.shape().dims(), b.shape().dims())) {
    return InvalidArgument("Incompatible shapes: ", a.shape().DebugString(),
                           " vs. ", b.shape().DebugString());
  }
  SLUICE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(plan.dims()));
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.OutputFrom({0, 1}, 0, shape));
  if (out.size() == 0) return absl::OkStatus();
  const int64_t row = plan.row_size();
  if (plan.rows() == 1) {
    return RunFlat(ctx, loop, out, plan.a_step(), plan.b_step());
  }
  ctx.ParallelFor(
      plan.rows(),
      [&](int64_t begin, int64_t end) {
        plan.ForRows(begin, end, [&](int64_t at, int64_t x, int64_t y) {
          loop.run(Advance(out.mutable_raw(), at * row, loop.output_size),
                   Advance(a.raw(), x, loop.input_size), plan.a_step(),
                   Advance(b.raw(), y, loop.input_size), plan.b_step(), row);
        });
      },
      loop.nanos * static_cast<double>(row) + 5);
  return absl::OkStatus();
}

}  // namespace elementwise
}  // namespace

absl::Status RunBinary(KernelContext& ctx, const BinaryLoop& loop) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  if (a.shape() == b.shape()) {
    SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.OutputFrom({0, 1}, 0, a.shape()));
    return elementwise::RunFlat(ctx, loop, out, 1, 1);
  }
  if (b.rank() == 0) {
    SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.OutputFrom({0}, 0, a.shape()));
    return elementwise::RunFlat(ctx, loop, out, 1, 0);
  }
  if (a.rank() == 0) {
    SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.OutputFrom({1}, 0, b.shape()));
    return elementwise::RunFlat(ctx, loop, out, 0, 1);
  }
  return elementwise::RunBroadcast(ctx, loop);
}

absl::Status RunBinarySameShape(KernelContext& ctx, const BinaryLoop& loop) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  if (a.shape() != b.shape()) {
    return InvalidArgument("Inputs to ", ctx.node().type(),
                           " must have the same shape, but they are ",
                           a.shape().DebugString(), " and ",
                           b.shape().DebugString());
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.OutputFrom({0, 1}, 0, a.shape()));
  return elementwise::RunFlat(ctx, loop, out, 1, 1);
}

absl::Status RunUnary(KernelContext& ctx, const UnaryLoop& loop) {
  const Tensor& x = ctx.input(0);
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.OutputFrom({0}, 0, x.shape()));
  const int64_t n = x.size();
  if (n <= elementwise::kSmall) {
    if (n > 0) loop.run(out.mutable_raw(), x.raw(), n);
    return absl::OkStatus();
  }
  const int64_t in_size = static_cast<int64_t>(ElementSize(x.dtype()));
  const int64_t out_size = static_cast<int64_t>(ElementSize(out.dtype()));
  const char* from = static_cast<const char*>(x.raw());
  char* to = static_cast<char*>(out.mutable_raw());
  ctx.ParallelFor(
      n,
      [&](int64_t begin, int64_t end) {
        loop.run(to + begin * out_size, from + begin * in_size, end - begin);
      },
      loop.nanos);
  return absl::OkStatus();
}

}  // namespace sluice
