#include "sluice/ops/sparse/sparse_parts.h"

#include <algorithm>

#include "sluice/base/status.h"
#include "sluice/ops/state/elements.h"

namespace sluice {

absl::Status CheckSparse(const SparseParts& parts) {
  if (parts.indices.rank() != 2) {
    return InvalidArgument(
        "Input indices should be a matrix but received shape ",
        parts.indices.shape().DebugString());
  }
  if (parts.values.rank() != 1) {
    return InvalidArgument(
        "Input values should be a vector but received shape ",
        parts.values.shape().DebugString());
  }
  if (parts.shape.rank() != 1) {
    return InvalidArgument("Input shape should be a vector but received shape ",
                           parts.shape.shape().DebugString());
  }
  if (parts.indices.dim(0) != parts.values.dim(0)) {
    return InvalidArgument(
        "Number of values must match first dimension of "
        "indices. Got ",
        parts.values.dim(0),
        " values, indices shape: ", parts.indices.shape().DebugString());
  }
  if (parts.indices.dim(1) != parts.rank()) {
    return InvalidArgument(
        "Number of dimensions must match second dimension of indices. Got ",
        parts.rank(),
        " dimensions, indices shape: ", parts.indices.shape().DebugString());
  }
  return Shape::Create(parts.shape.data<int64_t>()).status();
}

absl::StatusOr<SparseParts> SparseInput(const KernelContext& ctx) {
  SparseParts parts{ctx.input(0), ctx.input(1), ctx.input(2)};
  SLUICE_RETURN_IF_ERROR(CheckSparse(parts));
  return parts;
}

absl::StatusOr<std::vector<SparseParts>> SparseRows(const SparseParts& batch) {
  const int64_t rank = batch.rank();
  if (rank < 2) {
    return InvalidArgument(
        "Rank of input SparseTensor should be > 1, but saw rank: ", rank);
  }
  const auto shape = batch.shape.data<int64_t>();
  const auto indices = batch.indices.data<int64_t>();
  const int64_t rows = shape[0];
  // A shape is a few bytes and may claim any number of rows.
  constexpr int64_t kMostRows = 1 << 28;
  if (rows > kMostRows) {
    return InvalidArgument("A sparse tensor of ", rows,
                           " rows cannot be taken apart");
  }
  std::vector<int64_t> counts(rows);
  for (int64_t i = 0; i < batch.size(); ++i) {
    const int64_t row = indices[i * rank];
    if (row < 0 || row >= rows) {
      return InvalidArgument(
          "Received unexpected column 0 value in input "
          "SparseTensor: ",
          row, " < 0 or >= N (= ", rows, ")");
    }
    ++counts[row];
  }
  std::vector<SparseParts> parts(rows);
  for (int64_t row = 0; row < rows; ++row) {
    parts[row].indices = Tensor(DType::kInt64, Shape({counts[row], rank - 1}));
    parts[row].values = Tensor(batch.values.dtype(), Shape({counts[row]}));
    parts[row].shape = Tensor::Of<int64_t>({rank - 1}, shape.subspan(1));
    counts[row] = 0;
  }
  for (int64_t i = 0; i < batch.size(); ++i) {
    const int64_t row = indices[i * rank];
    const int64_t at = counts[row]++;
    std::copy_n(
        indices.begin() + i * rank + 1, rank - 1,
        parts[row].indices.mutable_data<int64_t>().begin() + at * (rank - 1));
    CopyElements(batch.values, i, &parts[row].values, at, 1);
  }
  return parts;
}

absl::StatusOr<SparseParts> StackSparse(const std::vector<SparseParts>& rows,
                                        DType dtype) {
  int64_t total = 0;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < rows.size(); ++i) {
    const SparseParts& row = rows[i];
    if (row.values.dtype() != dtype) {
      return InvalidArgument(
          "Requested SparseTensor of type ", DTypeName(dtype),
          " but SparseTensor[", i,
          "].values.dtype() == ", DTypeName(row.values.dtype()));
    }
    if (i == 0) sizes.resize(row.rank());
    if (row.rank() != static_cast<int64_t>(sizes.size())) {
      return InvalidArgument(
          "Inconsistent rank across SparseTensors: rank prior to "
          "SparseTensor[",
          i, "] was: ", sizes.size(), " but rank of SparseTensor[", i,
          "] is: ", row.rank());
    }
    for (size_t d = 0; d < sizes.size(); ++d) {
      sizes[d] = std::max(sizes[d], row.shape.data<int64_t>()[d]);
    }
    total += row.size();
  }
  const int64_t rank = static_cast<int64_t>(sizes.size()) + 1;
  SparseParts stacked;
  SLUICE_ASSIGN_OR_RETURN(stacked.indices,
                          Tensor::Create(DType::kInt64, Shape({total, rank})));
  SLUICE_ASSIGN_OR_RETURN(stacked.values,
                          Tensor::Create(dtype, Shape({total})));
  auto out = stacked.indices.mutable_data<int64_t>().begin();
  int64_t at = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto indices = rows[i].indices.data<int64_t>();
    for (int64_t k = 0; k < rows[i].size(); ++k) {
      *out++ = static_cast<int64_t>(i);
      out = std::copy_n(indices.begin() + k * (rank - 1), rank - 1, out);
    }
    CopyElements(rows[i].values, 0, &stacked.values, at, rows[i].size());
    at += rows[i].size();
  }
  sizes.insert(sizes.begin(), static_cast<int64_t>(rows.size()));
  stacked.shape = Tensor::Of<int64_t>({rank}, std::span<const int64_t>(sizes));
  return stacked;
}

void SetSparseOutputs(KernelContext& ctx, SparseParts parts) {
  ctx.set_output(0, std::move(parts.indices));
  ctx.set_output(1, std::move(parts.values));
  ctx.set_output(2, std::move(parts.shape));
}

}  // namespace sluice
