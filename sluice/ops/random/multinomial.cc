// Multinomial and StatelessMultinomial: class numbers drawn from rows of
// unnormalised log-probabilities.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sluice/graph/op_registry.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/random/random_stream.h"

namespace sluice {
namespace {

absl::Status MultinomialShape(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(const PartialShape logits, c.WithRank(0, 2));
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  int64_t samples = PartialShape::kUnknownDim;
  if (const std::optional<Tensor> value = c.input_value(1)) {
    samples = value->scalar<int32_t>();
    if (samples < 0) {
      return InvalidArgument(
          "Dimension size, given by scalar input 1, must be non-negative but "
          "is ",
          samples);
    }
  }
  c.set_output(0, PartialShape({logits.dim(0), samples}));
  return absl::OkStatus();
}

double LogitAsDouble(double x) { return x; }
double LogitAsDouble(Half x) { return static_cast<float>(x); }

// Sums of probabilities up to each class. What is not finite is never drawn.
template <typename T>
void AccumulateProbabilities(const T* logits, int64_t classes, double* sums) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < classes; ++i) {
    const double logit = LogitAsDouble(logits[i]);
    if (std::isfinite(logit)) largest = std::max(largest, logit);
  }
  double sum = 0;
  for (int64_t i = 0; i < classes; ++i) {
    const double logit = LogitAsDouble(logits[i]);
    if (std::isfinite(logit)) sum += std::exp(logit - largest);
    sums[i] = sum;
  }
}

absl::Status CheckMultinomial(const Tensor& logits, const Tensor& num_samples) {
  if (logits.rank() != 2) {
    return InvalidArgument("logits should be a matrix, got shape ",
                           logits.shape().DebugString());
  }
  if (num_samples.rank() != 0) {
    return InvalidArgument("num_samples should be a scalar, got shape ",
                           num_samples.shape().DebugString());
  }
  if (num_samples.scalar<int32_t>() < 0) {
    return InvalidArgument("num_samples should be nonnegative, got ",
                           num_samples.scalar<int32_t>());
  }
  if (logits.dim(1) <= 0) {
    return InvalidArgument("num_classes should be positive, got ",
                           logits.dim(1));
  }
  if (logits.dim(1) > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("num_classes should be less than INT_MAX, got ",
                           logits.dim(1));
  }
  return absl::OkStatus();
}

// Draws for rows [begin, end). Sample s of row r takes the words from
// 2 * (r * samples + s) on, so rows may be drawn by any thread.
template <typename T, typename Index>
void DrawMultinomialRows(const Philox& stream, const T* logits, int64_t classes,
                         int64_t samples, int64_t begin, int64_t end,
                         Index* out) {
  std::vector<double> sums(classes);
  for (int64_t row = begin; row < end; ++row) {
    AccumulateProbabilities(logits + row * classes, classes, sums.data());
    const uint64_t first_word = 2 * static_cast<uint64_t>(row * samples);
    PhiloxWords words(stream.Skip(first_word / 4));
    for (uint64_t w = 0; w < first_word % 4; ++w) words.Next();
    for (int64_t s = 0; s < samples; ++s) {
      const uint32_t first = words.Next();
      const double wanted = UniformDouble(first, words.Next()) * sums.back();
      const auto at = std::upper_bound(sums.begin(), sums.end(), wanted);
      // A row without any finite logit leads past the end.
      out[row * samples + s] =
          static_cast<Index>(std::min<int64_t>(at - sums.begin(), classes - 1));
    }
  }
}

template <typename T>
absl::Status DrawMultinomial(KernelContext& ctx, const Philox& stream) {
  const Tensor& logits = ctx.input(0);
  const int64_t samples = ctx.input(1).scalar<int32_t>();
  const int64_t rows = logits.dim(0);
  const int64_t classes = logits.dim(1);
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, Shape({rows, samples})));
  const T* data = logits.data<T>().data();
  const double nanos =
      10.0 * static_cast<double>(classes) + 20.0 * static_cast<double>(samples);
  ctx.ParallelFor(
      rows,
      [&](int64_t begin, int64_t end) {
        if (out.dtype() == DType::kInt32) {
          DrawMultinomialRows(stream, data, classes, samples, begin, end,
                              out.mutable_data<int32_t>().data());
        } else {
          DrawMultinomialRows(stream, data, classes, samples, begin, end,
                              out.mutable_data<int64_t>().data());
        }
      },
      nanos);
  return absl::OkStatus();
}

template <typename T>
class MultinomialKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<MultinomialKernel>(construction);
  }
  explicit MultinomialKernel(const KernelConstruction& construction)
      : stream_(construction) {}

  absl::Status Run(KernelContext& ctx) override {
    SLUICE_RETURN_IF_ERROR(CheckMultinomial(ctx.input(0), ctx.input(1)));
    // Two words a sample, rows in whole blocks.
    const int64_t samples = ctx.input(1).scalar<int32_t>();
    return DrawMultinomial<T>(
        ctx, stream_.Take(2 * ctx.input(0).dim(0) * ((samples + 3) / 4 * 4)));
  }

 private:
  RandomStream stream_;
};

template <typename T>
absl::Status StatelessMultinomial(KernelContext& ctx) {
  SLUICE_RETURN_IF_ERROR(CheckMultinomial(ctx.input(0), ctx.input(1)));
  SLUICE_ASSIGN_OR_RETURN(const Philox stream, StatelessStream(ctx.input(2)));
  return DrawMultinomial<T>(ctx, stream);
}

using MultinomialLogitTypes = TypeList<Half, float, double>;

}  // namespace

SLUICE_OP(Multinomial)
    .Input("logits: T")
    .Input("num_samples: int32")
    .Output("output: output_dtype")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("T: realnumbertype")
    .Attr("output_dtype: {int32, int64} = DT_INT64")
    .Stateful()
    .Shape(MultinomialShape)
    .NotDifferentiable();

SLUICE_OP(StatelessMultinomial)
    .Input("logits: T")
    .Input("num_samples: int32")
    .Input("seed: Tseed")
    .Output("output: output_dtype")
    .Attr("T: realnumbertype")
    .Attr("Tseed: {int32, int64} = DT_INT64")
    .Attr("output_dtype: {int32, int64} = DT_INT64")
    .Shape(MultinomialShape)
    .NotDifferentiable();

SLUICE_KERNEL(Multinomial, kCpu)
    .ClassForTypes<MultinomialLogitTypes, MultinomialKernel>("T");
SLUICE_KERNEL(StatelessMultinomial, kCpu)
    .ForTypes<MultinomialLogitTypes>("T", []<typename T>(KernelContext& ctx) {
      return StatelessMultinomial<T>(ctx);
    });

}  // namespace sluice
