// The ops on accumulators: dense ones with resource or string handles, sparse
// ones with string handles.

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/queue/accumulator.h"
#include "sluice/ops/state/resource_kernel.h"

namespace sluice {
namespace {
namespace accumulator_op {

std::string ConfigText(const AccumulatorConfig& config) {
  return StrCat(config.sparse ? "sparse " : "", DTypeName(config.dtype), " ",
                config.shape.DebugString(), config.mean ? " MEAN" : " SUM");
}

template <bool kSparse>
class AccumulatorKernel : public SharedResourceKernel<Accumulator> {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    SLUICE_ASSIGN_OR_RETURN(ResourceName name,
                            NameResource(node, UnsharedName::kPrivate));
    AccumulatorConfig config;
    config.name = name.name;
    config.dtype = node.attr<DType>("dtype");
    config.shape = node.attr<PartialShape>("shape");
    config.mean = node.attr<std::string>("reduction_type") != "SUM";
    config.sparse = kSparse;
    return std::make_unique<AccumulatorKernel>(node, std::move(name),
                                               std::move(config));
  }
  AccumulatorKernel(const KernelConstruction& node, ResourceName name,
                    AccumulatorConfig config)
      : SharedResourceKernel(node, std::move(name), kAccumulatorType),
        config_(std::move(config)) {}

 protected:
  RefPtr<Accumulator> Make() const override {
    return kSparse ? MakeSparseAccumulator(config_)
                   : MakeDenseAccumulator(config_);
  }
  absl::Status Match(const Accumulator& existing,
                     const Node& node) const override {
    if (existing.config() == config_) return absl::OkStatus();
    return InvalidArgument("Shared accumulator '", config_.name, "' is ",
                           ConfigText(existing.config()), ", but node ",
                           node.name(), " declares it as ",
                           ConfigText(config_));
  }

 private:
  const AccumulatorConfig config_;
};

absl::StatusOr<RefPtr<Accumulator>> FindAccumulator(const KernelContext& ctx) {
  return LookupResource<Accumulator>(ctx, 0, kAccumulatorType);
}

absl::StatusOr<RefPtr<Accumulator>> FindTyped(const KernelContext& ctx,
                                              bool sparse) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<Accumulator> accumulator,
                          FindAccumulator(ctx));
  const AccumulatorConfig& config = accumulator->config();
  const DType dtype = ctx.attr<DType>("dtype");
  if (config.sparse != sparse || config.dtype != dtype) {
    return InvalidArgument("Accumulator '", config.name, "' is ",
                           ConfigText(config), ", but ", ctx.node().type(),
                           " expects ", sparse ? "a sparse" : "a dense",
                           " one of ", DTypeName(dtype));
  }
  return accumulator;
}

absl::StatusOr<int64_t> StepInput(const KernelContext& ctx, int i,
                                  std::string_view what) {
  if (ctx.input(i).rank() == 0) return ctx.input(i).scalar<int64_t>();
  return InvalidArgument("Argument ", what,
                         " must be scalar, but had bad shape ",
                         ctx.input(i).shape().DebugString());
}

absl::Status NumAccumulated(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<Accumulator> accumulator,
                          FindAccumulator(ctx));
  ctx.set_output(0, Tensor::Scalar(static_cast<int32_t>(accumulator->count())));
  return absl::OkStatus();
}

absl::Status SetGlobalStep(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<Accumulator> accumulator,
                          FindAccumulator(ctx));
  SLUICE_ASSIGN_OR_RETURN(const int64_t step,
                          StepInput(ctx, 1, "new_global_step"));
  accumulator->SetGlobalStep(step);
  return absl::OkStatus();
}

absl::Status ApplyDense(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<Accumulator> accumulator,
                          FindTyped(ctx, /*sparse=*/false));
  SLUICE_ASSIGN_OR_RETURN(const int64_t step, StepInput(ctx, 1, "local_step"));
  return accumulator->Apply(step, {ctx.input(2)});
}

absl::Status ApplySparse(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<Accumulator> accumulator,
                          FindTyped(ctx, /*sparse=*/true));
  SLUICE_ASSIGN_OR_RETURN(const int64_t step, StepInput(ctx, 1, "local_step"));
  const bool known = ctx.attr<bool>("has_known_shape");
  return accumulator->Apply(
      step, {ctx.input(2), ctx.input(3),
             known ? ctx.input(4) : Tensor::Of<int64_t>({0}, {})});
}

