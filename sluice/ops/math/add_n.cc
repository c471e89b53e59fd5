// AddN and AccumulateNV2: the sum of tensors of one shape.

#include "sluice/numeric/add_n.h"

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace add_n {

absl::Status ShapeFunction(ShapeContext& c) {
  PartialShape merged = c.input(c.num_inputs() - 1);
  for (int i = c.num_inputs() - 2; i >= 0; --i) {
    absl::StatusOr<PartialShape> both = MergeShapes(c.input(i), merged);
    if (!both.ok()) {
      return WithMessage(both.status(), StrCat(ToStd(both.status().message()),
                                               "\n\tFrom merging shape ", i,
                                               " with other shapes."));
    }
    merged = *std::move(both);
  }
  c.set_output(0, std::move(merged));
  return absl::OkStatus();
}

Grads Gradient(Scope&, const Node& op, std::span<const Output> dy) {
  return std::vector<Grad>(op.num_inputs(), dy[0]);
}
Grads SlicesGradient(Scope&, const Node& op, std::span<const Grad> dy) {
  return std::vector<Grad>(op.num_inputs(), dy[0]);
}

template <typename T>
absl::Status Run(KernelContext& ctx) {
  const Tensor& first = ctx.input(0);
  const int count = ctx.num_inputs();
  absl::InlinedVector<const T*, 8> inputs(count);
  for (int i = 0; i < count; ++i) {
    const Tensor& input = ctx.input(i);
    if (input.shape() != first.shape()) {
      return InvalidArgument("Inputs to operation ", ctx.node().name(),
                             " of type ", ctx.node().type(),
                             " must have the same size and shape.  Input 0: ",
                             first.shape().DebugString(), " != input ", i, ": ",
                             input.shape().DebugString());
    }
    inputs[i] = input.data<T>().data();
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.OutputLike(0));
  T* to = out.mutable_data<T>().data();
  const int64_t n = first.size();
  if (n <= 2048) {
    numeric::AddN<T>(to, {inputs.data(), inputs.size()}, n);
    return absl::OkStatus();
  }
  ctx.ParallelFor(
      n,
      [&](int64_t begin, int64_t end) {
        absl::InlinedVector<const T*, 8> parts(count);
        for (int i = 0; i < count; ++i) parts[i] = inputs[i] + begin;
        numeric::AddN<T>(to + begin, {parts.data(), parts.size()}, end - begin);
      },
      0.2 * count);
  return absl::OkStatus();
}

}  // namespace add_n
}  // namespace

SLUICE_OP(AddN)
    .Input("inputs: N * T")
    .Output("sum: T")
    .Attr("N: int >= 1")
    .Attr(
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, "
        "qint8, quint8, qint32, bfloat16, uint16, complex128, half, uint32, "
        "uint64, variant}")
    .Aggregate()
    .Commutative()
    .Shape(add_n::ShapeFunction)
    .Gradient(add_n::Gradient)
    .SlicesGradient(add_n::SlicesGradient);
SLUICE_KERNEL(AddN, kCpu)
    .ForTypes<RealTypes>("T", []<typename T>(KernelContext& ctx) {
      return add_n::Run<T>(ctx);
    });

SLUICE_OP(AccumulateNV2)
    .Input("inputs: N * T")
    .Output("sum: T")
    .Attr("N: int >= 1")
    .Attr("T: numbertype")
    .Attr("shape: shape")
    .Aggregate()
    .Commutative()
    .Shape(shapes::FromShapeAttr)
    .Gradient(add_n::Gradient)
    .SlicesGradient(add_n::SlicesGradient);
SLUICE_KERNEL(AccumulateNV2, kCpu)
    .ForTypes<RealTypes>("T", []<typename T>(KernelContext& ctx) {
      return add_n::Run<T>(ctx);
    });

}  // namespace sluice
