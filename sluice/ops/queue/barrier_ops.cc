// The ops on barriers, which only have string handles.

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/queue/barrier.h"
#include "sluice/ops/state/resource_kernel.h"
#include "sluice/ops/state/signature.h"

namespace sluice {
namespace {
namespace barrier_ops {

constexpr char kBarrierType[] = "N10tensorflow7barrier7BarrierE";

class BarrierKernel : public SharedResourceKernel<Barrier> {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    SLUICE_ASSIGN_OR_RETURN(ResourceName name,
                            NameResource(node, UnsharedName::kPrivate));
    QueueConfig config;
    config.name = name.name;
    config.types = node.attr<AttrList>("component_types").types;
    config.shapes = node.attr<AttrList>("shapes").shapes;
    if (!config.shapes.empty() && config.shapes.size() != config.types.size()) {
      return InvalidArgument(
          "All of the component shapes must be specified: there are ",
          config.types.size(), " types and ", config.shapes.size(), " shapes");
    }
    if (node.attr<int64_t>("capacity") != -1) {
      return InvalidArgument(
          "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier "
          "through a queue to enforce a limited capacity.");
    }
    return std::make_unique<BarrierKernel>(node, std::move(name),
                                           std::move(config));
  }
  BarrierKernel(const KernelConstruction& node, ResourceName name,
                QueueConfig config)
      : SharedResourceKernel(node, std::move(name), kBarrierType),
        config_(std::move(config)) {}

 protected:
  RefPtr<Barrier> Make() const override { return MakeRef<Barrier>(config_); }
  absl::Status Match(const Barrier& existing, const Node&) const override {
    return existing.MatchConfig(config_);
  }

 private:
  const QueueConfig config_;
};

absl::StatusOr<RefPtr<Barrier>> FindBarrier(const KernelContext& ctx) {
  return LookupResource<Barrier>(ctx, 0, kBarrierType);
}

class InsertKernel : public AsyncKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    return std::make_unique<InsertKernel>(
        node.attr<int64_t>("component_index"));
  }
  explicit InsertKernel(int64_t component) : component_(component) {}

  void Start(KernelContext& ctx, Done done) override {
    const absl::StatusOr<RefPtr<Barrier>> barrier = FindBarrier(ctx);
    if (!barrier.ok()) return done(barrier.status());
    const std::vector<DType>& types = (*barrier)->types();
    if (component_ < 0 || component_ >= static_cast<int64_t>(types.size())) {
      return done(InvalidArgument("The component ID is out of range ",
                                  component_,
                                  " > num_components (= ", types.size(), ")"));
    }
    absl::Status fits = MatchSignature(
        ctx, {ctx.node().input_type(0), DType::kString, types[component_]}, {});
    if (!fits.ok()) return done(std::move(fits));
    (*barrier)->InsertMany(component_, ctx.input(1), ctx.input(2), ctx,
                           std::move(done));
  }

 private:
  const int64_t component_;
};

class TakeKernel : public AsyncKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    return std::make_unique<TakeKernel>(node.attr<bool>("allow_small_batch"));
  }
  explicit TakeKernel(bool small) : small_(small) {}

  void Start(KernelContext& ctx, Done done) override {
    const absl::StatusOr<RefPtr<Barrier>> barrier = FindBarrier(ctx);
    if (!barrier.ok()) return done(barrier.status());
    const Tensor& n = ctx.input(1);
    if (n.rank() != 0) {
      return done(InvalidArgument("num_elements must be a scalar."));
    }
    if (n.scalar<int32_t>() < 0) {
      return done(InvalidArgument("num_elements must not be negative, got ",
                                  n.scalar<int32_t>()));
    }
    std::vector<DType> outputs = {DType::kInt64, DType::kString};
    for (DType type : (*barrier)->types()) outputs.push_back(type);
    absl::Status fits =
        MatchSignature(ctx, {ctx.node().input_type(0), DType::kInt32}, outputs);
    if (!fits.ok()) return done(std::move(fits));
    (*barrier)->TakeMany(n.scalar<int32_t>(), small_, ctx,
                         ToOutputs(ctx, std::move(done)));
  }

 private:
  const bool small_;
};

