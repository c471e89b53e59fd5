#include "sluice/ops/lookup/table_rows.h"

#include <algorithm>

#include "sluice/base/strings.h"
#include "sluice/ops/state/elements.h"

namespace sluice {
namespace {

std::string ElementText(const Tensor& scalar) {
  switch (scalar.dtype()) {
    case DType::kString:
      return scalar.scalar<std::string>();
    case DType::kInt64:
      return StrCat(scalar.scalar<int64_t>());
    case DType::kInt32:
      return StrCat(scalar.scalar<int32_t>());
    case DType::kFloat:
      return StrCat(scalar.scalar<float>());
    case DType::kDouble:
      return StrCat(scalar.scalar<double>());
    default:
      return scalar.DebugString();
  }
}

}  // namespace

std::string RowText(const Tensor& values, int64_t row, int64_t elements) {
  if (elements != 1) return values.Rows(row, row + 1).DebugString();
  Tensor scalar(values.dtype(), Shape());
  CopyElements(values, row, &scalar, 0, 1);
  return ElementText(scalar);
}

void TableRows::Append(const Tensor& values, int64_t from) {
  if (dtype_ == DType::kString) {
    const auto begin = values.data<std::string>().begin() + from * row_;
    strings_.insert(strings_.end(), begin, begin + row_);
    return;
  }
  const char* begin = static_cast<const char*>(values.raw()) + from * bytes();
  bytes_.insert(bytes_.end(), begin, begin + bytes());
}

void TableRows::Set(int64_t at, const Tensor& values, int64_t from) {
  if (dtype_ == DType::kString) {
    const auto begin = values.data<std::string>().begin() + from * row_;
    std::copy(begin, begin + row_, strings_.begin() + at * row_);
    return;
  }
  const char* begin = static_cast<const char*>(values.raw()) + from * bytes();
  std::copy(begin, begin + bytes(), bytes_.begin() + at * bytes());
}

void TableRows::Remove(int64_t at) {
  if (dtype_ == DType::kString) {
    std::swap_ranges(strings_.end() - row_, strings_.end(),
                     strings_.begin() + at * row_);
    strings_.resize(strings_.size() - row_);
    return;
  }
  std::copy(bytes_.end() - bytes(), bytes_.end(),
            bytes_.begin() + at * bytes());
  bytes_.resize(bytes_.size() - bytes());
}

void TableRows::CopyTo(int64_t at, Tensor* values, int64_t to) const {
  if (dtype_ == DType::kString) {
    std::copy_n(strings_.begin() + at * row_, row_,
                values->mutable_data<std::string>().begin() + to * row_);
    return;
  }
  std::copy_n(bytes_.begin() + at * bytes(), bytes(),
              static_cast<char*>(values->mutable_raw()) + to * bytes());
}

bool TableRows::Equal(int64_t at, const Tensor& values, int64_t from) const {
  if (dtype_ == DType::kString) {
    return std::equal(strings_.begin() + at * row_,
                      strings_.begin() + (at + 1) * row_,
                      values.data<std::string>().begin() + from * row_);
  }
  return std::equal(bytes_.begin() + at * bytes(),
                    bytes_.begin() + (at + 1) * bytes(),
                    static_cast<const char*>(values.raw()) + from * bytes());
}

std::string TableRows::Text(int64_t at) const {
  Tensor row(dtype_, Shape({row_}));
  CopyTo(at, &row, 0);
  return row_ == 1 ? ElementText(row.Reshaped(Shape())) : row.DebugString();
}

}  // namespace sluice
