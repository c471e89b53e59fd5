#include "sluice/ops/control_flow/summarize.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "sluice/base/strings.h"

namespace sluice {
namespace {
namespace summarize {

template <typename T>
void AppendElement(const T& value, std::string* text) {
  if constexpr (std::is_same_v<T, std::string>) {
    absl::StrAppend(text, absl::CEscape(value));
  } else if constexpr (std::is_same_v<T, ResourceHandle>) {
    StrAppend(text, value.container, "/", value.name);
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    StrAppend(text, static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, std::complex<double>>) {
    StrAppend(text, "(", value.real(), ",", value.imag(), ")");
  } else if constexpr (sizeof(T) < 4) {
    StrAppend(text, static_cast<int>(value));  // Bools and bytes as numbers.
  } else {
    StrAppend(text, value);
  }
}

void AppendElement(const Tensor& tensor, int64_t at, std::string* text) {
  switch (tensor.dtype()) {
#define SLUICE_APPEND(name, cpp)                 \
  case DType::name:                              \
    AppendElement(tensor.data<cpp>()[at], text); \
    break;
    SLUICE_FOR_EACH_STORED_TYPE(SLUICE_APPEND)
#undef SLUICE_APPEND
    default:
      *text += "?";
  }
}

struct Printer {
  const Tensor& tensor;
  const int64_t limit;
  int64_t next = 0;
  std::string text;

  void Dimension(int dim) {
    if (next >= limit) return;
    const int64_t count = tensor.dim(dim);
    if (dim + 1 == tensor.rank()) {
      Row(dim, count);
      return;
    }
    for (int64_t i = 0; i < count && next < limit; ++i) {
      text += "[";
      Dimension(dim + 1);
      text += "]";
    }
  }

  void Row(int dim, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      if (next >= limit) {
        if (dim != 0) text += "...";
        return;
      }
      if (i > 0) text += " ";
      AppendElement(tensor, next++, &text);
    }
  }
};

}  // namespace summarize
}  // namespace

std::string SummarizeValue(const Tensor& tensor, int64_t max_values) {
  if (!tensor.initialized()) return "uninitialized";
  const int64_t limit = max_values < 0
                            ? tensor.size()
                            : std::min<int64_t>(max_values, tensor.size());
  summarize::Printer printer{tensor, limit, 0, ""};
  if (tensor.rank() > 0) {
    printer.Dimension(0);
  } else if (limit > 0) {
    summarize::AppendElement(tensor, 0, &printer.text);
  }
  if (tensor.size() > limit) printer.text += "...";
  return std::move(printer.text);
}

}  // namespace sluice
