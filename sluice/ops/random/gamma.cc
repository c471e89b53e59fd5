// RandomGamma, RandomPoisson and RandomPoissonV2: numbers of distributions
// that have a parameter each, and RandomGammaGrad, how a number of the gamma
// distribution follows its parameter.

#include "sluice/numeric/gamma.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "sluice/graph/op_registry.h"
#include "sluice/graph/scope.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/broadcast.h"
#include "sluice/ops/array/gradient_pieces.h"
#include "sluice/ops/math/elementwise.h"
#include "sluice/ops/math/python_math.h"
#include "sluice/ops/random/random_stream.h"

namespace sluice {
namespace {
namespace random_gamma {

// One sample of shape [0] for each parameter: the shapes follow one another.
absl::Status ShapeFunction(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(PartialShape shape, c.input_as_shape(0));
  const PartialShape& parameters = c.input(1);
  if (!shape.known_rank() || !parameters.known_rank()) {
    c.set_output(0, PartialShape());
    return absl::OkStatus();
  }
  for (int64_t dim : parameters.dims()) shape.AddDim(dim);
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

template <typename T>
double AsDouble(T x) {
  if constexpr (std::is_same_v<T, Half>) {
    return static_cast<float>(x);
  } else {
    return static_cast<double>(x);
  }
}
// Integers end where their type does.
template <typename T>
T FromDouble(double x) {
  if constexpr (std::is_same_v<T, Half>) {
    return Half(static_cast<float>(x));
  } else if constexpr (std::is_integral_v<T>) {
    if (std::isnan(x)) return 0;
    if (x >= static_cast<double>(std::numeric_limits<T>::max())) {
      return std::numeric_limits<T>::max();
    }
    return static_cast<T>(x);
  } else {
    return static_cast<T>(x);
  }
}

template <typename T>
double Highest() {
  if constexpr (std::is_same_v<T, Half>) {
    return 65504;
  } else {
    return static_cast<double>(std::numeric_limits<T>::max());
  }
}

double ParameterAt(const Tensor& parameters, int64_t i) {
  switch (parameters.dtype()) {
    case DType::kHalf:
      return AsDouble(parameters.data<Half>()[i]);
    case DType::kFloat:
      return AsDouble(parameters.data<float>()[i]);
    case DType::kDouble:
      return parameters.data<double>()[i];
    case DType::kInt32:
      return AsDouble(parameters.data<int32_t>()[i]);
    default:
      return AsDouble(parameters.data<int64_t>()[i]);
  }
}

// Draws samples of shape input 0 for each parameter of input 1. Number n, by
// parameters first, has 256 blocks of the stream of its own; in the output the
// parameters change fastest.
template <typename T, typename Draw>
absl::Status DrawSamples(KernelContext& ctx, RandomStream& stream, double nanos,
                         Draw draw) {
  SLUICE_ASSIGN_OR_RETURN(const Shape sample_shape,
                          RandomShapeOf(ctx.input(0)));
  const Tensor& parameters = ctx.input(1);
  absl::InlinedVector<int64_t, 4> dims(sample_shape.dims().begin(),
                                       sample_shape.dims().end());
  dims.insert(dims.end(), parameters.shape().dims().begin(),
              parameters.shape().dims().end());
  SLUICE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, shape));
  if (out.size() == 0) return absl::OkStatus();
  const int64_t count = parameters.size();
  const int64_t samples = out.size() / count;
  const Philox numbers = stream.Take(out.size());
  T* data = out.mutable_data<T>().data();
  ctx.ParallelFor(
      out.size(),
      [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          const int64_t parameter = n / samples;
          data[n % samples * count + parameter] = FromDouble<T>(draw(
              numbers.Skip(static_cast<uint64_t>(n) * kPhiloxBlocksPerNumber),
              ParameterAt(parameters, parameter)));
        }
      },
      nanos);
  return absl::OkStatus();
}

template <typename T>
class GammaKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<GammaKernel>(construction);
  }
  explicit GammaKernel(const KernelConstruction& construction)
      : stream_(construction) {}
  absl::Status Run(KernelContext& ctx) override {
    return DrawSamples<T>(ctx, stream_, 150, DrawGamma);
  }

 private:
  RandomStream stream_;
};

