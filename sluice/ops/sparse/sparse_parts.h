// SparseParts: the three tensors that stand for a sparse one, and how several
// become a batch and a batch several.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/kernel/kernel.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

// A value; thread-compatible.
struct SparseParts {
  Tensor indices;  // [values, rank], int64.
  Tensor values;   // [values]
  Tensor shape;    // [rank], int64.

  int64_t rank() const { return shape.size(); }
  int64_t size() const { return values.size(); }
};

// Inputs 0 to 2, if they can be a sparse tensor.
absl::StatusOr<SparseParts> SparseInput(const KernelContext& ctx);
absl::Status CheckSparse(const SparseParts& parts);

// The rows of a tensor whose rank is at least 2, which keep their own order.
absl::StatusOr<std::vector<SparseParts>> SparseRows(const SparseParts& batch);
// The other way: row i of the result is tensor i. The sizes are the largest.
absl::StatusOr<SparseParts> StackSparse(const std::vector<SparseParts>& rows,
                                        DType dtype);

void SetSparseOutputs(KernelContext& ctx, SparseParts parts);

}  // namespace sluice
