// Enqueue, dequeue, close and what is asked about queues; each for both forms
// of handles.

#include "sluice/base/status.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel_registry.h"
#include "sluice/ops/queue/queue.h"
#include "sluice/ops/state/resource_handle.h"
#include "sluice/ops/state/signature.h"

namespace sluice {
namespace {
namespace queue_use {

absl::StatusOr<RefPtr<Queue>> FindQueue(const KernelContext& ctx) {
  return LookupResource<Queue>(ctx, 0, kQueueType);
}

// The node was built for the types its attrs say; the queue may hold others.
absl::Status CheckSignature(const KernelContext& ctx, const Queue& queue) {
  const Node& node = ctx.node();
  std::vector<DType> inputs = {node.input_type(0)};
  if (node.num_outputs() == 0) {
    inputs.insert(inputs.end(), queue.types().begin(), queue.types().end());
    return MatchSignature(ctx, inputs, {});
  }
  for (int i = 1; i < node.num_inputs(); ++i) {
    inputs.push_back(node.input_type(i));
  }
  return MatchSignature(ctx, inputs, queue.types());
}

// Finds the queue and, on any error, reports it through `done`.
RefPtr<Queue> QueueOrDone(const KernelContext& ctx, bool check_signature,
                          Done& done) {
  absl::StatusOr<RefPtr<Queue>> queue = FindQueue(ctx);
  if (queue.ok() && check_signature) {
    const absl::Status fits = CheckSignature(ctx, **queue);
    if (!fits.ok()) queue = fits;
  }
  if (queue.ok()) return *std::move(queue);
  done(queue.status());
  return nullptr;
}

// The base of kernels K that keep nothing.
template <typename K>
class PlainKernel : public AsyncKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(
      const KernelConstruction&) {
    return std::make_unique<K>();
  }
};

template <bool kMany>
class EnqueueKernel : public PlainKernel<EnqueueKernel<kMany>> {
 public:
  void Start(KernelContext& ctx, Done done) override {
    const RefPtr<Queue> queue = QueueOrDone(ctx, true, done);
    if (!queue) return;
    absl::StatusOr<std::vector<Tuple>> elements = Elements(ctx, *queue);
    if (!elements.ok()) return done(elements.status());
    queue->Enqueue(*std::move(elements), ctx, std::move(done), kMany);
  }

 private:
  static absl::StatusOr<std::vector<Tuple>> Elements(const KernelContext& ctx,
                                                     const Queue& queue) {
    Tuple tuple;
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      tuple.push_back(kMany ? ctx.input(i) : ctx.input(i).Owned());
    }
    if (kMany) return queue.SplitBatch(tuple);
    SLUICE_RETURN_IF_ERROR(queue.Check(tuple));
    std::vector<Tuple> one;
    one.push_back(std::move(tuple));
    return one;
  }
};

class DequeueKernel : public PlainKernel<DequeueKernel> {
 public:
  void Start(KernelContext& ctx, Done done) override {
    const RefPtr<Queue> queue = QueueOrDone(ctx, true, done);
    if (queue) queue->Dequeue(ctx, ToOutputs(ctx, std::move(done)));
  }
};

template <bool kUpTo>
class DequeueManyKernel : public PlainKernel<DequeueManyKernel<kUpTo>> {
 public:
  void Start(KernelContext& ctx, Done done) override {
    const RefPtr<Queue> queue = QueueOrDone(ctx, true, done);
    if (!queue) return;
    const Tensor& n = ctx.input(1);
    if (n.size() != 1) {
      return done(
          InvalidArgument("The number of elements must be a scalar, "
                          "but has shape ",
                          n.shape().DebugString()));
    }
    const int32_t count = n.data<int32_t>()[0];
    if (count < 0) {
      return done(InvalidArgument(kUpTo ? "DequeueUpToOp" : "DequeueManyOp",
                                  " requested ", count, " < 0 elements"));
    }
    queue->DequeueMany(count, kUpTo, ctx, ToOutputs(ctx, std::move(done)));
  }
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
    const RefPtr<Queue> queue = QueueOrDone(ctx, false, done);
    if (queue) queue->Close(cancel_, ctx, std::move(done));
  }

 private:
  const bool cancel_;
};

absl::Status Size(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<Queue> queue, FindQueue(ctx));
  ctx.set_output(0, Tensor::Scalar(static_cast<int32_t>(queue->size())));
  return absl::OkStatus();
}

absl::Status IsClosed(KernelContext& ctx) {
  SLUICE_ASSIGN_OR_RETURN(RefPtr<Queue> queue, FindQueue(ctx));
  ctx.set_output(0, Tensor::Scalar<bool>(queue->closed()));
  return absl::OkStatus();
}

}  // namespace queue_use
}  // namespace

