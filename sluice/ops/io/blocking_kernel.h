// BlockingKernel: a kernel that waits for the disk. It runs on a thread of its
// own kind, because the one that starts it may poll the network for all of the
// process, and a disk that hangs must not keep others from computing. Being
// async also keeps files from being read while a graph is built (constant
// folding runs no async kernels).
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "sluice/kernel/kernel.h"

namespace sluice {

using FileWork = absl::Status (*)(KernelContext&);

// Calls `done` with the result of `work` from a thread that may block, when
// there is one: a few dozen work at a time. Until then the wait table names the
// node.
void StartFileWork(KernelContext& ctx, FileWork work, Done done);

template <FileWork kWork>
class BlockingKernel : public AsyncKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction&) {
    return std::make_unique<BlockingKernel>();
  }
  void Start(KernelContext& ctx, Done done) override {
    StartFileWork(ctx, kWork, std::move(done));
  }
};

}  // namespace sluice
