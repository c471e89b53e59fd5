// First values for variables, named as TensorFlow's initializers name them.
//
//   Variable w(scope.Named("w"), GlorotUniformInitializer({784, 10}));
#pragma once

#include <cstdint>
#include <optional>

#include "sluice/client/variable.h"

namespace sluice {

// All elements `value`. Shapes of 1000 elements and more are filled when the
// variable is initialised instead of being stored in the graph.
Initializer ZerosInitializer(const Shape& shape, DType dtype = DType::kFloat);
Initializer OnesInitializer(const Shape& shape, DType dtype = DType::kFloat);
// Stored in the graph whatever its size.
Initializer ConstantInitializer(double value, const Shape& shape,
                                DType dtype = DType::kFloat);

// Random values. Without a seed they differ from run to run.
struct RandomOptions {
  DType dtype = DType::kFloat;
  std::optional<int64_t> seed = std::nullopt;
};
// In [low, high).
Initializer RandomUniformInitializer(const Shape& shape, double low,
                                     double high,
                                     const RandomOptions& options = {});
Initializer RandomNormalInitializer(const Shape& shape, double mean,
                                    double stddev,
                                    const RandomOptions& options = {});
// Normal, but never more than two standard deviations from the mean.
Initializer TruncatedNormalInitializer(const Shape& shape, double mean,
                                       double stddev,
                                       const RandomOptions& options = {});
// Uniform, scaled to the number of inputs and outputs of a layer: the last two
// dimensions, the ones before being its field. What get_variable uses.
Initializer GlorotUniformInitializer(const Shape& shape,
                                     const RandomOptions& options = {});
// Its bound for that shape: values are in [-limit, limit).
double GlorotUniformLimit(const Shape& shape);

}  // namespace sluice
