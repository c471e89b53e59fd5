#include "sluice/ops/parsing/element_text.h"

#include "absl/strings/numbers.h"

namespace sluice {

bool SetElementFromText(const std::string& text, Tensor* tensor, int64_t at) {
  switch (tensor->dtype()) {
    case DType::kString:
      tensor->mutable_data<std::string>()[at] = text;
      return true;
    case DType::kFloat:
      return absl::SimpleAtof(text, &tensor->mutable_data<float>()[at]);
    case DType::kDouble:
      return absl::SimpleAtod(text, &tensor->mutable_data<double>()[at]);
    case DType::kInt32:
      return absl::SimpleAtoi(text, &tensor->mutable_data<int32_t>()[at]);
    case DType::kInt64:
      return absl::SimpleAtoi(text, &tensor->mutable_data<int64_t>()[at]);
    default:
      return false;
  }
}

}  // namespace sluice
