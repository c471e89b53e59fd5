// The ops that make queues. Each kind has two: V2 gives a resource handle, the
// older one a reference to a pair of strings.

#include "absl/strings/str_join.h"
#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/queue/queue_kinds.h"
#include "sluice/ops/state/resource_kernel.h"

namespace sluice {
namespace {
namespace queue_create {

absl::StatusOr<QueueConfig> ConfigOf(const KernelConstruction& node) {
  QueueConfig config;
  config.capacity = node.attr<int64_t>("capacity");
  config.types = node.attr<AttrList>("component_types").types;
  config.shapes = node.attr<AttrList>("shapes").shapes;
  if (!config.shapes.empty() && config.shapes.size() != config.types.size()) {
    return InvalidArgument("Different number of component types (",
                           config.types.size(), ") and shapes (",
                           config.shapes.size(), ")");
  }
  return config;
}

absl::Status RequireFullShapes(const QueueConfig& config,
                               std::string_view kind) {
  for (const PartialShape& shape : config.shapes) {
    if (!shape.FullyDefined()) {
      return InvalidArgument(kind,
                             " needs fully defined component shapes, but "
                             "has ",
                             shape.DebugString());
    }
  }
  return absl::OkStatus();
}

struct Fifo {
  static constexpr char kKind[] = "FIFOQueue";
  using Type = FifoQueue;
  static absl::StatusOr<Fifo> Create(const KernelConstruction& node) {
    Fifo kind;
    SLUICE_ASSIGN_OR_RETURN(kind.config, ConfigOf(node));
    SLUICE_RETURN_IF_ERROR(RequireFullShapes(kind.config, kKind));
    return kind;
  }
  RefPtr<Queue> Make() const {
    if (TokenQueue::IsOne(config)) return MakeRef<TokenQueue>(config);
    return MakeRef<FifoQueue>(config);
  }
  absl::Status Match(const FifoQueue&) const { return absl::OkStatus(); }

  QueueConfig config;
};

struct Padding {
  static constexpr char kKind[] = "PaddingFIFOQueue";
  using Type = PaddingFifoQueue;
  static absl::StatusOr<Padding> Create(const KernelConstruction& node) {
    Padding kind;
    SLUICE_ASSIGN_OR_RETURN(kind.config, ConfigOf(node));
    if (kind.config.shapes.empty()) {
      return InvalidArgument("PaddingFIFOQueue requires component shapes");
    }
    for (const PartialShape& shape : kind.config.shapes) {
      if (!shape.known_rank()) {
        return InvalidArgument(
            "PaddingFIFOQueue requires component shapes of known rank");
      }
    }
    return kind;
  }
  RefPtr<Queue> Make() const { return MakeRef<PaddingFifoQueue>(config); }
  absl::Status Match(const PaddingFifoQueue&) const { return absl::OkStatus(); }

  QueueConfig config;
};

struct Shuffle {
  static constexpr char kKind[] = "RandomShuffleQueue";
  using Type = RandomShuffleQueue;
  static absl::StatusOr<Shuffle> Create(const KernelConstruction& node) {
    Shuffle kind;
    SLUICE_ASSIGN_OR_RETURN(kind.config, ConfigOf(node));
    SLUICE_RETURN_IF_ERROR(RequireFullShapes(kind.config, kKind));
    kind.options = {node.attr<int64_t>("min_after_dequeue"),
                    node.attr<int64_t>("seed"), node.attr<int64_t>("seed2")};
    const int64_t least = kind.options.min_after_dequeue;
    if (least < 0) {
      return InvalidArgument("min_after_dequeue ", least, " must be >= 0");
    }
    if (kind.config.capacity >= 0 && least >= kind.config.capacity) {
      return InvalidArgument("min_after_dequeue ", least,
                             " must be < capacity ", kind.config.capacity);
    }
    return kind;
  }
  RefPtr<Queue> Make() const {
    return MakeRef<RandomShuffleQueue>(config, options);
  }
  absl::Status Match(const RandomShuffleQueue& queue) const {
    return queue.MatchOptions(options);
  }

  QueueConfig config;
  RandomShuffleQueue::Options options;
};

struct Priority {
  static constexpr char kKind[] = "PriorityQueue";
  using Type = PriorityQueue;
  // The priority is a component that the attrs leave out.
  static absl::StatusOr<Priority> Create(const KernelConstruction& node) {
    Priority kind;
    SLUICE_ASSIGN_OR_RETURN(kind.config, ConfigOf(node));
    SLUICE_RETURN_IF_ERROR(RequireFullShapes(kind.config, kKind));
    QueueConfig& config = kind.config;
    if (!config.shapes.empty() || config.types.empty()) {
      config.shapes.insert(config.shapes.begin(), PartialShape::Scalar());
    }
    config.types.insert(config.types.begin(), DType::kInt64);
    return kind;
  }
  RefPtr<Queue> Make() const { return MakeRef<PriorityQueue>(config); }
  absl::Status Match(const PriorityQueue&) const { return absl::OkStatus(); }

