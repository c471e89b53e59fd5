// StatelessRandomUniform, -Normal, -UniformInt, StatelessTruncatedNormal:
// random numbers that depend on nothing but the seed given as input.

#include "sluice/graph/op_registry.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/random/random_stream.h"

namespace sluice {
namespace {

absl::Status StatelessRandomShape(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(const PartialShape seed, c.WithRank(1, 1));
  if (seed.dim(0) >= 0 && seed.dim(0) != 2) {
    return InvalidArgument("Dimension must be 2 but is ", seed.dim(0));
  }
  return InferRandomShape(c);
}

absl::Status StatelessRandomIntShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(2, 0).status());
  SLUICE_RETURN_IF_ERROR(c.WithRank(3, 0).status());
  return StatelessRandomShape(c);
}

template <RandomFill (*kFillOf)(DType)>
absl::Status StatelessNumbers(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const Shape shape, RandomShapeOf(ctx.input(0)));
  SLUICE_ASSIGN_OR_RETURN(const Philox stream, StatelessStream(ctx.input(1)));
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, shape));
  FillTensor(ctx, kFillOf(out.dtype()), stream, out);
  return absl::OkStatus();
}

absl::Status StatelessInts(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const Shape shape, RandomShapeOf(ctx.input(0)));
  SLUICE_ASSIGN_OR_RETURN(const Philox stream, StatelessStream(ctx.input(1)));
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, shape));
  return FillTensorWithInts(ctx, stream, ctx.input(2), ctx.input(3), out);
}

}  // namespace

SLUICE_OP(StatelessRandomUniform)
    .Input("shape: T")
    .Input("seed: Tseed")
    .Output("output: dtype")
    .Attr("dtype: {half, bfloat16, float, double} = DT_FLOAT")
    .Attr("T: {int32, int64} = DT_INT32")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .Shape(StatelessRandomShape)
    .NotDifferentiable();

SLUICE_OP(StatelessRandomNormal)
    .Input("shape: T")
    .Input("seed: Tseed")
    .Output("output: dtype")
    .Attr("dtype: {half, bfloat16, float, double} = DT_FLOAT")
    .Attr("T: {int32, int64} = DT_INT32")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .Shape(StatelessRandomShape)
    .NotDifferentiable();

SLUICE_OP(StatelessTruncatedNormal)
    .Input("shape: T")
    .Input("seed: Tseed")
    .Output("output: dtype")
    .Attr("dtype: {half, bfloat16, float, double} = DT_FLOAT")
    .Attr("T: {int32, int64} = DT_INT32")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .Shape(StatelessRandomShape)
    .NotDifferentiable();

SLUICE_OP(StatelessRandomUniformInt)
    .Input("shape: T")
    .Input("seed: Tseed")
    .Input("minval: dtype")
    .Input("maxval: dtype")
    .Output("output: dtype")
    .Attr("dtype: {int32, int64}")
    .Attr("T: {int32, int64}")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .Shape(StatelessRandomIntShape)
    .NotDifferentiable();

SLUICE_KERNEL(StatelessRandomUniform, kCpu)
    .Function(StatelessNumbers<UniformFill>);
SLUICE_KERNEL(StatelessRandomNormal, kCpu)
    .Function(StatelessNumbers<NormalFill>);
SLUICE_KERNEL(StatelessTruncatedNormal, kCpu)
    .Function(StatelessNumbers<TruncatedNormalFill>);
SLUICE_KERNEL(StatelessRandomUniformInt, kCpu).Function(StatelessInts);

}  // namespace sluice
