// The ops on staging areas, which have no handle: nodes of one name share one.

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/queue/staging_area.h"
#include "sluice/ops/state/resource_handle.h"

namespace sluice {
namespace {
namespace staging_ops {

// The base of kernels K.
template <typename K>
class StagingKernel : public AsyncKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    auto kernel = std::make_unique<K>();
    SLUICE_ASSIGN_OR_RETURN(kernel->name_,
                            NameResource(node, UnsharedName::kNodeName));
    kernel->config_.name = kernel->name_.name;
    kernel->config_.capacity = node.attr<int64_t>("capacity");
    kernel->config_.memory_limit = node.attr<int64_t>("memory_limit");
    return kernel;
  }

  void Start(KernelContext& ctx, Done done) final {
    absl::StatusOr<RefPtr<StagingArea>> area =
        ctx.resources().LookupOrCreate<StagingArea>(
            name_.container, name_.name,
            [&]() -> absl::StatusOr<RefPtr<StagingArea>> {
              return MakeRef<StagingArea>(config_);
            });
    if (!area.ok()) return done(area.status());
    static_cast<K*>(this)->Use(**area, ctx, std::move(done));
  }

 private:
  ResourceName name_;
  StagingConfig config_;
};

class Stage : public StagingKernel<Stage> {
 public:
  void Use(StagingArea& area, KernelContext& ctx, Done done) {
    Tuple element;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      element.push_back(ctx.input(i).Owned());
    }
    area.Put(std::move(element), ctx, std::move(done));
  }
};

class Unstage : public StagingKernel<Unstage> {
 public:
  void Use(StagingArea& area, KernelContext& ctx, Done done) {
    area.Take(ctx, ToOutputs(ctx, std::move(done)));
  }
};

class Peek : public StagingKernel<Peek> {
 public:
  void Use(StagingArea& area, KernelContext& ctx, Done done) {
    if (ctx.input(0).rank() != 0) {
      return done(InvalidArgument("index must be a scalar, but has shape ",
                                  ctx.input(0).shape().DebugString()));
    }
    area.Peek(ctx.input(0).scalar<int32_t>(), ctx,
              ToOutputs(ctx, std::move(done)));
  }
};

class Size : public StagingKernel<Size> {
 public:
  void Use(StagingArea& area, KernelContext& ctx, Done done) {
    ctx.set_output(0, Tensor::Scalar(static_cast<int32_t>(area.size())));
    done(absl::OkStatus());
  }
};

class Clear : public StagingKernel<Clear> {
 public:
  void Use(StagingArea& area, KernelContext&, Done done) {
    area.Clear();
    done(absl::OkStatus());
  }
};

}  // namespace staging_ops
}  // namespace

#define SLUICE_STAGING_OP(NAME, MIN_TYPES)  \
  SLUICE_OP(NAME)                           \
      .Attr("capacity: int >= 0 = 0")       \
      .Attr("memory_limit: int >= 0 = 0")   \
      .Attr("dtypes: list(type)" MIN_TYPES) \
      .Attr("container: string = ''")       \
      .Attr("shared_name: string = ''")     \
      .Stateful()                           \
      .NotDifferentiable()

SLUICE_STAGING_OP(Stage, " >= 1")
    .Input("values: dtypes")
    .Shape(shapes::NoOutputs);
SLUICE_STAGING_OP(Unstage, " >= 1")
    .Output("values: dtypes")
    .Shape(shapes::Unknown);
SLUICE_STAGING_OP(StagePeek, " >= 1")
    .Input("index: int32")
    .Output("values: dtypes")
    .Shape(shapes::Unknown);
SLUICE_STAGING_OP(StageSize, "").Output("size: int32").Shape(shapes::Scalar);
SLUICE_STAGING_OP(StageClear, "").Shape(shapes::NoOutputs);

#undef SLUICE_STAGING_OP

SLUICE_KERNEL(Stage, kCpu).Class<staging_ops::Stage>();
SLUICE_KERNEL(Unstage, kCpu).Class<staging_ops::Unstage>();
SLUICE_KERNEL(StagePeek, kCpu).Class<staging_ops::Peek>();
SLUICE_KERNEL(StageSize, kCpu).Class<staging_ops::Size>();
SLUICE_KERNEL(StageClear, kCpu).Class<staging_ops::Clear>();

}  // namespace sluice
