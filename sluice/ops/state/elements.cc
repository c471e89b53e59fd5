#include "sluice/ops/state/elements.h"

#include <algorithm>
#include <cstring>

#include "sluice/base/status.h"
#include "sluice/numeric/gather_rows.h"

namespace sluice {
namespace {

template <typename T>
void CopyObjects(const Tensor& from, int64_t from_at, Tensor* to, int64_t to_at,
                 int64_t n) {
  std::copy_n(from.data<T>().data() + from_at, n,
              to->mutable_data<T>().data() + to_at);
}

// "[2,1]" for element 5 of shape [3,2]; nothing for a scalar.
std::string PositionText(const Shape& shape, int64_t at) {
  std::string text;
  int64_t rest = shape.size();
  for (int64_t dim : shape.dims()) {
    rest /= dim;
    StrAppend(&text, text.empty() ? "[" : ",", at / rest);
    at %= rest;
  }
  return text.empty() ? text : text + "]";
}

}  // namespace

void CopyElements(const Tensor& from, int64_t from_at, Tensor* to,
                  int64_t to_at, int64_t n) {
  if (n == 0) return;
  if (from.dtype() == DType::kString) {
    CopyObjects<std::string>(from, from_at, to, to_at, n);
  } else if (from.dtype() == DType::kResource) {
    CopyObjects<ResourceHandle>(from, from_at, to, to_at, n);
  } else {
    const size_t size = ElementSize(from.dtype());
    std::memcpy(static_cast<char*>(to->mutable_raw()) + to_at * size,
                static_cast<const char*>(from.raw()) + from_at * size,
                n * size);
  }
}

void FillElements(const Tensor& value, Tensor* to, int64_t to_at, int64_t n) {
  for (int64_t i = 0; i < n; ++i) CopyElements(value, 0, to, to_at + i, 1);
}

int64_t IndexInput::FindOutside(int64_t limit) const {
  int64_t outside = -1;
  Visit([&](const auto* indices) {
    outside = FindIndexOutside(indices, size_, limit);
  });
  return outside;
}

absl::Status CheckIndices(const Tensor& indices, int64_t limit) {
  const IndexInput index(indices);
  const int64_t i = index.FindOutside(limit);
  if (i < 0) return absl::OkStatus();
  return InvalidArgument("indices", PositionText(indices.shape(), i), " = ",
                         index[i], " is not in [0, ", limit, ")");
}

}  // namespace sluice
