#include "sluice/ops/random/random_stream.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "sluice/base/random.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

Philox StreamOfKernel(const KernelConstruction& construction) {
  const int64_t seed = construction.attr<int64_t>("seed");
  const int64_t seed2 = construction.attr<int64_t>("seed2");
  if (seed == 0 && seed2 == 0) return Philox(RandomId(), 0, RandomId());
  return Philox::FromSeeds(seed, seed2);
}

template <typename T>
void FillWithUniform(const Philox& stream, int64_t begin, int64_t n,
                     void* out) {
  FillUniform(stream, begin, n, static_cast<T*>(out));
}

// The 16-bit types are rounded from floats, a part at a time.
template <typename T>
void FillRounded(void (*fill)(const Philox&, int64_t, int64_t, float*),
                 const Philox& stream, int64_t begin, int64_t n, T* out) {
  constexpr int64_t kPart = 256;
  float part[kPart];
  for (int64_t i = 0; i < n; i += kPart) {
    const int64_t count = std::min(kPart, n - i);
    fill(stream, begin + i, count, part);
    for (int64_t k = 0; k < count; ++k) out[i + k] = T(part[k]);
  }
}

template <typename T>
void FillWithNormal(const Philox& stream, int64_t begin, int64_t n, void* out) {
  if constexpr (sizeof(T) == 2) {
    FillRounded(FillNormal, stream, begin, n, static_cast<T*>(out));
  } else {
    FillNormal(stream, begin, n, static_cast<T*>(out));
  }
}

template <typename T>
void FillWithTruncatedNormal(const Philox& stream, int64_t begin, int64_t n,
                             void* out) {
  if constexpr (sizeof(T) == 2) {
    FillRounded(FillTruncatedNormal, stream, begin, n, static_cast<T*>(out));
  } else {
    FillTruncatedNormal(stream, begin, n, static_cast<T*>(out));
  }
}

// Calls body(begin, n) for parts of [0, size) that start at whole groups.
void ForRandomGroups(KernelContext& ctx, int64_t size, double nanos,
                     absl::FunctionRef<void(int64_t, int64_t)> body) {
  ctx.ParallelFor((size + kPhiloxGroup - 1) / kPhiloxGroup,
                  [&](int64_t begin, int64_t end) {
                    const int64_t first = begin * kPhiloxGroup;
                    body(first, std::min(end * kPhiloxGroup, size) - first);
                  },
                  nanos * kPhiloxGroup);
}

template <typename T>
absl::Status FillRandomInts(KernelContext& ctx, const Philox& stream, T low,
                            T high, Tensor& out) {
  if (low >= high) {
    return InvalidArgument("Need minval < maxval, got ", low, " >= ", high);
  }
  using Unsigned = std::make_unsigned_t<T>;
  const Unsigned range =
      static_cast<Unsigned>(high) - static_cast<Unsigned>(low);
  T* data = out.mutable_data<T>().data();
  ForRandomGroups(ctx, out.size(), 4, [&](int64_t begin, int64_t n) {
    FillUniformInt(stream, low, range, begin, n, data + begin);
  });
  return absl::OkStatus();
}

int64_t RandomIntAt(const Tensor& tensor, int64_t i) {
  return tensor.dtype() == DType::kInt64 ? tensor.data<int64_t>()[i]
                                         : tensor.data<int32_t>()[i];
}

}  // namespace

RandomStream::RandomStream(const KernelConstruction& construction)
    : stream_(StreamOfKernel(construction)) {}

RandomFill UniformFill(DType type) {
  switch (type) {
    case DType::kFloat:
      return {FillWithUniform<float>, 1.2};
    case DType::kDouble:
      return {FillWithUniform<double>, 2.5};
    case DType::kHalf:
      return {FillWithUniform<Half>, 3};
    case DType::kBfloat16:
      return {FillWithUniform<BFloat16>, 3};
    default:
      return {};
  }
}

RandomFill NormalFill(DType type) {
  switch (type) {
    case DType::kFloat:
      return {FillWithNormal<float>, 15};
    case DType::kDouble:
      return {FillWithNormal<double>, 25};
    case DType::kHalf:
      return {FillWithNormal<Half>, 18};
    case DType::kBfloat16:
      return {FillWithNormal<BFloat16>, 18};
    default:
      return {};
  }
}

RandomFill TruncatedNormalFill(DType type) {
  switch (type) {
    case DType::kFloat:
      return {FillWithTruncatedNormal<float>, 20};
    case DType::kDouble:
      return {FillWithTruncatedNormal<double>, 30};
    case DType::kHalf:
      return {FillWithTruncatedNormal<Half>, 23};
    case DType::kBfloat16:
      return {FillWithTruncatedNormal<BFloat16>, 23};
    default:
      return {};
  }
}

void FillTensor(KernelContext& ctx, const RandomFill& fill,
                const Philox& stream, Tensor& out) {
  char* data = static_cast<char*>(out.mutable_raw());
  const int64_t element = static_cast<int64_t>(ElementSize(out.dtype()));
  ForRandomGroups(ctx, out.size(), fill.nanos, [&](int64_t begin, int64_t n) {
    fill.fill(stream, begin, n, data + begin * element);
  });
}

absl::Status FillTensorWithInts(KernelContext& ctx, const Philox& stream,
                                const Tensor& low, const Tensor& high,
                                Tensor& out) {
  if (low.rank() != 0) {
    return InvalidArgument("minval must be 0-D, got shape ",
                           low.shape().DebugString());
  }
  if (high.rank() != 0) {
    return InvalidArgument("maxval must be 0-D, got shape ",
                           high.shape().DebugString());
  }
  if (out.size() == 0) return absl::OkStatus();
  return out.dtype() == DType::kInt32
             ? FillRandomInts(ctx, stream, low.scalar<int32_t>(),
                              high.scalar<int32_t>(), out)
             : FillRandomInts(ctx, stream, low.scalar<int64_t>(),
                              high.scalar<int64_t>(), out);
}

absl::StatusOr<Shape> RandomShapeOf(const Tensor& sizes) {
  if (sizes.rank() != 1) {
    return InvalidArgument(
        "shape must be a vector of {int32,int64}, got shape ",
        sizes.shape().DebugString());
  }
  absl::InlinedVector<int64_t, 4> dims;
  for (int64_t i = 0; i < sizes.size(); ++i) {
    const int64_t dim = RandomIntAt(sizes, i);
    if (dim < 0) return InvalidArgument("Dimension ", dim, " must be >= 0");
    dims.push_back(dim);
  }
  return Shape::Create(dims);
}

absl::Status InferRandomShape(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(PartialShape shape, c.input_as_shape(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::StatusOr<Philox> StatelessStream(const Tensor& seed) {
  if (seed.rank() != 1 || seed.size() != 2) {
    return InvalidArgument("seed must have shape [2], not ",
                           seed.shape().DebugString());
  }
  return Philox::FromStatelessSeeds(RandomIntAt(seed, 0), RandomIntAt(seed, 1));
}

}  // namespace sluice