#define SLUICE_ENQUEUE_OP(NAME, HANDLE)     \
  SLUICE_OP(NAME)                           \
      .Input("handle: " HANDLE)             \
      .Input("components: Tcomponents")     \
      .Attr("Tcomponents: list(type) >= 1") \
      .Attr("timeout_ms: int = -1")         \
      .Shape(shapes::NoOutputs)             \
      .NotDifferentiable()
#define SLUICE_DEQUEUE_OP(NAME, HANDLE)         \
  SLUICE_OP(NAME)                               \
      .Input("handle: " HANDLE)                 \
      .Output("components: component_types")    \
      .Attr("component_types: list(type) >= 1") \
      .Attr("timeout_ms: int = -1")             \
      .Shape(shapes::Unknown)                   \
      .NotDifferentiable()
#define SLUICE_DEQUEUE_MANY_OP(NAME, HANDLE)    \
  SLUICE_OP(NAME)                               \
      .Input("handle: " HANDLE)                 \
      .Input("n: int32")                        \
      .Output("components: component_types")    \
      .Attr("component_types: list(type) >= 1") \
      .Attr("timeout_ms: int = -1")             \
      .Shape(shapes::Unknown)                   \
      .NotDifferentiable()

SLUICE_ENQUEUE_OP(QueueEnqueue, "Ref(string)");
SLUICE_ENQUEUE_OP(QueueEnqueueV2, "resource").Stateful();
SLUICE_ENQUEUE_OP(QueueEnqueueMany, "Ref(string)");
SLUICE_ENQUEUE_OP(QueueEnqueueManyV2, "resource").Stateful();
SLUICE_DEQUEUE_OP(QueueDequeue, "Ref(string)");
SLUICE_DEQUEUE_OP(QueueDequeueV2, "resource").Stateful();
SLUICE_DEQUEUE_MANY_OP(QueueDequeueMany, "Ref(string)");
SLUICE_DEQUEUE_MANY_OP(QueueDequeueManyV2, "resource").Stateful();
SLUICE_DEQUEUE_MANY_OP(QueueDequeueUpTo, "Ref(string)");
SLUICE_DEQUEUE_MANY_OP(QueueDequeueUpToV2, "resource").Stateful();

#undef SLUICE_ENQUEUE_OP
#undef SLUICE_DEQUEUE_OP
#undef SLUICE_DEQUEUE_MANY_OP

SLUICE_OP(QueueClose)
    .Input("handle: Ref(string)")
    .Attr("cancel_pending_enqueues: bool = false")
    .Shape(shapes::NoOutputs)
    .NotDifferentiable();
SLUICE_OP(QueueCloseV2)
    .Input("handle: resource")
    .Attr("cancel_pending_enqueues: bool = false")
    .Stateful()
    .Shape(shapes::NoOutputs)
    .NotDifferentiable();

SLUICE_OP(QueueSize)
    .Input("handle: Ref(string)")
    .Output("size: int32")
    .Shape(shapes::Scalar)
    .NotDifferentiable();
SLUICE_OP(QueueSizeV2)
    .Input("handle: resource")
    .Output("size: int32")
    .Stateful()
    .Shape(shapes::Scalar)
    .NotDifferentiable();

SLUICE_OP(QueueIsClosed)
    .Input("handle: Ref(string)")
    .Output("is_closed: bool")
    .Shape(shapes::Scalar)
    .NotDifferentiable();
SLUICE_OP(QueueIsClosedV2)
    .Input("handle: resource")
    .Output("is_closed: bool")
    .Stateful()
    .Shape(shapes::Scalar)
    .NotDifferentiable();

#define SLUICE_QUEUE_KERNELS(NAME, ...)                      \
  SLUICE_KERNEL(NAME, kCpu).Class<queue_use::__VA_ARGS__>(); \
  SLUICE_KERNEL(NAME##V2, kCpu).Class<queue_use::__VA_ARGS__>()

SLUICE_QUEUE_KERNELS(QueueEnqueue, EnqueueKernel<false>);
SLUICE_QUEUE_KERNELS(QueueEnqueueMany, EnqueueKernel<true>);
SLUICE_QUEUE_KERNELS(QueueDequeue, DequeueKernel);
SLUICE_QUEUE_KERNELS(QueueDequeueMany, DequeueManyKernel<false>);
SLUICE_QUEUE_KERNELS(QueueDequeueUpTo, DequeueManyKernel<true>);
SLUICE_QUEUE_KERNELS(QueueClose, CloseKernel);

#undef SLUICE_QUEUE_KERNELS

SLUICE_KERNEL(QueueSize, kCpu).Function(queue_use::Size);
SLUICE_KERNEL(QueueSizeV2, kCpu).Function(queue_use::Size);
SLUICE_KERNEL(QueueIsClosed, kCpu).Function(queue_use::IsClosed);
SLUICE_KERNEL(QueueIsClosedV2, kCpu).Function(queue_use::IsClosed);

}  // namespace sluice
