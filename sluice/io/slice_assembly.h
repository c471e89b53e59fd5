// Putting a tensor together from the slices it was saved in, inside io/.
#pragma once

#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "sluice/io/tensor_slice.h"

namespace sluice {

// Reads the part `wanted` of a tensor `name` with type `dtype` and shape
// `full`, of which `stored` slices exist. load(i) reads the i-th of them; its
// result must have that slice's shape.
absl::StatusOr<Tensor> AssembleSlices(
    std::string_view name, DType dtype, const Shape& full,
    const TensorSlice& wanted, const std::vector<TensorSlice>& stored,
    absl::FunctionRef<absl::StatusOr<Tensor>(size_t)> load);

}  // namespace sluice
