// What the random ops share: the stream of a stateful kernel, the shape they
// take as input, and the ways to fill a tensor with numbers.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel.h"
#include "sluice/numeric/philox.h"
#include "sluice/tensor/tensor.h"

namespace sluice {

// The stream of one stateful kernel. Every run takes the part that follows that
// of the run before, so a session with seeds repeats itself. Thread-safe.
class RandomStream {
 public:
  // From the attributes `seed` and `seed2`; both 0 ask for a stream that no
  // other kernel has.
  explicit RandomStream(const KernelConstruction& construction);

  // The stream for the next `numbers` numbers, as far apart from the one after
  // it as TensorFlow keeps them.
  Philox Take(int64_t numbers) {
    return TakeBlocks(static_cast<uint64_t>(numbers) * kPhiloxBlocksPerNumber);
  }
  Philox TakeBlocks(uint64_t blocks) {
    return stream_.Skip(used_.fetch_add(blocks, std::memory_order_relaxed));
  }

 private:
  const Philox stream_;
  std::atomic<uint64_t> used_{0};
};

// A way to fill a tensor; `fill` writes numbers [begin, begin + n) of `stream`
// to `out`. Nothing when `fill` is null: there is none for that type.
struct RandomFill {
  void (*fill)(const Philox& stream, int64_t begin, int64_t n,
               void* out) = nullptr;
  double nanos = 0;  // For one number, roughly.
};
RandomFill UniformFill(DType type);
RandomFill NormalFill(DType type);
RandomFill TruncatedNormalFill(DType type);

// Fills `out` on as many threads as it is worth.
void FillTensor(KernelContext& ctx, const RandomFill& fill,
                const Philox& stream, Tensor& out);

// Fills `out` (int32 or int64) with low + [0, high - low); low and high are
// scalars of its type. An error unless low < high.
absl::Status FillTensorWithInts(KernelContext& ctx, const Philox& stream,
                                const Tensor& low, const Tensor& high,
                                Tensor& out);

// The shape that `sizes`, a vector of int32 or int64, stands for.
absl::StatusOr<Shape> RandomShapeOf(const Tensor& sizes);

// Shape function: output 0 has the shape input 0 says.
absl::Status InferRandomShape(ShapeContext& c);

// The stream of a stateless op whose seed input this is.
absl::StatusOr<Philox> StatelessStream(const Tensor& seed);

}  // namespace sluice
