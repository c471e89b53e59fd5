// AsString: numbers as text, formatted as printf does. StringToNumber: back.

#include <cstdio>

#include "absl/strings/numbers.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"

namespace sluice {
namespace {

// One number takes at most this many characters beyond its own digits.
constexpr int64_t kMaxStringWidth = 1 << 16;

// Appends `value` as `format` says.
template <typename T>
void AppendFormatted(const std::string& format, T value, std::string* text) {
  char small[64];
  const int length = std::snprintf(small, sizeof(small), format.c_str(), value);
  if (length < 0) return;
  if (length < static_cast<int>(sizeof(small))) {
    text->append(small, length);
    return;
  }
  const size_t before = text->size();
  text->resize(before + length + 1);
  std::snprintf(text->data() + before, length + 1, format.c_str(), value);
  text->resize(before + length);
}

class AsStringKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    SLUICE_ASSIGN_OR_RETURN(std::string format, FormatOf(construction));
    return std::make_unique<AsStringKernel>(std::move(format));
  }
  explicit AsStringKernel(std::string format) : format_(std::move(format)) {}

  absl::Status Run(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, in.shape()));
    switch (in.dtype()) {
      case DType::kInt8:
        return Format<int8_t, int>(in, out);
      case DType::kInt16:
        return Format<int16_t, int>(in, out);
      case DType::kInt32:
        return Format<int32_t, int>(in, out);
      case DType::kInt64:
        return Format<int64_t, long long>(in, out);
      case DType::kFloat:
        return Format<float, double>(in, out);
      case DType::kDouble:
        return Format<double, double>(in, out);
      case DType::kComplex64:
        return FormatComplex<float>(in, out);
      case DType::kComplex128:
        return FormatComplex<double>(in, out);
      case DType::kBool:
        return FormatBools(in, out);
      default:
        return Unimplemented("AsString of ", DTypeName(in.dtype()));
    }
  }

 private:
  static absl::StatusOr<std::string> FormatOf(
      const KernelConstruction& construction) {
    const DType type = construction.attr<DType>("T");
    const bool scientific = construction.attr<bool>("scientific");
    const bool shortest = construction.attr<bool>("shortest");
    const int64_t precision = construction.attr<int64_t>("precision");
    const int64_t width = construction.attr<int64_t>("width");
    const std::string fill = construction.attr<std::string>("fill");
    const bool floating = IsFloating(type) || IsComplex(type);
    if (scientific && shortest) {
      return InvalidArgument(
          "Cannot select both scientific and shortest notation");
    }
    if (!floating && (scientific || shortest)) {
      return InvalidArgument(
          "scientific and shortest format not supported for datatype ",
          DTypeName(type));
    }
    if (!floating && precision >= 0) {
      return InvalidArgument("precision not supported for datatype ",
                             DTypeName(type));
    }
    if (fill.size() > 1) {
      return InvalidArgument("Fill string must be one or fewer characters");
    }
    if (!fill.empty() &&
        std::string_view(" +-0#").find(fill[0]) == std::string_view::npos) {
      return InvalidArgument("Fill argument not supported: \"", fill, "\"");
    }
    if (width > kMaxStringWidth || precision > kMaxStringWidth) {
      return InvalidArgument("AsString gives at most ", kMaxStringWidth,
                             " characters, got width ", width,
                             " and precision ", precision);
    }
    std::string format = "%" + fill;
    if (width >= 0) StrAppend(&format, width);
    if (precision >= 0) StrAppend(&format, ".", precision);
    if (floating) return format + (scientific ? "e" : shortest ? "g" : "f");
    return format + (type == DType::kInt64 ? "lld" : "d");
  }

  template <typename T, typename Printed>
  absl::Status Format(const Tensor& in, Tensor& out) const {
    for (int64_t i = 0; i < in.size(); ++i) {
      AppendFormatted(format_, static_cast<Printed>(in.data<T>()[i]),
                      &out.mutable_data<std::string>()[i]);
    }
    return absl::OkStatus();
  }

  template <typename T>
  absl::Status FormatComplex(const Tensor& in, Tensor& out) const {
    for (int64_t i = 0; i < in.size(); ++i) {
      const std::complex<T> value = in.data<std::complex<T>>()[i];
      std::string& text = out.mutable_data<std::string>()[i];
      text += '(';
      AppendFormatted(format_, static_cast<double>(value.real()), &text);
      text += ',';
      AppendFormatted(format_, static_cast<double>(value.imag()), &text);
      text += ')';
    }
    return absl::OkStatus();
  }

  static absl::Status FormatBools(const Tensor& in, Tensor& out) {
    for (int64_t i = 0; i < in.size(); ++i) {
      out.mutable_data<std::string>()[i] =
          in.data<bool>()[i] ? "true" : "false";
    }
    return absl::OkStatus();
  }

  const std::string format_;
};

bool ParseNumber(const std::string& text, float* value) {
  return absl::SimpleAtof(text, value);
}
bool ParseNumber(const std::string& text, double* value) {
  return absl::SimpleAtod(text, value);
}
template <typename T>
bool ParseNumber(const std::string& text, T* value) {
  return absl::SimpleAtoi(text, value);
}

template <typename T>
absl::Status StringToNumber(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, in.shape()));
  for (int64_t i = 0; i < in.size(); ++i) {
    const std::string& text = in.data<std::string>()[i];
    if (!ParseNumber(text, &out.mutable_data<T>()[i])) {
      return InvalidArgument(
          "StringToNumberOp could not correctly convert string: ", text);
    }
  }
  return absl::OkStatus();
}

}  // namespace

SLUICE_OP(AsString)
    .Input("input: T")
    .Output("output: string")
    .Attr(
        "T: {int8, int16, int32, int64, complex64, complex128, float, "
        "double, bool}")
    .Attr("precision: int = -1")
    .Attr("scientific: bool = false")
    .Attr("shortest: bool = false")
    .Attr("width: int = -1")
    .Attr("fill: string = ''")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();

SLUICE_OP(StringToNumber)
    .Input("string_tensor: string")
    .Output("output: out_type")
    .Attr("out_type: {float, double, int32, int64} = DT_FLOAT")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();

SLUICE_KERNEL(AsString, kCpu).Class<AsStringKernel>();
SLUICE_KERNEL(StringToNumber, kCpu)
    .ForTypes<RealTypes>("out_type", []<typename T>(KernelContext& ctx) {
      return StringToNumber<T>(ctx);
    });

}  // namespace sluice
