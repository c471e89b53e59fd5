// TableRows: the values of a table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/tensor/tensor.h"

namespace sluice {

// Row by row: objects or plain bytes. Thread-compatible.
class TableRows {
 public:
  TableRows(DType dtype, int64_t row) : dtype_(dtype), row_(row) {}

  // Copies row `from` of `values`.
  void Append(const Tensor& values, int64_t from);
  void Set(int64_t at, const Tensor& values, int64_t from);
  // Puts the last row in the place of row `at`.
  void Remove(int64_t at);
  void CopyTo(int64_t at, Tensor* values, int64_t to) const;
  bool Equal(int64_t at, const Tensor& values, int64_t from) const;
  std::string Text(int64_t at) const;

 private:
  size_t bytes() const { return row_ * ElementSize(dtype_); }

  DType dtype_;
  int64_t row_;  // Elements.
  std::vector<std::string> strings_;
  std::vector<char> bytes_;
};

// Row `row` of a tensor whose rows have so many elements, for messages.
std::string RowText(const Tensor& values, int64_t row, int64_t elements);

}  // namespace sluice