template <bool kSparse>
class TakeKernel : public AsyncKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction&) {
    return std::make_unique<TakeKernel>();
  }
  void Start(KernelContext& ctx, Done done) override {
    absl::StatusOr<RefPtr<Accumulator>> accumulator = FindTyped(ctx, kSparse);
    if (!accumulator.ok()) return done(accumulator.status());
    const Tensor& required = ctx.input(1);
    if (required.rank() != 0) {
      return done(
          InvalidArgument("Argument num_required must be scalar, but "
                          "had bad shape ",
                          required.shape().DebugString()));
    }
    (*accumulator)
        ->Take(required.scalar<int32_t>(), ctx,
               [&ctx,
                done = std::move(done)](absl::StatusOr<Tuple> tensors) mutable {
                 if (!tensors.ok()) return done(tensors.status());
                 for (size_t i = 0; i < tensors->size(); ++i) {
                   ctx.set_output(static_cast<int>(i),
                                  std::move((*tensors)[i]));
                 }
                 done(absl::OkStatus());
               });
  }
};

// TensorFlow says so of resource handles, too.
absl::Status HandleShape(ShapeContext& c) {
  c.set_output(0, {2});
  return absl::OkStatus();
}

absl::Status SetStepShape(ShapeContext& c) { return c.WithRank(1, 0).status(); }

absl::Status TakeShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  return shapes::Unknown(c);
}

}  // namespace accumulator_op
}  // namespace

#define SLUICE_ACCUMULATOR_OP(NAME, HANDLE, SHAPE)      \
  SLUICE_OP(NAME)                                       \
      .Output("handle: " HANDLE)                        \
      .Attr("dtype: numbertype")                        \
      .Attr("shape: shape")                             \
      .Attr("container: string = ''")                   \
      .Attr("shared_name: string = ''")                 \
      .Attr("reduction_type: {'MEAN', 'SUM'} = 'MEAN'") \
      .Stateful()                                       \
      .Shape(SHAPE)                                     \
      .NotDifferentiable()
SLUICE_ACCUMULATOR_OP(ConditionalAccumulator, "Ref(string)",
                      accumulator_op::HandleShape);
SLUICE_ACCUMULATOR_OP(SparseConditionalAccumulator, "Ref(string)",
                      accumulator_op::HandleShape);
SLUICE_ACCUMULATOR_OP(ResourceConditionalAccumulator, "resource",
                      accumulator_op::HandleShape);
#undef SLUICE_ACCUMULATOR_OP

#define SLUICE_NUM_ACCUMULATED_OP(NAME, HANDLE) \
  SLUICE_OP(NAME)                               \
      .Input("handle: " HANDLE)                 \
      .Output("num_accumulated: int32")         \
      .Shape(shapes::Scalar)                    \
      .NotDifferentiable()
SLUICE_NUM_ACCUMULATED_OP(AccumulatorNumAccumulated, "Ref(string)");
SLUICE_NUM_ACCUMULATED_OP(ResourceAccumulatorNumAccumulated, "resource")
    .Stateful();
#undef SLUICE_NUM_ACCUMULATED_OP

#define SLUICE_SET_STEP_OP(NAME, HANDLE)   \
  SLUICE_OP(NAME)                          \
      .Input("handle: " HANDLE)            \
      .Input("new_global_step: int64")     \
      .Shape(accumulator_op::SetStepShape) \
      .NotDifferentiable()
SLUICE_SET_STEP_OP(AccumulatorSetGlobalStep, "Ref(string)");
SLUICE_SET_STEP_OP(ResourceAccumulatorSetGlobalStep, "resource").Stateful();
#undef SLUICE_SET_STEP_OP

#define SLUICE_APPLY_GRADIENT_OP(NAME, HANDLE) \
  SLUICE_OP(NAME)                              \
      .Input("handle: " HANDLE)                \
      .Input("local_step: int64")              \
      .Input("gradient: dtype")                \
      .Attr("dtype: numbertype")               \
      .Shape(accumulator_op::SetStepShape)     \
      .NotDifferentiable()
SLUICE_APPLY_GRADIENT_OP(AccumulatorApplyGradient, "Ref(string)");
SLUICE_APPLY_GRADIENT_OP(ResourceAccumulatorApplyGradient, "resource")
    .Stateful();
#undef SLUICE_APPLY_GRADIENT_OP

