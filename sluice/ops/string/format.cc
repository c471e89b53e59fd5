// StringFormat: tensors set into a text, as tf.print shows them.

#include <cstdio>
#include <cstdlib>
#include <limits>

#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"

namespace sluice {
namespace {
namespace string_format {

// The fewest digits of two choices that give the number back.
template <typename T>
void AppendNumber(T value, std::string* text) {
  char buffer[40];
  constexpr int kDigits = std::numeric_limits<T>::digits10;
  const double wide = static_cast<double>(value);
  std::snprintf(buffer, sizeof(buffer), "%.*g", kDigits, wide);
  if (static_cast<T>(std::strtod(buffer, nullptr)) != value) {
    std::snprintf(buffer, sizeof(buffer), "%.*g",
                  std::numeric_limits<T>::max_digits10, wide);
  }
  text->append(buffer);
}

template <typename T>
void AppendElement(const T& value, std::string* text) {
  if constexpr (std::is_same_v<T, std::string>) {
    StrAppend(text, "\"", value, "\"");
  } else if constexpr (std::is_same_v<T, ResourceHandle>) {
    StrAppend(text, value.container, "/", value.name);
  } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    AppendNumber(static_cast<float>(value), text);
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, std::complex<double>>) {
    *text += '(';
    AppendNumber(value.real(), text);
    *text += ',';
    AppendNumber(value.imag(), text);
    *text += ')';
  } else if constexpr (std::is_floating_point_v<T>) {
    AppendNumber(value, text);
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

// Shows the first and last `ends` elements of each dimension.
struct Printer {
  const Tensor& tensor;
  const int64_t ends;
  std::string* text;

  // A space within a row; else lines, and as many spaces as brackets are open.
  void Separate(int dim) {
    if (dim + 1 == tensor.rank()) {
      *text += ' ';
      return;
    }
    text->append(tensor.rank() - 1 - dim, '\n');
    text->append(dim + 1, ' ');
  }

  // `first` is the element where this part starts.
  void Print(int dim, int64_t first) {
    if (dim == tensor.rank()) {
      AppendElement(tensor, first, text);
      return;
    }
    int64_t stride = 1;
    for (int i = dim + 1; i < tensor.rank(); ++i) stride *= tensor.dim(i);
    const int64_t count = tensor.dim(dim);
    const int64_t head = std::min(ends, count);
    *text += '[';
    for (int64_t i = 0; i < head; ++i) {
      if (i > 0) Separate(dim);
      Print(dim + 1, first + i * stride);
    }
    if (count - ends > ends) {
      Separate(dim);
      *text += "...";
    }
    for (int64_t i = std::max(head, count - ends); i < count; ++i) {
      Separate(dim);
      Print(dim + 1, first + i * stride);
    }
    *text += ']';
  }
};

class Kernel : public sluice::Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<sluice::Kernel>> Create(
      const KernelConstruction& construction) {
    const std::string text = construction.attr<std::string>("template");
    const std::string mark = construction.attr<std::string>("placeholder");
    if (mark.empty()) {
      return InvalidArgument("The placeholder of StringFormat is empty");
    }
    std::vector<std::string> pieces;
    size_t begin = 0;
    for (size_t at; (at = text.find(mark, begin)) != std::string::npos;) {
      pieces.push_back(text.substr(begin, at - begin));
      begin = at + mark.size();
    }
    pieces.push_back(text.substr(begin));
    const size_t inputs = construction.node().num_inputs();
    if (pieces.size() != inputs + 1) {
      return InvalidArgument(
          "num placeholders in template and num inputs must match: ",
          pieces.size() - 1, " vs. ", inputs);
    }
    const int64_t summarize = construction.attr<int64_t>("summarize");
    return std::make_unique<Kernel>(std::move(pieces), summarize);
  }
  Kernel(std::vector<std::string> pieces, int64_t summarize)
      : pieces_(std::move(pieces)),
        ends_(summarize < 0 ? std::numeric_limits<int64_t>::max() : summarize) {
  }

  absl::Status Run(KernelContext& ctx) override {
    SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, Shape()));
    std::string& text = out.mutable_data<std::string>()[0];
    text = pieces_[0];
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      Printer{ctx.input(i), ends_, &text}.Print(0, 0);
      text += pieces_[i + 1];
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<std::string> pieces_;
  const int64_t ends_;
};

}  // namespace string_format
}  // namespace

SLUICE_OP(StringFormat)
    .Input("inputs: T")
    .Output("output: string")
    .Attr("T: list(type) >= 0")
    .Attr("template: string = '%s'")
    .Attr("placeholder: string = '%s'")
    .Attr("summarize: int = 3")
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_KERNEL(StringFormat, kCpu).Class<string_format::Kernel>();

}  // namespace sluice
