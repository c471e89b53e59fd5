// BiasAdd, BiasAddV1 and BiasAddGrad: a vector added along one dimension, the
// last or (NCHW) the second.

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/binary.h"
#include "sluice/numeric/reduce.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/array/index_values.h"
#include "sluice/ops/math/python_math.h"

namespace sluice {
namespace {
namespace bias_add {

template <typename Context>
bool ChannelsFirst(const Context& context) {
  return context.template attr<std::string>("data_format") == "NCHW";
}

absl::Status ShapeFunction(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(PartialShape value,
                          c.WithRankAtLeast(0, ChannelsFirst(c) ? 3 : 2));
  SLUICE_ASSIGN_OR_RETURN(const PartialShape bias, c.WithRank(1, 1));
  if (value.known_rank()) {
    const int channel = ChannelsFirst(c) ? 1 : value.rank() - 1;
    const int64_t a = value.dim(channel), b = bias.dim(0);
    if (a >= 0 && b >= 0 && a != b) {
      return InvalidArgument("Dimensions must be equal, but are ", a, " and ",
                             b);
    }
    if (a < 0) value.set_dim(channel, b);
  }
  c.set_output(0, std::move(value));
  return absl::OkStatus();
}

absl::Status GradShapeFunction(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(const PartialShape value,
                          c.WithRankAtLeast(0, ChannelsFirst(c) ? 3 : 2));
  int64_t channels = PartialShape::kUnknownDim;
  if (value.known_rank()) {
    channels = value.dim(ChannelsFirst(c) ? 1 : value.rank() - 1);
  }
  c.set_output(0, PartialShape({channels}));
  return absl::OkStatus();
}

Grads Gradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  return std::vector<Grad>{
      dy[0], scope.Add("BiasAddGrad", {dy[0]},
                       {{"data_format", op.attr<std::string>("data_format")}})};
}

Grads GradientV1(Scope& scope, const Node&, std::span<const Output> dy) {
  const Output last = python::Sub(scope, RankTensor(scope, dy[0]), 1);
  const Output axes = RangeOf(scope, 0, last, 1);
  return std::vector<Grad>{dy[0], scope.Add("Sum", {dy[0], axes})};
}

// The bias' gradient, repeated along all other dimensions.
Grads SecondGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Output shape = ShapeTensor(scope, op.input(0));
  const Output bias_shape = ShapeTensor(scope, dy[0]);
  const auto ones_like = [&](Output x) {
    return python::OnesLike(scope, x, DType::kInt32);
  };
  const auto concat_with_one = [&](Output before, Output after) {
    const Scope inner = scope.NameScope("concat");
    std::vector<Output> parts = {before, inner.Named("values_1").Ints({1})};
    if (after) parts.push_back(after);
    parts.push_back(inner.Named("axis").Scalar<int32_t>(0));
    return AddAs(inner, "ConcatV2", parts);
  };
  Output expanded, repeats;
  if (ChannelsFirst(op)) {
    const Output first = ones_like(SliceVector(scope, shape, {}, 1));
    const Output rest = ones_like(SliceVector(scope, shape, 2, {}));
    expanded = ConcatAt(scope, {first, bias_shape, rest}, 0);
    const Output batch = SliceVector(scope, shape, {}, 1);
    repeats = concat_with_one(batch, SliceVector(scope, shape, 2, {}));
  } else {
    const Output first = ones_like(SliceVector(scope, shape, {}, -1));
    expanded = ConcatAt(scope, {first, bias_shape}, 0);
    repeats = concat_with_one(SliceVector(scope, shape, {}, -1), {});
  }
  const Output reshaped = scope.Add("Reshape", {dy[0], expanded});
  return std::vector<Grad>{scope.Add("Tile", {reshaped, repeats})};
}

template <typename T>
absl::Status RunAdd(KernelContext& ctx, bool channels_first) {
  const Tensor& x = ctx.input(0);
  const Tensor& bias = ctx.input(1);
  if (x.rank() < 2) {
    return InvalidArgument("Input tensor must be at least 2D: ",
                           x.shape().DebugString());
  }
  if (bias.rank() != 1) {
    return InvalidArgument("Biases must be 1D: ", bias.shape().DebugString());
  }
  const int channel = channels_first ? 1 : x.rank() - 1;
  const int64_t channels = bias.dim(0);
  if (x.dim(channel) != channels) {
    return InvalidArgument(
        "Must provide as many biases as the last dimension of the input "
        "tensor: ",
        bias.shape().DebugString(), " vs. ", x.shape().DebugString());
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.OutputLike(0));
  if (x.size() == 0) return absl::OkStatus();
  const int64_t inner = SizeBetween(x.shape(), channel + 1, x.rank());
  const T* from = x.data<T>().data();
  const T* add = bias.data<T>().data();
  T* to = out.mutable_data<T>().data();
  constexpr auto kAdd = numeric::BinaryMap<numeric::BinaryOp::kAdd, T>;
  ctx.ParallelFor(
      SizeBetween(x.shape(), 0, channel),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t at = i * channels * inner;
          if (inner == 1) {
            kAdd(to + at, from + at, 1, add, 1, channels);
            continue;
          }
          for (int64_t c = 0; c < channels; ++c) {
            kAdd(to + at + c * inner, from + at + c * inner, 1, add + c, 0,
                 inner);
          }
        }
      },
      static_cast<double>(channels * inner) * 0.3 + 3);
  return absl::OkStatus();
}

