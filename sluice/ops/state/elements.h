// Copies of elements between tensors of one type, by size and not by type.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "sluice/base/half.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

// Copies `n` elements. Types must be equal, ranges inside.
void CopyElements(const Tensor& from, int64_t from_at, Tensor* to,
                  int64_t to_at, int64_t n);
// Sets `n` elements to the one element of `value`.
void FillElements(const Tensor& value, Tensor* to, int64_t to_at, int64_t n);

// Input `i` of type int32 or int64, by element.
class IndexInput {
 public:
  explicit IndexInput(const Tensor& tensor)
      : data_(tensor.raw()),
        size_(tensor.size()),
        wide_(tensor.dtype() == DType::kInt64) {}
  int64_t size() const { return size_; }
  int64_t operator[](int64_t i) const {
    return wide_ ? static_cast<const int64_t*>(data_)[i]
                 : static_cast<const int32_t*>(data_)[i];
  }
  // Calls body with the elements as const int32_t* or const int64_t*.
  template <typename Body>
  void Visit(const Body& body) const {
    if (wide_) {
      body(static_cast<const int64_t*>(data_));
    } else {
      body(static_cast<const int32_t*>(data_));
    }
  }
  // The first i whose element is not in [0, limit), or -1.
  int64_t FindOutside(int64_t limit) const;

 private:
  const void* data_;
  int64_t size_;
  bool wide_;
};

// Types whose variables are updated in place.
using UpdateTypes = TypeList<float, double, int32_t, int64_t, Half, BFloat16>;
// Types that optimizers train.
using TrainedTypes = TypeList<float, double, Half, BFloat16>;

// An error that names the first index outside of [0, limit).
absl::Status CheckIndices(const Tensor& indices, int64_t limit);

}  // namespace sluice
