// Elements of tensors of any real type as floats or doubles.
#pragma once

#include <cstdint>

#include "sluice/tensor/tensor.h"

namespace sluice {

// Writes elements [begin, begin + n) to `out`. False, and nothing written, if
// the type is not a real number's.
bool RealValues(const Tensor& tensor, int64_t begin, int64_t n, float* out);
bool RealValues(const Tensor& tensor, int64_t begin, int64_t n, double* out);

}  // namespace sluice
