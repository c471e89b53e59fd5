// RandomUniform, RandomStandardNormal, TruncatedNormal, RandomUniformInt:
// tensors of random numbers from a kernel's own stream.

#include "sluice/graph/op_registry.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/random/random_stream.h"

namespace sluice {
namespace {

absl::Status RandomIntShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  SLUICE_RETURN_IF_ERROR(c.WithRank(2, 0).status());
  return InferRandomShape(c);
}

template <RandomFill (*kFillOf)(DType)>
class RandomNumbersKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<RandomNumbersKernel>(construction);
  }
  explicit RandomNumbersKernel(const KernelConstruction& construction)
      : fill_(kFillOf(construction.node().output_type(0))),
        stream_(construction) {}

  absl::Status Run(KernelContext& ctx) override {
    SLUICE_ASSIGN_OR_RETURN(const Shape shape, RandomShapeOf(ctx.input(0)));
    SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, shape));
    FillTensor(ctx, fill_, stream_.Take(out.size()), out);
    return absl::OkStatus();
  }

 private:
  const RandomFill fill_;
  RandomStream stream_;
};

class RandomUniformIntKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<RandomUniformIntKernel>(construction);
  }
  explicit RandomUniformIntKernel(const KernelConstruction& construction)
      : stream_(construction) {}

  absl::Status Run(KernelContext& ctx) override {
    SLUICE_ASSIGN_OR_RETURN(const Shape shape, RandomShapeOf(ctx.input(0)));
    SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, shape));
    return FillTensorWithInts(ctx, stream_.Take(out.size()), ctx.input(1),
                              ctx.input(2), out);
  }

 private:
  RandomStream stream_;
};

}  // namespace

SLUICE_OP(RandomUniform)
    .Input("shape: T")
    .Output("output: dtype")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("dtype: {half, bfloat16, float, double}")
    .Attr("T: {int32, int64}")
    .Stateful()
    .Shape(InferRandomShape)
    .NotDifferentiable();

SLUICE_OP(RandomStandardNormal)
    .Input("shape: T")
    .Output("output: dtype")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("dtype: {half, bfloat16, float, double}")
    .Attr("T: {int32, int64}")
    .Stateful()
    .Shape(InferRandomShape)
    .NotDifferentiable();

SLUICE_OP(TruncatedNormal)
    .Input("shape: T")
    .Output("output: dtype")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("dtype: {half, bfloat16, float, double}")
    .Attr("T: {int32, int64}")
    .Stateful()
    .Shape(InferRandomShape)
    .NotDifferentiable();

SLUICE_OP(RandomUniformInt)
    .Input("shape: T")
    .Input("minval: Tout")
    .Input("maxval: Tout")
    .Output("output: Tout")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("Tout: {int32, int64}")
    .Attr("T: {int32, int64}")
    .Stateful()
    .Shape(RandomIntShape)
    .NotDifferentiable();

SLUICE_KERNEL(RandomUniform, kCpu).Class<RandomNumbersKernel<UniformFill>>();
SLUICE_KERNEL(RandomStandardNormal, kCpu)
    .Class<RandomNumbersKernel<NormalFill>>();
SLUICE_KERNEL(TruncatedNormal, kCpu)
    .Class<RandomNumbersKernel<TruncatedNormalFill>>();
SLUICE_KERNEL(RandomUniformInt, kCpu).Class<RandomUniformIntKernel>();

}  // namespace sluice
