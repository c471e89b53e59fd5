// Pad and PadV2: a tensor with a border of one value.
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/array/move.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {
namespace {
namespace pad_ops {

absl::Status PadShape(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(const PartialShape matrix, c.WithRank(1, 2));
  SLUICE_RETURN_IF_ERROR(CheckDim(matrix.dim(1), 2));
  PartialShape in = c.input(0);
  if (matrix.dim(0) > kMaxRank) {
    return InvalidArgument("paddings has ", matrix.dim(0), " rows");
  }
  if (matrix.dim(0) >= 0) {
    SLUICE_ASSIGN_OR_RETURN(in, WithRank(in, static_cast<int>(matrix.dim(0))));
  }
  const std::optional<Tensor> paddings = c.input_value(1);
  if (paddings && !in.known_rank() && paddings->size() <= 2 * kMaxRank) {
    in = PartialShape::UnknownOfRank(static_cast<int>(paddings->size() / 2));
  }
  if (!in.known_rank()) return shapes::Unknown(c);
  const bool known = paddings && paddings->size() == 2 * in.rank();
  for (int i = 0; i < in.rank(); ++i) {
    if (!known) {
      in.set_dim(i, -1);
      continue;
    }
    const int64_t before = IndexAt(*paddings, 2 * i);
    const int64_t after = IndexAt(*paddings, 2 * i + 1);
    if (before < 0 || after < 0) {
      return InvalidArgument("Paddings must be non-negative");
    }
    in.set_dim(i, AddDims(AddDims(in.dim(i), before), after));
  }
  c.set_output(0, std::move(in));
  return absl::OkStatus();
}

absl::Status PadKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& paddings = ctx.input(1);
  if (paddings.rank() != 2 || paddings.dim(1) != 2) {
    return InvalidArgument("paddings must be a matrix with 2 columns: ",
                           paddings.shape().DebugString());
  }
  if (paddings.dim(0) != x.rank()) {
    return InvalidArgument(
        "The first dimension of paddings must be the rank of inputs",
        paddings.shape().DebugString(), " ", x.shape().DebugString());
  }
  const void* value = nullptr;  // Zero.
  if (ctx.num_inputs() == 3) {
    if (ctx.input(2).rank() != 0) {
      return InvalidArgument("constant_values must be a scalar. Found: ",
                             ctx.input(2).shape().DebugString());
    }
    value = ctx.input(2).raw();
  }
  IndexVector dims(x.shape().dims().begin(), x.shape().dims().end());
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t before = IndexAt(paddings, 2 * i);
    const int64_t after = IndexAt(paddings, 2 * i + 1);
    if (before < 0 || after < 0) {
      return InvalidArgument("Paddings must be non-negative: ", before, " ",
                             after);
    }
    if (__builtin_add_overflow(dims[i], before, &dims[i]) ||
        __builtin_add_overflow(dims[i], after, &dims[i])) {
      return InvalidArgument("The padded dimension ", i, " is too large");
    }
  }
  SLUICE_ASSIGN_OR_RETURN(
      const Shape shape,
      Shape::Create(std::span<const int64_t>(dims.data(), dims.size())));
  if (shape == x.shape()) {
    ctx.set_output(0, x);
    return absl::OkStatus();
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & y, ctx.Output(0, shape));
  if (value == nullptr) {
    FillWithZeros(ctx, y);
  } else {
    FillWith(ctx, y, value);
  }
  const Mover mover = MoverOf(x.dtype());
  const auto from = ByteSteps(x.shape(), mover.size);
  const auto to = ByteSteps(shape, mover.size);
  int64_t at = 0;
  Box box;
  for (int i = 0; i < x.rank(); ++i) {
    at += IndexAt(paddings, 2 * i) * to[i];
    box.Add(x.dim(i), to[i], from[i]);
  }
  MoveBox(ctx, mover, std::move(box), ElementAt(y, mover, 0) + at,
          ElementAt(x, mover, 0));
  return absl::OkStatus();
}

// The inside of dy.
Grads PadGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output x = op.input(0);
  const Output paddings = op.input(1);
  const DType index = BaseType(TypeOf(paddings));
  const Output column = StackWithInt(scope, RankTensor(scope, x), 1);
  const Scope slice = scope.NameScope("Slice");
  const Output before = AddAs(
      slice, "Slice", {paddings, slice.Named("begin").Ints({0, 0}), column});
  const Output begin = Flatten(scope, before);
  const Output size = ShapeTensor(scope, x, index);
  std::vector<Grad> grads(op.num_inputs());
  grads[0] = scope.Add("Slice", {dy[0], begin, size});
  return grads;
}

}  // namespace pad_ops
}  // namespace

SLUICE_OP(Pad)
    .Input("input: T")
    .Input("paddings: Tpaddings")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tpaddings: {int32, int64} = DT_INT32")
    .Shape(pad_ops::PadShape)
    .Gradient(pad_ops::PadGradient);

SLUICE_OP(PadV2)
    .Input("input: T")
    .Input("paddings: Tpaddings")
    .Input("constant_values: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tpaddings: {int32, int64} = DT_INT32")
    .Shape(pad_ops::PadShape)
    .Gradient(pad_ops::PadGradient);

SLUICE_KERNEL(Pad, kCpu).Function(pad_ops::PadKernel);
SLUICE_KERNEL(PadV2, kCpu).Function(pad_ops::PadKernel);

}  // namespace sluice