#define SLUICE_TAKE_GRADIENT_OP(NAME, HANDLE) \
  SLUICE_OP(NAME)                             \
      .Input("handle: " HANDLE)               \
      .Input("num_required: int32")           \
      .Output("average: dtype")               \
      .Attr("dtype: numbertype")              \
      .Shape(accumulator_op::TakeShape)       \
      .NotDifferentiable()
SLUICE_TAKE_GRADIENT_OP(AccumulatorTakeGradient, "Ref(string)");
SLUICE_TAKE_GRADIENT_OP(ResourceAccumulatorTakeGradient, "resource").Stateful();
#undef SLUICE_TAKE_GRADIENT_OP

SLUICE_OP(SparseAccumulatorApplyGradient)
    .Input("handle: Ref(string)")
    .Input("local_step: int64")
    .Input("gradient_indices: int64")
    .Input("gradient_values: dtype")
    .Input("gradient_shape: int64")
    .Attr("dtype: numbertype")
    .Attr("has_known_shape: bool")
    .Shape(accumulator_op::SetStepShape)
    .NotDifferentiable();

SLUICE_OP(SparseAccumulatorTakeGradient)
    .Input("handle: Ref(string)")
    .Input("num_required: int32")
    .Output("indices: int64")
    .Output("values: dtype")
    .Output("shape: int64")
    .Attr("dtype: numbertype")
    .Shape(accumulator_op::TakeShape)
    .NotDifferentiable();

#define SLUICE_ACCUMULATOR_KERNEL(NAME, TYPE, ...) \
  SLUICE_KERNEL(NAME, kCpu)                        \
      .Type("dtype", DType::TYPE)                  \
      .Class<accumulator_op::__VA_ARGS__>()
#define SLUICE_ACCUMULATOR_KERNELS(NAME, ...)              \
  SLUICE_ACCUMULATOR_KERNEL(NAME, kFloat, __VA_ARGS__);    \
  SLUICE_ACCUMULATOR_KERNEL(NAME, kDouble, __VA_ARGS__);   \
  SLUICE_ACCUMULATOR_KERNEL(NAME, kHalf, __VA_ARGS__);     \
  SLUICE_ACCUMULATOR_KERNEL(NAME, kBfloat16, __VA_ARGS__); \
  SLUICE_ACCUMULATOR_KERNEL(NAME, kInt32, __VA_ARGS__);    \
  SLUICE_ACCUMULATOR_KERNEL(NAME, kInt64, __VA_ARGS__)
SLUICE_ACCUMULATOR_KERNELS(ConditionalAccumulator, AccumulatorKernel<false>);
SLUICE_ACCUMULATOR_KERNELS(ResourceConditionalAccumulator,
                           AccumulatorKernel<false>);
SLUICE_ACCUMULATOR_KERNELS(SparseConditionalAccumulator,
                           AccumulatorKernel<true>);
#undef SLUICE_ACCUMULATOR_KERNELS
#undef SLUICE_ACCUMULATOR_KERNEL

SLUICE_KERNEL(AccumulatorNumAccumulated, kCpu)
    .Function(accumulator_op::NumAccumulated);
SLUICE_KERNEL(ResourceAccumulatorNumAccumulated, kCpu)
    .Function(accumulator_op::NumAccumulated);
SLUICE_KERNEL(AccumulatorSetGlobalStep, kCpu)
    .Function(accumulator_op::SetGlobalStep);
SLUICE_KERNEL(ResourceAccumulatorSetGlobalStep, kCpu)
    .Function(accumulator_op::SetGlobalStep);
SLUICE_KERNEL(AccumulatorApplyGradient, kCpu)
    .Function(accumulator_op::ApplyDense);
SLUICE_KERNEL(ResourceAccumulatorApplyGradient, kCpu)
    .Function(accumulator_op::ApplyDense);
SLUICE_KERNEL(SparseAccumulatorApplyGradient, kCpu)
    .Function(accumulator_op::ApplySparse);
SLUICE_KERNEL(AccumulatorTakeGradient, kCpu)
    .Class<accumulator_op::TakeKernel<false>>();
SLUICE_KERNEL(ResourceAccumulatorTakeGradient, kCpu)
    .Class<accumulator_op::TakeKernel<false>>();
SLUICE_KERNEL(SparseAccumulatorTakeGradient, kCpu)
    .Class<accumulator_op::TakeKernel<true>>();

}  // namespace sluice
