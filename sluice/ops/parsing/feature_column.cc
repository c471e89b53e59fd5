#include "sluice/ops/parsing/feature_column.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "sluice/base/status.h"

namespace sluice {
namespace {

template <typename T>
void AppendVector(std::vector<T>&& from, std::vector<T>* to) {
  to->insert(to->end(), std::make_move_iterator(from.begin()),
             std::make_move_iterator(from.end()));
}

template <typename T>
void MoveRange(std::vector<T>& from, int64_t begin, int64_t n, Tensor* to,
               int64_t at) {
  std::move(from.begin() + begin, from.begin() + begin + n,
            to->mutable_data<T>().begin() + at);
}

}  // namespace

int64_t FeatureColumn::longest() const {
  return counts_.empty() ? 0 : *std::ranges::max_element(counts_);
}

void FeatureColumn::AddRow(const FeatureValues& values) {
  const int64_t n = values.size();
  counts_.push_back(n);
  ends_.push_back(n + (ends_.empty() ? 0 : ends_.back()));
  if (n == 0) return;
  strings_.insert(strings_.end(), values.strings.begin(), values.strings.end());
  floats_.insert(floats_.end(), values.floats.begin(), values.floats.end());
  ints_.insert(ints_.end(), values.ints.begin(), values.ints.end());
}

void FeatureColumn::Append(FeatureColumn other) {
  const int64_t before = ends_.empty() ? 0 : ends_.back();
  for (int64_t& end : other.ends_) end += before;
  AppendVector(std::move(other.counts_), &counts_);
  AppendVector(std::move(other.ends_), &ends_);
  AppendVector(std::move(other.strings_), &strings_);
  AppendVector(std::move(other.floats_), &floats_);
  AppendVector(std::move(other.ints_), &ints_);
}

absl::StatusOr<Tensor> FeatureColumn::TakeValues() {
  const int64_t n = ends_.empty() ? 0 : ends_.back();
  SLUICE_ASSIGN_OR_RETURN(Tensor values, Tensor::Create(dtype_, Shape({n})));
  MoveRows(0, rows(), &values, 0, -1);
  return values;
}

void FeatureColumn::MoveRows(int64_t begin, int64_t end, Tensor* to, int64_t at,
                             int64_t stride) {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t n = counts_[row];
    if (dtype_ == DType::kString) {
      MoveRange(strings_, start(row), n, to, at);
    } else if (dtype_ == DType::kFloat) {
      MoveRange(floats_, start(row), n, to, at);
    } else {
      MoveRange(ints_, start(row), n, to, at);
    }
    at += stride < 0 ? n : stride;
  }
}

void CopyValues(const FeatureValues& values, Tensor* to, int64_t at) {
  if (values.dtype == DType::kString) {
    std::ranges::copy(values.strings,
                      to->mutable_data<std::string>().begin() + at);
  } else if (values.dtype == DType::kFloat) {
    std::ranges::copy(values.floats, to->mutable_data<float>().begin() + at);
  } else {
    std::ranges::copy(values.ints, to->mutable_data<int64_t>().begin() + at);
  }
}

absl::StatusOr<Tensor> MatrixIndices(const FeatureColumn& column) {
  int64_t total = 0;
  for (int64_t row = 0; row < column.rows(); ++row) total += column.count(row);
  SLUICE_ASSIGN_OR_RETURN(Tensor indices,
                          Tensor::Create(DType::kInt64, Shape({total, 2})));
  auto out = indices.mutable_data<int64_t>().begin();
  for (int64_t row = 0; row < column.rows(); ++row) {
    for (int64_t i = 0; i < column.count(row); ++i) {
      *out++ = row;
      *out++ = i;
    }
  }
  return indices;
}

}  // namespace sluice