template <typename T>
class BiasAddKernel : public Kernel {
 public:
  explicit BiasAddKernel(bool channels_first)
      : channels_first_(channels_first) {}
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<BiasAddKernel>(ChannelsFirst(construction));
  }
  absl::Status Run(KernelContext& ctx) override {
    return RunAdd<T>(ctx, channels_first_);
  }

 private:
  const bool channels_first_;
};

template <typename T>
class BiasAddGradKernel : public Kernel {
 public:
  explicit BiasAddGradKernel(bool channels_first)
      : channels_first_(channels_first) {}
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<BiasAddGradKernel>(ChannelsFirst(construction));
  }
  absl::Status Run(KernelContext& ctx) override {
    const Tensor& grad = ctx.input(0);
    if (grad.rank() < 2) {
      return InvalidArgument("Input tensor must be at least 2D: ",
                             grad.shape().DebugString());
    }
    const int channel = channels_first_ ? 1 : grad.rank() - 1;
    const int64_t channels = grad.dim(channel);
    SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, Shape({channels})));
    const int64_t dims[] = {
        SizeBetween(grad.shape(), 0, channel), channels,
        SizeBetween(grad.shape(), channel + 1, grad.rank())};
    static constexpr bool kReduced[] = {true, false, true};
    numeric::Reduce<numeric::ReduceOp::kSum, T>(
        out.mutable_data<T>().data(), grad.data<T>().data(),
        numeric::ReducePlan(dims, kReduced));
    return absl::OkStatus();
  }

 private:
  const bool channels_first_;
};

}  // namespace bias_add
}  // namespace

SLUICE_OP(BiasAdd)
    .Input("value: T")
    .Input("bias: T")
    .Output("output: T")
    .Attr("T: numbertype")
    .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
    .Shape(bias_add::ShapeFunction)
    .Gradient(bias_add::Gradient);
SLUICE_KERNEL(BiasAdd, kCpu)
    .ClassForTypes<RealTypes, bias_add::BiasAddKernel>("T");

SLUICE_OP(BiasAddGrad)
    .Input("out_backprop: T")
    .Output("output: T")
    .Attr("T: numbertype")
    .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
    .Shape(bias_add::GradShapeFunction)
    .Gradient(bias_add::SecondGradient);
SLUICE_KERNEL(BiasAddGrad, kCpu)
    .ClassForTypes<RealTypes, bias_add::BiasAddGradKernel>("T");

SLUICE_OP(BiasAddV1)
    .Input("value: T")
    .Input("bias: T")
    .Output("output: T")
    .Attr("T: numbertype")
    .Shape(bias_add::ShapeFunction)
    .Gradient(bias_add::GradientV1);
SLUICE_KERNEL(BiasAddV1, kCpu)
    .ForTypes<RealTypes>("T", []<typename T>(KernelContext& ctx) {
      return bias_add::RunAdd<T>(ctx, /*channels_first=*/false);
    });

}  // namespace sluice
