// Ops on the characters of each string: StringLength, Substr, StringLower,
// StringUpper, StringStrip, EncodeBase64, DecodeBase64, StringToHashBucket.

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "sluice/base/hash.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"

namespace sluice {
namespace {

// Calls change(in, &out) for each string.
template <typename Change>
absl::Status ForEachString(KernelContext& ctx, Change change) {
  const Tensor& in = ctx.input(0);
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, in.shape()));
  for (int64_t i = 0; i < in.size(); ++i) {
    SLUICE_RETURN_IF_ERROR(
        change(in.data<std::string>()[i], &out.mutable_data<std::string>()[i]));
  }
  return absl::OkStatus();
}

// A byte that goes on with a character of UTF-8 begun before.
bool ContinuesCharacter(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

absl::Status StringLength(KernelContext& ctx) {
  const bool bytes = ctx.attr<std::string>("unit") == "BYTE";
  const Tensor& in = ctx.input(0);
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, in.shape()));
  for (int64_t i = 0; i < in.size(); ++i) {
    const std::string& text = in.data<std::string>()[i];
    int64_t length = static_cast<int64_t>(text.size());
    if (!bytes) length -= absl::c_count_if(text, ContinuesCharacter);
    out.mutable_data<int32_t>()[i] = static_cast<int32_t>(length);
  }
  return absl::OkStatus();
}

// The byte where character `n` of `text` starts; its end for the first one
// that is not there, -1 for others.
int64_t CharacterStart(std::string_view text, int64_t n) {
  int64_t at = 0;
  const int64_t size = static_cast<int64_t>(text.size());
  for (; n > 0 && at < size; --n) {
    ++at;
    while (at < size && ContinuesCharacter(text[at])) ++at;
  }
  return n == 0 ? at : -1;
}

// `length` bytes or characters of `text` from `position` on, counted from the
// end if negative. False if that is not in the string.
bool CutSubstring(std::string_view text, int64_t position, int64_t length,
                  bool bytes, std::string* out) {
  const int64_t size = bytes ? static_cast<int64_t>(text.size())
                             : static_cast<int64_t>(text.size()) -
                                   absl::c_count_if(text, ContinuesCharacter);
  if (position < -size || position > size) return false;
  if (position < 0) position += size;
  length = std::min(length, size - position);
  if (!bytes) {
    const int64_t begin = CharacterStart(text, position);
    length = CharacterStart(text, position + length) - begin;
    position = begin;
  }
  out->assign(text.substr(position, length));
  return true;
}

absl::Status CheckSubstrArgument(std::string_view what, const Shape& shape,
                                 const Shape& input) {
  if (shape.rank() == 0 || shape == input) return absl::OkStatus();
  return Unimplemented("Substr takes a scalar ", what,
                       " or one of the shape of the input; got ", what, " ",
                       shape.DebugString(), " for input ", input.DebugString());
}

template <typename T>
absl::Status Substr(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  const Tensor& positions = ctx.input(1);
  const Tensor& lengths = ctx.input(2);
  if (positions.shape() != lengths.shape()) {
    return InvalidArgument("pos and len should have the same shape, got: ",
                           positions.shape().DebugString(), " vs. ",
                           lengths.shape().DebugString());
  }
  SLUICE_RETURN_IF_ERROR(
      CheckSubstrArgument("pos", positions.shape(), in.shape()));
  const bool bytes = ctx.attr<std::string>("unit") == "BYTE";
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, in.shape()));
  for (int64_t i = 0; i < in.size(); ++i) {
    const int64_t at = positions.rank() == 0 ? 0 : i;
    const std::string& text = in.data<std::string>()[i];
    const T position = positions.data<T>()[at];
    const T length = lengths.data<T>()[at];
    if (length < 0) {
      return InvalidArgument("len ", length, " of Substr is negative");
    }
    if (!CutSubstring(text, position, length, bytes,
                      &out.mutable_data<std::string>()[i])) {
      return InvalidArgument("pos ", position, " out of range for string b'",
                             text, "' at index ", i);
    }
  }
  return absl::OkStatus();
}

absl::Status SubstrShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.Merge(1, 2).status());
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

