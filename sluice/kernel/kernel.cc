#include "sluice/kernel/kernel.h"

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

// Below this, handing work to another thread costs more than it saves: a wake
// takes 25–50 µs.
constexpr double kMinNanosPerPart = 20e3;

}  // namespace

absl::Status AsyncKernel::Run(KernelContext& ctx) {
  Notification finished;
  absl::Status result;
  Start(ctx, [&](absl::Status status) {
    result = std::move(status);
    finished.Notify();
  });
  finished.Wait();
  return result;
}

OutputResult KernelContext::Output(int i, const Shape& shape) {
  Slot& slot = slots_[at_->first_output + i];
  slot.tensor = Tensor(at_->output_types[i], shape);
  if (!slot.tensor.initialized()) {
    return Tensor::Create(at_->output_types[i], shape).status();
  }
  slot.kind = Slot::Kind::kValue;
  return slot.tensor;
}

OutputResult KernelContext::OutputFrom(std::initializer_list<int> candidates,
                                       int i, const Shape& shape) {
  const DType dtype = at_->output_types[i];
  for (int c : candidates) {
    Slot& in = slots_[at_->inputs[c]];
    if (!at_->last_use[c] || in.tensor.dtype() != dtype ||
        in.tensor.size() != shape.size() || !in.tensor.unique() ||
        in.tensor.buffer()->borrowed()) {
      continue;
    }
    // The input slot keeps a second reference, so that the kernel can still
    // read through input(c); it is the same memory.
    Slot& out = slots_[at_->first_output + i];
    out.tensor = in.tensor.Reshaped(shape);
    out.kind = Slot::Kind::kValue;
    return out.tensor;
  }
  return Output(i, shape);
}

void KernelContext::ParallelFor(int64_t n,
                                absl::FunctionRef<void(int64_t, int64_t)> body,
                                double nanos_per_item) const {
  const double total = n * nanos_per_item;
  if (total < 2 * kMinNanosPerPart) {
    if (n > 0) body(0, n);
    return;
  }
  const int64_t grain =
      std::max<int64_t>(1, std::llround(kMinNanosPerPart / nanos_per_item));
  ComputePool().ParallelFor(n, grain, body);
}

}  // namespace sluice
