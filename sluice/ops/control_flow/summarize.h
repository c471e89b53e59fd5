// How Assert and Print show a tensor.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/tensor/tensor.h"

namespace sluice {

// The first `max_values` elements (all, if negative), "..." for the rest, inner
// dimensions in brackets: "1 2 3", "[1 2][3 4]", "[1 2][3...]...".
std::string SummarizeValue(const Tensor& tensor, int64_t max_values);

}  // namespace sluice