class CloseKernel : public AsyncKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    return std::make_unique<CloseKernel>(
        node.attr<bool>("cancel_pending_enqueues"));
  }
  explicit CloseKernel(bool cancel) : cancel_(cancel) {}

  void Start(KernelContext& ctx, Done done) override {
    const absl::StatusOr<RefPtr<Barrier>> barrier = FindBarrier(ctx);
    if (!barrier.ok()) return done(barrier.status());
    (*barrier)->Close(cancel_, ctx, std::move(done));
  }

 private:
  const bool cancel_;
};

absl::Status IncompleteSize(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const RefPtr<Barrier> barrier, FindBarrier(ctx));
  ctx.set_output(
      0, Tensor::Scalar(static_cast<int32_t>(barrier->incomplete_size())));
  return absl::OkStatus();
}

absl::Status ReadySize(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(const RefPtr<Barrier> barrier, FindBarrier(ctx));
  ctx.set_output(0,
                 Tensor::Scalar(static_cast<int32_t>(barrier->ready_size())));
  return absl::OkStatus();
}

}  // namespace barrier_ops
}  // namespace

SLUICE_OP(Barrier)
    .Output("handle: Ref(string)")
    .Attr("component_types: list(type) >= 1")
    .Attr("shapes: list(shape) >= 0 = []")
    .Attr("capacity: int = -1")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Stateful()
    .Shape([](ShapeContext& c) {
      c.set_output(0, {2});
      return absl::OkStatus();
    })
    .NotDifferentiable();

SLUICE_OP(BarrierInsertMany)
    .Input("handle: Ref(string)")
    .Input("keys: string")
    .Input("values: T")
    .Attr("T: type")
    .Attr("component_index: int")
    .Shape([](ShapeContext& c) -> absl::Status {
      SLUICE_RETURN_IF_ERROR(c.WithRank(1, 1).status());
      return c.WithRankAtLeast(2, 1).status();
    })
    .NotDifferentiable();

SLUICE_OP(BarrierTakeMany)
    .Input("handle: Ref(string)")
    .Input("num_elements: int32")
    .Output("indices: int64")
    .Output("keys: string")
    .Output("values: component_types")
    .Attr("component_types: list(type) >= 1")
    .Attr("allow_small_batch: bool = false")
    .Attr("wait_for_incomplete: bool = false")
    .Attr("timeout_ms: int = -1")
    .Shape(shapes::Unknown)
    .NotDifferentiable();

SLUICE_OP(BarrierClose)
    .Input("handle: Ref(string)")
    .Attr("cancel_pending_enqueues: bool = false")
    .Shape(shapes::NoOutputs)
    .NotDifferentiable();

SLUICE_OP(BarrierReadySize)
    .Input("handle: Ref(string)")
    .Output("size: int32")
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_OP(BarrierIncompleteSize)
    .Input("handle: Ref(string)")
    .Output("size: int32")
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_KERNEL(Barrier, kCpu).Class<barrier_ops::BarrierKernel>();
SLUICE_KERNEL(BarrierInsertMany, kCpu).Class<barrier_ops::InsertKernel>();
SLUICE_KERNEL(BarrierTakeMany, kCpu).Class<barrier_ops::TakeKernel>();
SLUICE_KERNEL(BarrierClose, kCpu).Class<barrier_ops::CloseKernel>();
SLUICE_KERNEL(BarrierReadySize, kCpu).Function(barrier_ops::ReadySize);
SLUICE_KERNEL(BarrierIncompleteSize, kCpu)
    .Function(barrier_ops::IncompleteSize);

}  // namespace sluice
