// SharedResourceKernel: the kernel of ops that make a resource, such as a
// queue, and give out its handle, in either form.
#pragma once

#include <atomic>
#include <string_view>
#include <utility>

#include "sluice/base/mutex.h"
#include "sluice/kernel/kernel.h"
#include "sluice/ops/state/resource_handle.h"

namespace sluice {

// Makes or finds a resource of type R at the first run and keeps it. A resource
// without a shared name goes with the kernel. Thread-safe.
template <typename R>
class SharedResourceKernel : public Kernel {
 public:
  // `name` must come from NameResource(node, UnsharedName::kPrivate).
  SharedResourceKernel(const KernelConstruction& node, ResourceName name,
                       std::string_view type)
      : name_(std::move(name)),
        private_(HasPrivateResource(node)),
        device_(node.device()),
        handle_(MakeHandle(device_, name_, type)),
        string_handle_(MakeStringHandle(name_)) {}
  ~SharedResourceKernel() override {
    if (!private_ || !resource_) return;
    // It may be gone already, with its container.
    device_.resources()
        .template Delete<R>(name_.container, name_.name)
        .IgnoreError();
  }

  absl::Status Run(KernelContext& ctx) final {
    if (!found_.load(std::memory_order_acquire)) {
      SLUICE_RETURN_IF_ERROR(Find(ctx));
    }
    if (ctx.node().output_type(0) == DType::kResource) {
      ctx.set_output(0, handle_);
    } else {
      ctx.set_output_variable(0, string_handle_);
    }
    return absl::OkStatus();
  }

 protected:
  virtual RefPtr<R> Make() const { return nullptr; }
  // Make, for kernels that need their inputs or may fail.
  virtual absl::StatusOr<RefPtr<R>> MakeFor(const KernelContext&) const {
    return Make();
  }
  // An error unless `node` may share what is there under its name.
  virtual absl::Status Match(const R& existing, const Node& node) const = 0;

 private:
  absl::Status Find(KernelContext& ctx) {
    MutexLock lock(mu_);
    if (resource_) return absl::OkStatus();
    SLUICE_ASSIGN_OR_RETURN(
        RefPtr<R> resource,
        ctx.resources().template LookupOrCreate<R>(
            name_.container, name_.name,
            [&]() -> absl::StatusOr<RefPtr<R>> { return MakeFor(ctx); }));
    SLUICE_RETURN_IF_ERROR(Match(*resource, ctx.node()));
    resource_ = std::move(resource);
    found_.store(true, std::memory_order_release);
    return absl::OkStatus();
  }

  const ResourceName name_;
  const bool private_;
  Device& device_;
  const Tensor handle_;
  const RefPtr<VariableState> string_handle_;
  std::atomic<bool> found_{false};
  Mutex mu_;
  RefPtr<R> resource_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace sluice