template <typename T>
class PoissonKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<PoissonKernel>(construction);
  }
  explicit PoissonKernel(const KernelConstruction& construction)
      : stream_(construction) {}
  absl::Status Run(KernelContext& ctx) override {
    return DrawSamples<T>(ctx, stream_, 200,
                          [](const Philox& stream, double rate) {
                            return DrawPoisson(stream, rate, Highest<T>());
                          });
  }

 private:
  RandomStream stream_;
};

template <typename T>
void Derivatives(void* out, const void* alpha, int64_t alpha_step,
                 const void* sample, int64_t sample_step, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    static_cast<T*>(out)[i] = static_cast<T>(numeric::GammaSampleDerivative(
        static_cast<const T*>(alpha)[i * alpha_step],
        static_cast<const T*>(sample)[i * sample_step]));
  }
}

// tf.ones([count], tf.int32).
Output OnesVector(const Scope& scope, Output count) {
  const Scope inner = scope.NameScope("ones");
  const Scope less = inner.NameScope("Less");
  // Python asks whether the result is small, and then does not use it.
  AddAs(less, "Less", {count, less.Named("y").Scalar<int32_t>(1000)});
  const Output shape = inner.Named("packed").Add("Pack", {count});
  return AddAs(inner, "Fill", {shape, inner.Scalar<int32_t>(1)});
}

// Samples are independent given alpha, so each alpha sums over its own.
Grads GammaGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  const Scope after = scope.Control(std::vector<Output>{dy[0]});
  const Output sample_dims =
      ElementOf(after, ShapeTensor(after, op.input(0)), 0);
  const Output ones = OnesVector(after, sample_dims);
  const Output alpha = after.Add(
      "Reshape", {op.input(1),
                  ConcatAt(after, {ones, ShapeTensor(after, op.input(1))}, 0)});
  const Output slope = after.Add("RandomGammaGrad", {alpha, op.output(0)});
  const Output product = python::Mul(after, dy[0], slope);
  const Output axes = RangeOf(after, 0, sample_dims, 1);
  return std::vector<Grad>{Grad(), after.Add("Sum", {product, axes})};
}

}  // namespace random_gamma
}  // namespace

SLUICE_OP(RandomGamma)
    .Input("shape: S")
    .Input("alpha: T")
    .Output("output: T")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("S: {int32, int64}")
    .Attr("T: {half, float, double}")
    .Stateful()
    .Shape(random_gamma::ShapeFunction)
    .Gradient(random_gamma::GammaGradient);
SLUICE_KERNEL(RandomGamma, kCpu)
    .ClassForTypes<TypeList<Half, float, double>, random_gamma::GammaKernel>(
        "T");

SLUICE_OP(RandomGammaGrad)
    .Input("alpha: T")
    .Input("sample: T")
    .Output("output: T")
    .Attr("T: {float, double}")
    .Shape(shapes::Broadcast);
SLUICE_KERNEL(RandomGammaGrad, kCpu)
    .ForTypes<FloatTypes>("T", []<typename T>(KernelContext& ctx) {
      static constexpr BinaryLoop kLoop{random_gamma::Derivatives<T>, sizeof(T),
                                        sizeof(T), 300};
      return RunBinary(ctx, kLoop);
    });

SLUICE_OP(RandomPoisson)
    .Input("shape: S")
    .Input("rate: dtype")
    .Output("output: dtype")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("S: {int32, int64}")
    .Attr("dtype: {half, float, double}")
    .Stateful()
    .Shape(random_gamma::ShapeFunction);
SLUICE_KERNEL(RandomPoisson, kCpu)
    .ClassForTypes<TypeList<Half, float, double>, random_gamma::PoissonKernel>(
        "dtype");

SLUICE_OP(RandomPoissonV2)
    .Input("shape: S")
    .Input("rate: R")
    .Output("output: dtype")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("S: {int32, int64}")
    .Attr("R: {half, float, double, int32, int64} = DT_DOUBLE")
    .Attr("dtype: {half, float, double, int32, int64} = DT_INT64")
    .Stateful()
    .Shape(random_gamma::ShapeFunction);
SLUICE_KERNEL(RandomPoissonV2, kCpu)
    .ClassForTypes<TypeList<Half, float, double, int32_t, int64_t>,
                   random_gamma::PoissonKernel>("dtype");

}  // namespace sluice
