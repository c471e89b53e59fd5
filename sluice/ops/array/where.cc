// Where: the coordinates of the elements that are not zero.
#include <cstring>

#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/array/index_values.h"

namespace sluice {
namespace {
namespace where_op {

absl::Status WhereShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  c.set_output(0, {-1, in.known_rank() ? in.rank() : -1});
  return absl::OkStatus();
}

// Bits that make an element differ from zero: all but the signs of floating
// numbers, as -0 is zero.
uint64_t NonZeroBits(DType dtype) {
  switch (dtype) {
    case DType::kHalf:
    case DType::kBfloat16:
      return 0x7fff;
    case DType::kFloat:
      return 0x7fffffff;
    case DType::kComplex64:
      return 0x7fffffff7fffffff;
    case DType::kDouble:
    case DType::kComplex128:
      return 0x7fffffffffffffff;
    default:
      return ~uint64_t{0};
  }
}

template <typename Word>
uint64_t Load(const char* data, int64_t i) {
  Word word;
  std::memcpy(&word, data + i * sizeof(Word), sizeof(Word));
  return word;
}

uint64_t ElementBits(const char* data, int64_t i, size_t size) {
  switch (size) {
    case 1:
      return Load<uint8_t>(data, i);
    case 2:
      return Load<uint16_t>(data, i);
    case 4:
      return Load<uint32_t>(data, i);
    case 8:
      return Load<uint64_t>(data, i);
    default:  // complex128; the sign bit of either half is masked out.
      return (Load<uint64_t>(data, 2 * i) | Load<uint64_t>(data, 2 * i + 1));
  }
}

absl::Status WhereKernel(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const size_t size = ElementSize(x.dtype());
  const uint64_t mask = NonZeroBits(x.dtype());
  const char* data = static_cast<const char*>(x.raw());
  int64_t count = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    count += (ElementBits(data, i, size) & mask) != 0;
  }
  const int rank = x.rank();
  SLUICE_ASSIGN_OR_RETURN(Tensor & output, ctx.Output(0, {count, rank}));
  int64_t* out = output.mutable_data<int64_t>().data();
  for (int64_t i = 0; i < x.size() && count > 0; ++i) {
    if ((ElementBits(data, i, size) & mask) == 0) continue;
    int64_t rest = i;
    for (int d = rank - 1; d >= 0; --d) {
      out[d] = rest % x.dim(d);
      rest /= x.dim(d);
    }
    out += rank;
  }
  return absl::OkStatus();
}

}  // namespace where_op
}  // namespace

SLUICE_OP(Where)
    .Input("input: T")
    .Output("index: int64")
    .Attr("T: {numbertype, bool} = DT_BOOL")
    .Shape(where_op::WhereShape);

SLUICE_KERNEL(Where, kCpu).Function(where_op::WhereKernel);

}  // namespace sluice