// `change` turns ASCII letters; others need tables that we do not have.
absl::Status ChangeCase(KernelContext& ctx, void (*change)(std::string*)) {
  const std::string encoding = ctx.attr<std::string>("encoding");
  if (!encoding.empty() && encoding != "utf-8") {
    return InvalidArgument(
        "only utf-8 or '' (no encoding) is supported, received ", encoding);
  }
  return ForEachString(
      ctx, [&](const std::string& in, std::string* out) -> absl::Status {
        if (!encoding.empty() && absl::c_any_of(in, [](char c) {
              return static_cast<unsigned char>(c) >= 0x80;
            })) {
          return Unimplemented("Upper and lower case beyond ASCII, in '", in,
                               "'");
        }
        *out = in;
        change(out);
        return absl::OkStatus();
      });
}

absl::Status StringLower(KernelContext& ctx) {
  return ChangeCase(ctx, [](std::string* s) { absl::AsciiStrToLower(s); });
}
absl::Status StringUpper(KernelContext& ctx) {
  return ChangeCase(ctx, [](std::string* s) { absl::AsciiStrToUpper(s); });
}

absl::Status StringStrip(KernelContext& ctx) {
  return ForEachString(ctx, [](const std::string& in, std::string* out) {
    *out = std::string(absl::StripAsciiWhitespace(in));
    return absl::OkStatus();
  });
}

absl::Status EncodeBase64(KernelContext& ctx) {
  const bool pad = ctx.attr<bool>("pad");
  return ForEachString(ctx, [pad](const std::string& in, std::string* out) {
    absl::WebSafeBase64Escape(in, out);
    while (pad && out->size() % 4 != 0) out->push_back('=');
    return absl::OkStatus();
  });
}

absl::Status DecodeBase64(KernelContext& ctx) {
  return ForEachString(
      ctx, [](const std::string& in, std::string* out) -> absl::Status {
        if (absl::WebSafeBase64Unescape(in, out)) return absl::OkStatus();
        return InvalidArgument("Invalid character found in base64.");
      });
}

absl::Status StringToHashBucket(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  const uint64_t buckets = ctx.attr<int64_t>("num_buckets");
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, in.shape()));
  for (int64_t i = 0; i < in.size(); ++i) {
    out.mutable_data<int64_t>()[i] =
        static_cast<int64_t>(Hash64(in.data<std::string>()[i]) % buckets);
  }
  return absl::OkStatus();
}

}  // namespace

SLUICE_OP(StringLength)
    .Input("input: string")
    .Output("output: int32")
    .Attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();

SLUICE_OP(Substr)
    .Input("input: string")
    .Input("pos: T")
    .Input("len: T")
    .Output("output: string")
    .Attr("T: {int32, int64}")
    .Attr("unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
    .Shape(SubstrShape)
    .NotDifferentiable();

SLUICE_OP(StringLower)
    .Input("input: string")
    .Output("output: string")
    .Attr("encoding: string = ''")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();

SLUICE_OP(StringUpper)
    .Input("input: string")
    .Output("output: string")
    .Attr("encoding: string = ''")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();

SLUICE_OP(StringStrip)
    .Input("input: string")
    .Output("output: string")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();

SLUICE_OP(EncodeBase64)
    .Input("input: string")
    .Output("output: string")
    .Attr("pad: bool = false")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();

SLUICE_OP(DecodeBase64)
    .Input("input: string")
    .Output("output: string")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();

SLUICE_OP(StringToHashBucket)
    .Input("string_tensor: string")
    .Output("output: int64")
    .Attr("num_buckets: int >= 1")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();

SLUICE_KERNEL(StringLength, kCpu).Function(StringLength);
SLUICE_KERNEL(Substr, kCpu)
    .ForTypes<IndexTypes>("T", []<typename T>(KernelContext& ctx) {
      return Substr<T>(ctx);
    });
SLUICE_KERNEL(StringLower, kCpu).Function(StringLower);
SLUICE_KERNEL(StringUpper, kCpu).Function(StringUpper);
SLUICE_KERNEL(StringStrip, kCpu).Function(StringStrip);
SLUICE_KERNEL(EncodeBase64, kCpu).Function(EncodeBase64);
SLUICE_KERNEL(DecodeBase64, kCpu).Function(DecodeBase64);
SLUICE_KERNEL(StringToHashBucket, kCpu).Function(StringToHashBucket);

}  // namespace sluice
