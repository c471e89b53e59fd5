// FeatureColumn: the values that one feature has in a batch of examples, one
// row an example, before it is known how long the longest is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/io/example_wire.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

// Thread-compatible.
class FeatureColumn {
 public:
  explicit FeatureColumn(DType dtype) : dtype_(dtype) {}

  DType dtype() const { return dtype_; }
  int64_t rows() const { return static_cast<int64_t>(counts_.size()); }
  int64_t count(int64_t row) const { return counts_[row]; }
  // The values of the longest row.
  int64_t longest() const;

  // A row of these values, which are of the column's type or none.
  void AddRow(const FeatureValues& values);
  // Puts the rows of `other` behind.
  void Append(FeatureColumn other);

  // All values, one row after the other.
  absl::StatusOr<Tensor> TakeValues();
  // Rows [begin, end) moved into `to` from element `at` on; each row starts
  // `stride` elements after the one before, or right behind it if that is
  // negative.
  void MoveRows(int64_t begin, int64_t end, Tensor* to, int64_t at,
                int64_t stride);

 private:
  int64_t start(int64_t row) const { return row == 0 ? 0 : ends_[row - 1]; }

  DType dtype_;
  std::vector<int64_t> counts_;
  std::vector<int64_t> ends_;
  std::vector<std::string> strings_;
  std::vector<float> floats_;
  std::vector<int64_t> ints_;
};

// Writes `values` to the elements of `to` from `at` on.
void CopyValues(const FeatureValues& values, Tensor* to, int64_t at);

// [rows, 2] indices (row, position) of a column whose rows are those of a
// matrix.
absl::StatusOr<Tensor> MatrixIndices(const FeatureColumn& column);

}  // namespace sluice
