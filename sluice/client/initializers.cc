#include "sluice/client/initializers.h"

#include <algorithm>
#include <cmath>

#include "sluice/base/status.h"

namespace sluice {
namespace {

// TensorFlow's graph seed when only an op has one.
constexpr int64_t kDefaultGraphSeed = 87654321;
constexpr int64_t kSeedRange = (int64_t{1} << 31) - 1;
// From here on zeros and ones are filled, not stored.
constexpr int64_t kStoredSize = 1000;

Tensor Filled(double value, const Shape& shape, DType dtype) {
  const Tensor one = ScalarOfType(dtype, value);
  Tensor all(dtype, shape);
  if (!one.initialized() || !all.initialized()) return Tensor();
  const size_t size = ElementSize(dtype);
  auto* to = static_cast<char*>(all.mutable_raw());
  for (int64_t i = 0; i < shape.size(); ++i) {
    std::copy_n(static_cast<const char*>(one.raw()), size, to + i * size);
  }
  return all;
}

Output StoredConstant(const Scope& scope, double value, const Shape& shape,
                      DType dtype) {
  Tensor tensor = Filled(value, shape, dtype);
  if (!tensor.initialized()) {
    scope.Fail(InvalidArgument("cannot make a constant of type ",
                               DTypeName(dtype), " and shape ",
                               shape.DebugString()));
    return Output();
  }
  AttrValue attr(std::move(tensor));
  attr.set_given_values(1);
  return scope.Add("Const", {}, {{"value", std::move(attr)}, {"dtype", dtype}});
}

Output ShapeConstant(const Scope& scope, const Shape& shape) {
  std::vector<int32_t> dims;
  for (int i = 0; i < shape.rank(); ++i) {
    dims.push_back(static_cast<int32_t>(shape.dim(i)));
  }
  return scope.Ints(std::move(dims));
}

Initializer Repeated(const char* name, double value, const Shape& shape,
                     DType dtype) {
  return [=](const Scope& outer) {
    const Scope scope = outer.NameScope(name);
    const Scope result = scope.Named(scope.context().name_scope);
    if (shape.size() < kStoredSize) {
      return StoredConstant(result, value, shape, dtype);
    }
    const Output dims = ShapeConstant(scope.Named("shape_as_tensor"), shape);
    return result.Add("Fill", {dims, StoredConstant(scope, value, {}, dtype)});
  };
}

AttrMap RandomAttrs(const RandomOptions& options) {
  return {{"dtype", options.dtype},
          {"seed", options.seed ? kDefaultGraphSeed : int64_t{0}},
          {"seed2", options.seed.value_or(0) % kSeedRange}};
}

Initializer Normal(const char* name, const char* op, const Shape& shape,
                   double mean, double stddev, const RandomOptions& options) {
  return [=](const Scope& outer) {
    const Scope scope = outer.NameScope(name);
    const Output dims = ShapeConstant(scope.Named("shape"), shape);
    const Output offset =
        scope.Named("mean").Const(ScalarOfType(options.dtype, mean));
    const Output factor =
        scope.Named("stddev").Const(ScalarOfType(options.dtype, stddev));
    const Output random = scope.Add(op, {dims}, RandomAttrs(options));
    const Output scaled = scope.Named("mul").Add("Mul", {random, factor});
    return scope.Named(scope.context().name_scope).Add("Add", {scaled, offset});
  };
}

}  // namespace

Initializer ZerosInitializer(const Shape& shape, DType dtype) {
  return Repeated("zeros", 0, shape, dtype);
}

Initializer OnesInitializer(const Shape& shape, DType dtype) {
  return Repeated("ones", 1, shape, dtype);
}

Initializer ConstantInitializer(double value, const Shape& shape, DType dtype) {
  return [=](const Scope& scope) {
    return StoredConstant(scope, value, shape, dtype);
  };
}

Initializer RandomUniformInitializer(const Shape& shape, double low,
                                     double high,
                                     const RandomOptions& options) {
  return [=](const Scope& outer) {
    const Scope scope = outer.NameScope("random_uniform");
    const Output dims = ShapeConstant(scope.Named("shape"), shape);
    const Output min =
        scope.Named("min").Const(ScalarOfType(options.dtype, low));
    const Output max =
        scope.Named("max").Const(ScalarOfType(options.dtype, high));
    const Output random =
        scope.Add("RandomUniform", {dims}, RandomAttrs(options));
    const Output range = scope.Named("sub").Add("Sub", {max, min});
    const Output scaled = scope.Named("mul").Add("Mul", {random, range});
    return scope.Named(scope.context().name_scope).Add("Add", {scaled, min});
  };
}

Initializer RandomNormalInitializer(const Shape& shape, double mean,
                                    double stddev,
                                    const RandomOptions& options) {
  return Normal("random_normal", "RandomStandardNormal", shape, mean, stddev,
                options);
}

Initializer TruncatedNormalInitializer(const Shape& shape, double mean,
                                       double stddev,
                                       const RandomOptions& options) {
  return Normal("truncated_normal", "TruncatedNormal", shape, mean, stddev,
                options);
}

double GlorotUniformLimit(const Shape& shape) {
  const int rank = shape.rank();
  double field = 1;
  for (int i = 0; i + 2 < rank; ++i) field *= static_cast<double>(shape.dim(i));
  const double out =
      rank == 0 ? 1 : field * static_cast<double>(shape.dim(rank - 1));
  const double in =
      rank < 2 ? out : field * static_cast<double>(shape.dim(rank - 2));
  return std::sqrt(3.0 / std::max(1.0, (in + out) / 2));
}

Initializer GlorotUniformInitializer(const Shape& shape,
                                     const RandomOptions& options) {
  const double limit = GlorotUniformLimit(shape);
  return RandomUniformInitializer(shape, -limit, limit, options);
}

}  // namespace sluice
