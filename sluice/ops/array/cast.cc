// Cast: numbers as another type.
#include <bit>

#include "sluice/graph/scope.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/numeric/convert.h"

namespace sluice {
namespace {
namespace cast_op {

// kInvalid types have no conversion.
std::optional<NumberType> NumberTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return NumberType::kBool;
    case DType::kUint8:
      return NumberType::kUint8;
    case DType::kInt8:
      return NumberType::kInt8;
    case DType::kUint16:
      return NumberType::kUint16;
    case DType::kInt16:
      return NumberType::kInt16;
    case DType::kUint32:
      return NumberType::kUint32;
    case DType::kInt32:
      return NumberType::kInt32;
    case DType::kUint64:
      return NumberType::kUint64;
    case DType::kInt64:
      return NumberType::kInt64;
    case DType::kHalf:
      return NumberType::kHalf;
    case DType::kBfloat16:
      return NumberType::kBfloat16;
    case DType::kFloat:
      return NumberType::kFloat;
    case DType::kDouble:
      return NumberType::kDouble;
    case DType::kComplex64:
      return NumberType::kComplex64;
    case DType::kComplex128:
      return NumberType::kComplex128;
    default:
      return std::nullopt;
  }
}

absl::Status CastKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const DType type = ctx.node().output_type(0);
  if (x.dtype() == type) {
    ctx.set_output(0, x);
    return absl::OkStatus();
  }
  const std::optional<NumberType> from = NumberTypeOf(x.dtype());
  const std::optional<NumberType> to = NumberTypeOf(type);
  if (!from || !to) {
    return Unimplemented("Cast ", DTypeName(x.dtype()), " to ", DTypeName(type),
                         " is not supported");
  }
  SLUICE_ASSIGN_OR_RETURN(Tensor & y, ctx.Output(0, x.shape()));
  if (x.dtype() == DType::kFloat && type == DType::kBfloat16 &&
      ctx.node().attr<bool>("Truncate")) {
    const float* in = x.data<float>().data();
    auto* out = static_cast<uint16_t*>(y.mutable_raw());
    ctx.ParallelFor(
        x.size(),
        [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            out[i] =
                static_cast<uint16_t>(std::bit_cast<uint32_t>(in[i]) >> 16);
          }
        },
        0.3);
    return absl::OkStatus();
  }
  const char* src = static_cast<const char*>(x.raw());
  char* dst = static_cast<char*>(y.mutable_raw());
  const int64_t src_size = static_cast<int64_t>(ElementSize(x.dtype()));
  const int64_t dst_size = static_cast<int64_t>(ElementSize(type));
  ctx.ParallelFor(
      x.size(),
      [=](int64_t begin, int64_t end) {
        ConvertNumbers(*from, src + begin * src_size, *to,
                       dst + begin * dst_size, end - begin);
      },
      0.7);
  return absl::OkStatus();
}

// Whether gradients flow between numbers of this type.
bool Continuous(DType dtype) { return IsFloating(dtype) || IsComplex(dtype); }

Output CastBack(Scope& scope, const Node& op, Output dy) {
  const DType source = BaseType(op.input_type(0));
  if (!Continuous(source) || !Continuous(TypeOf(dy))) return Output();
  // As in Python, where a cast to the same type is no node at all.
  if (TypeOf(dy) == source) return dy;
  return scope.Add("Cast", {dy}, {{"DstT", source}});
}

Grads CastGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  return std::vector<Grad>{CastBack(scope, op, dy[0])};
}

Grads CastSlicesGradient(Scope& scope, const Node& op,
                         std::span<const Grad> dy) {
  const Output values = CastBack(scope, op, dy[0].values);
  if (!values) return std::vector<Grad>{Grad()};
  return std::vector<Grad>{
      Grad::Slices(values, dy[0].indices, dy[0].dense_shape)};
}

}  // namespace cast_op
}  // namespace

SLUICE_OP(Cast)
    .Input("x: SrcT")
    .Output("y: DstT")
    .Attr("SrcT: type")
    .Attr("DstT: type")
    .Attr("Truncate: bool = false")
    .Shape(shapes::SameAsInput)
    .Gradient(cast_op::CastGradient)
    .SlicesGradient(cast_op::CastSlicesGradient);

SLUICE_KERNEL(Cast, kCpu).Function(cast_op::CastKernel);

}  // namespace sluice
