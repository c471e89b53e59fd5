// RandomShuffle: the rows of a tensor in random order.

#include <cstring>
#include <numeric>
#include <vector>

#include "sluice/graph/op_registry.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/random/random_stream.h"

namespace sluice {
namespace {

// Row i of the result is row order[i] of the input.
std::vector<int64_t> ShuffledOrder(int64_t n, const Philox& stream) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  PhiloxWords words(stream);
  for (int64_t i = 0; i + 1 < n; ++i) {
    const int64_t other = i + words.Next() % static_cast<uint32_t>(n - i);
    std::swap(order[i], order[other]);
  }
  return order;
}

class RandomShuffleKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& construction) {
    return std::make_unique<RandomShuffleKernel>(construction);
  }
  explicit RandomShuffleKernel(const KernelConstruction& construction)
      : stream_(construction) {}

  absl::Status Run(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (in.rank() == 0 || in.dim(0) <= 1 || in.size() <= 1) {
      ctx.set_output(0, in);  // Takes no numbers either, as in TensorFlow.
      return absl::OkStatus();
    }
    const int64_t rows = in.dim(0);
    if (rows > int64_t{UINT32_MAX}) {
      return InvalidArgument("RandomShuffle takes at most 2**32 - 1 rows, got ",
                             rows);
    }
    const size_t element = ElementSize(in.dtype());
    if (element == 0 && in.dtype() != DType::kString) {
      return Unimplemented("RandomShuffle of ", DTypeName(in.dtype()));
    }
    SLUICE_ASSIGN_OR_RETURN(Tensor & out, ctx.Output(0, in.shape()));
    // One word for each row but the last, in whole blocks.
    const auto order = ShuffledOrder(rows, stream_.TakeBlocks((rows + 2) / 4));
    const int64_t row = in.size() / rows;
    if (element == 0) {
      CopyStringRows(in, order, row, out);
    } else {
      CopyByteRows(in, order, row * element, out);
    }
    return absl::OkStatus();
  }

 private:
  static void CopyStringRows(const Tensor& in,
                             const std::vector<int64_t>& order, int64_t row,
                             Tensor& out) {
    const std::string* from = in.data<std::string>().data();
    std::string* to = out.mutable_data<std::string>().data();
    for (const int64_t i : order) to = std::copy_n(from + i * row, row, to);
  }
  static void CopyByteRows(const Tensor& in, const std::vector<int64_t>& order,
                           size_t row, Tensor& out) {
    const char* from = static_cast<const char*>(in.raw());
    char* to = static_cast<char*>(out.mutable_raw());
    for (const int64_t i : order) {
      std::memcpy(to, from + i * row, row);
      to += row;
    }
  }

  RandomStream stream_;
};

}  // namespace

SLUICE_OP(RandomShuffle)
    .Input("value: T")
    .Output("output: T")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("T: type")
    .Stateful()
    .Shape(shapes::SameAsInput);

SLUICE_KERNEL(RandomShuffle, kCpu).Class<RandomShuffleKernel>();

}  // namespace sluice
