// Moving elements of any type: by their size, not their type. Strings and
// resource handles are assigned one by one.
#pragma once

#include <cstdint>

#include "sluice/kernel/kernel.h"
#include "sluice/numeric/strided_copy.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

struct Mover {
  int64_t size = 0;       // Of one element in memory.
  CopyRun run = nullptr;  // Null for types that tensors cannot hold.
};
Mover MoverOf(DType dtype);

// The address of element `at`.
inline char* ElementAt(Tensor& tensor, const Mover& mover, int64_t at) {
  return static_cast<char*>(tensor.mutable_raw()) + at * mover.size;
}
inline const char* ElementAt(const Tensor& tensor, const Mover& mover,
                             int64_t at) {
  return static_cast<const char*>(tensor.raw()) + at * mover.size;
}

// Copies `box`, whose steps are in bytes, over the compute pool if it is large.
void MoveBox(const KernelContext& ctx, const Mover& mover, Box box, char* dst,
             const char* src);

// Sets every element of `tensor` to the one at `value`.
void FillWith(const KernelContext& ctx, Tensor& tensor, const void* value);
// To zero, false or the empty string. `tensor` must be fresh from Output().
void FillWithZeros(const KernelContext& ctx, Tensor& tensor);

// Bytes between neighbours along each dimension of an array of this shape.
absl::InlinedVector<int64_t, 6> ByteSteps(const Shape& shape,
                                          int64_t element_size);

}  // namespace sluice
