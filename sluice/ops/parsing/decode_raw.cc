// DecodeRaw, DecodePaddedRaw: the bytes of strings as numbers.
// DecodeCompressed: what was packed with zlib or gzip.

#include <algorithm>
#include <cstring>

#include "sluice/base/memory_file_system.h"
#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/io/byte_stream.h"
#include "sluice/kernel/kernel_registry.h"

namespace sluice {
namespace {
namespace decode_raw {

// Bytes that are one number: half of a complex one.
size_t NumberSize(DType dtype) {
  return ElementSize(dtype) / (IsComplex(dtype) ? 2 : 1);
}

void SwapBytes(char* bytes, size_t total, size_t size) {
  if (size < 2) return;
  for (size_t i = 0; i < total; i += size) {
    std::reverse(bytes + i, bytes + i + size);
  }
}

// The output, each string of the input `width` bytes of it.
absl::StatusOr<Tensor*> MakeOutput(KernelContext& ctx, DType dtype,
                                   size_t width) {
  std::vector<int64_t> dims(ctx.input(0).shape().dims().begin(),
                            ctx.input(0).shape().dims().end());
  dims.push_back(static_cast<int64_t>(width / ElementSize(dtype)));
  SLUICE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, shape));
  return &out;
}

absl::Status Decode(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  const DType dtype = ctx.attr<DType>("out_type");
  const auto strings = in.data<std::string>();
  const size_t width = strings.empty() ? 0 : strings[0].size();
  for (size_t i = 1; i < strings.size(); ++i) {
    if (strings[i].size() == width) continue;
    return InvalidArgument(
        "DecodeRaw requires input strings to all be the same size, but "
        "element ",
        i, " has size ", width, " != ", strings[i].size());
  }
  if (width % ElementSize(dtype) != 0) {
    return InvalidArgument("Input to DecodeRaw has length ", width,
                           " that is not a multiple of ", ElementSize(dtype),
                           ", the size of ", DTypeName(dtype));
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor* const out, MakeOutput(ctx, dtype, width));
  char* to = static_cast<char*>(out->mutable_raw());
  for (const std::string& text : strings) {
    if (width > 0) std::memcpy(to, text.data(), width);
    // A bool that is neither 0 nor 1 would be undefined.
    if (dtype == DType::kBool) {
      for (size_t i = 0; i < width; ++i) to[i] = to[i] != 0;
    }
    to += width;
  }
  if (!ctx.attr<bool>("little_endian")) {
    SwapBytes(static_cast<char*>(out->mutable_raw()), out->bytes(),
              NumberSize(dtype));
  }
  return absl::OkStatus();
}

absl::Status DecodePadded(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  const DType dtype = ctx.attr<DType>("out_type");
  if (ctx.input(1).rank() != 0) {
    return InvalidArgument("fixed_length must be a scalar, but has shape ",
                           ctx.input(1).shape().DebugString());
  }
  const int32_t length = ctx.input(1).scalar<int32_t>();
  if (length <= 0) {
    return InvalidArgument("`fixed_length` (", length,
                           ") must be greater than zero.");
  }
  const size_t width = length;
  if (width % ElementSize(dtype) != 0) {
    return InvalidArgument("`fixed_length` (", length,
                           ") must be a multiple of the size of out_type (",
                           ElementSize(dtype), ")");
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor* const out, MakeOutput(ctx, dtype, width));
  char* to = static_cast<char*>(out->mutable_raw());
  std::memset(to, 0, out->bytes());
  for (const std::string& text : in.data<std::string>()) {
    const size_t n = std::min(text.size(), width);
    std::copy_n(text.data(), n, to);
    to += width;
  }
  if (!ctx.attr<bool>("little_endian")) {
    SwapBytes(static_cast<char*>(out->mutable_raw()), out->bytes(),
              NumberSize(dtype));
  }
  return absl::OkStatus();
}

absl::Status RawShape(ShapeContext& c) {
  PartialShape shape = c.input(0);
  if (shape.known_rank()) shape.AddDim(-1);
  c.set_output(0, shape);
  return absl::OkStatus();
}

absl::Status PaddedShape(ShapeContext& c) {
  SLUICE_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  PartialShape shape = c.input(0);
  const std::optional<Tensor> length = c.input_value(1);
  if (shape.known_rank()) {
    shape.AddDim(length ? length->scalar<int32_t>() /
                              static_cast<int64_t>(
                                  ElementSize(c.attr<DType>("out_type")))
                        : -1);
  }
  c.set_output(0, shape);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Unpack(const std::string& packed,
                                   Compression compression) {
  if (compression == Compression::kNone) return packed;
  MemoryFileSystem files;
  SLUICE_RETURN_IF_ERROR(files.WriteFile("packed", packed));
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<const RandomAccessFile> file,
                          files.NewRandomAccess("packed"));
  const auto stream = NewByteStream(std::move(file), compression);
  constexpr size_t kPart = 64 << 10;
  std::string text;
  while (true) {
    const size_t before = text.size();
    text.resize(before + kPart);
    SLUICE_ASSIGN_OR_RETURN(const size_t got,
                            stream->Read(kPart, text.data() + before));
    text.resize(before + got);
    if (got == 0) return text;
  }
}

absl::Status DecodeCompressed(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(
      const Compression compression,
      ParseCompression(ctx.attr<std::string>("compression_type")));
  const Tensor& in = ctx.input(0);
  SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, in.shape()));
  for (int64_t i = 0; i < in.size(); ++i) {
    SLUICE_ASSIGN_OR_RETURN(out.mutable_data<std::string>()[i],
                            Unpack(in.data<std::string>()[i], compression));
  }
  return absl::OkStatus();
}

}  // namespace decode_raw
}  // namespace

SLUICE_OP(DecodeRaw)
    .Input("bytes: string")
    .Output("output: out_type")
    .Attr(
        "out_type: {half, float, double, int32, uint16, uint8, int16, int8, "
        "int64, complex64, complex128, bool}")
    .Attr("little_endian: bool = true")
    .Shape(decode_raw::RawShape)
    .NotDifferentiable();

SLUICE_OP(DecodePaddedRaw)
    .Input("input_bytes: string")
    .Input("fixed_length: int32")
    .Output("output: out_type")
    .Attr(
        "out_type: {half, float, double, int32, uint16, uint8, int16, int8, "
        "int64}")
    .Attr("little_endian: bool = true")
    .Shape(decode_raw::PaddedShape)
    .NotDifferentiable();

SLUICE_OP(DecodeCompressed)
    .Input("bytes: string")
    .Output("output: string")
    .Attr("compression_type: string = ''")
    .Shape(shapes::SameAsInput)
    .NotDifferentiable();

SLUICE_KERNEL(DecodeRaw, kCpu).Function(decode_raw::Decode);
SLUICE_KERNEL(DecodePaddedRaw, kCpu).Function(decode_raw::DecodePadded);
SLUICE_KERNEL(DecodeCompressed, kCpu).Function(decode_raw::DecodeCompressed);

}  // namespace sluice
