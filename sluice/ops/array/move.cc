#include "sluice/ops/array/move.h"

#include <cstring>

namespace sluice {
namespace {

// Seen on this kind of machine: 10 GB/s for long runs, and some nanoseconds for
// an element that lies alone.
constexpr double kNanosPerByte = 0.1;
constexpr double kNanosPerElement = 0.3;

template <typename T>
void MoveObjects(char* dst, int64_t dst_step, const char* src, int64_t src_step,
                 int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    *reinterpret_cast<T*>(dst + i * dst_step) =
        *reinterpret_cast<const T*>(src + i * src_step);
  }
}

}  // namespace

Mover MoverOf(DType dtype) {
  if (dtype == DType::kString) {
    return {sizeof(std::string), MoveObjects<std::string>};
  }
  if (dtype == DType::kResource) {
    return {sizeof(ResourceHandle), MoveObjects<ResourceHandle>};
  }
  const int64_t size = static_cast<int64_t>(ElementSize(dtype));
  return {size, CopyRunOfSize(size)};
}

void MoveBox(const KernelContext& ctx, const Mover& mover, Box box, char* dst,
             const char* src) {
  const int64_t elements = box.size();
  if (elements == 0) return;
  box.Simplify(mover.size);
  const int64_t outer = box.outer_size();
  const double nanos =
      elements * (kNanosPerElement + mover.size * kNanosPerByte);
  ctx.ParallelFor(
      outer,
      [&](int64_t begin, int64_t end) {
        box.Copy(dst, src, mover.run, begin, end);
      },
      nanos / outer);
}

void FillWith(const KernelContext& ctx, Tensor& tensor, const void* value) {
  const Mover mover = MoverOf(tensor.dtype());
  Box box;
  box.Add(tensor.size(), mover.size, 0);
  MoveBox(ctx, mover, std::move(box), ElementAt(tensor, mover, 0),
          static_cast<const char*>(value));
}

void FillWithZeros(const KernelContext& ctx, Tensor& tensor) {
  const size_t bytes = tensor.bytes();  // 0 for objects, which are empty.
  char* data = static_cast<char*>(tensor.mutable_raw());
  ctx.ParallelFor(
      static_cast<int64_t>(bytes),
      [=](int64_t begin, int64_t end) {
        std::memset(data + begin, 0, end - begin);
      },
      kNanosPerByte);
}

absl::InlinedVector<int64_t, 6> ByteSteps(const Shape& shape,
                                          int64_t element_size) {
  absl::InlinedVector<int64_t, 6> steps(shape.rank());
  int64_t step = element_size;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    steps[i] = step;
    step *= shape.dim(i);
  }
  return steps;
}

}  // namespace sluice
