// Text as an element of a tensor.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/tensor/tensor.h"

namespace sluice {

// Writes what `text` says to element `at`, whose type is float, double, int32,
// int64 or string. False if it is no such number, or out of its range.
bool SetElementFromText(const std::string& text, Tensor* tensor, int64_t at);

}  // namespace sluice
