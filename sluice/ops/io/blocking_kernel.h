// BlockingKernel: a kernel that waits for the disk. It runs on the compute
// pool, because the thread that starts it may be one that polls the network
// for all of the process. Being async also keeps files from being read while a
// graph is built (constant folding runs no async kernels).
#pragma once

#include <memory>
#include <new>
#include <utility>

#include "sluice/base/thread_pool.h"
#include "sluice/kernel/kernel.h"

namespace sluice {

template <absl::Status (*kWork)(KernelContext&)>
class BlockingKernel : public AsyncKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction&) {
    return std::make_unique<BlockingKernel>();
  }

  void Start(KernelContext& ctx, Done done) override {
    ComputePool().Schedule(
        [&ctx, done = std::move(done)]() mutable { done(Work(ctx)); });
  }

 private:
  static absl::Status Work(KernelContext& ctx) {
    if (ctx.step().cancellation->cancelled()) {
      return ctx.step().cancellation->status();
    }
    try {
      return kWork(ctx);
    } catch (const std::bad_alloc&) {
      return ResourceExhausted("No memory left for ", ctx.node().type(),
                               " of node ", ctx.node().name());
    }
  }
};

}  // namespace sluice