  QueueConfig config;
};

template <typename Kind>
class QueueKernel : public SharedResourceKernel<Queue> {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction& node) {
    SLUICE_ASSIGN_OR_RETURN(Kind kind, Kind::Create(node));
    SLUICE_ASSIGN_OR_RETURN(ResourceName name,
                            NameResource(node, UnsharedName::kPrivate));
    kind.config.name = name.name;
    return std::make_unique<QueueKernel>(node, std::move(name),
                                         std::move(kind));
  }
  QueueKernel(const KernelConstruction& node, ResourceName name, Kind kind)
      : SharedResourceKernel(node, std::move(name), kQueueType),
        kind_(std::move(kind)) {}

 protected:
  RefPtr<Queue> Make() const override { return kind_.Make(); }
  absl::Status Match(const Queue& existing, const Node& node) const override {
    if (existing.kind_name() != Kind::kKind) {
      // TensorFlow names the kind of the queue that is there and this op.
      return InvalidArgument("Expected ", existing.kind_name(), ", found ",
                             node.type());
    }
    SLUICE_RETURN_IF_ERROR(existing.MatchConfig(kind_.config));
    return kind_.Match(static_cast<const typename Kind::Type&>(existing));
  }

 private:
  const Kind kind_;
};

absl::Status StringHandleShape(ShapeContext& c) {
  c.set_output(0, {2});
  return absl::OkStatus();
}

}  // namespace queue_create
}  // namespace

SLUICE_OP(FIFOQueue)
    .Output("handle: Ref(string)")
    .Attr("component_types: list(type) >= 1")
    .Attr("shapes: list(shape) >= 0 = []")
    .Attr("capacity: int = -1")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Stateful()
    .Shape(queue_create::StringHandleShape)
    .NotDifferentiable();
SLUICE_OP(FIFOQueueV2)
    .Output("handle: resource")
    .Attr("component_types: list(type) >= 1")
    .Attr("shapes: list(shape) >= 0 = []")
    .Attr("capacity: int = -1")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Stateful()
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_OP(PaddingFIFOQueue)
    .Output("handle: Ref(string)")
    .Attr("component_types: list(type) >= 1")
    .Attr("shapes: list(shape) >= 0 = []")
    .Attr("capacity: int = -1")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Stateful()
    .Shape(queue_create::StringHandleShape)
    .NotDifferentiable();
SLUICE_OP(PaddingFIFOQueueV2)
    .Output("handle: resource")
    .Attr("component_types: list(type) >= 1")
    .Attr("shapes: list(shape) >= 0 = []")
    .Attr("capacity: int = -1")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Stateful()
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_OP(RandomShuffleQueue)
    .Output("handle: Ref(string)")
    .Attr("component_types: list(type) >= 1")
    .Attr("shapes: list(shape) >= 0 = []")
    .Attr("capacity: int = -1")
    .Attr("min_after_dequeue: int = 0")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Stateful()
    .Shape(queue_create::StringHandleShape)
    .NotDifferentiable();
SLUICE_OP(RandomShuffleQueueV2)
    .Output("handle: resource")
    .Attr("component_types: list(type) >= 1")
    .Attr("shapes: list(shape) >= 0 = []")
    .Attr("capacity: int = -1")
    .Attr("min_after_dequeue: int = 0")
    .Attr("seed: int = 0")
    .Attr("seed2: int = 0")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Stateful()
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_OP(PriorityQueue)
    .Output("handle: Ref(string)")
    .Attr("component_types: list(type) >= 0 = []")
    .Attr("shapes: list(shape) >= 0")
    .Attr("capacity: int = -1")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Stateful()
    .Shape(queue_create::StringHandleShape)
    .NotDifferentiable();
SLUICE_OP(PriorityQueueV2)
    .Output("handle: resource")
    .Attr("component_types: list(type) >= 0 = []")
    .Attr("shapes: list(shape) >= 0")
    .Attr("capacity: int = -1")
    .Attr("container: string = ''")
    .Attr("shared_name: string = ''")
    .Stateful()
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_KERNEL(FIFOQueue, kCpu)
    .Class<queue_create::QueueKernel<queue_create::Fifo>>();
SLUICE_KERNEL(FIFOQueueV2, kCpu)
    .Class<queue_create::QueueKernel<queue_create::Fifo>>();
SLUICE_KERNEL(PaddingFIFOQueue, kCpu)
    .Class<queue_create::QueueKernel<queue_create::Padding>>();
SLUICE_KERNEL(PaddingFIFOQueueV2, kCpu)
    .Class<queue_create::QueueKernel<queue_create::Padding>>();
SLUICE_KERNEL(RandomShuffleQueue, kCpu)
    .Class<queue_create::QueueKernel<queue_create::Shuffle>>();
SLUICE_KERNEL(RandomShuffleQueueV2, kCpu)
    .Class<queue_create::QueueKernel<queue_create::Shuffle>>();
SLUICE_KERNEL(PriorityQueue, kCpu)
    .Class<queue_create::QueueKernel<queue_create::Priority>>();
SLUICE_KERNEL(PriorityQueueV2, kCpu)
    .Class<queue_create::QueueKernel<queue_create::Priority>>();

}  // namespace sluice
