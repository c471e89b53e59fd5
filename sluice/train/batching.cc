// The batch functions of input.h.

#include "sluice/base/status.h"
#include "sluice/train/input.h"
#include "sluice/train/input_nodes.h"
#include "sluice/train/queue_runner.h"
#include "sluice/train/summary_writer.h"

namespace sluice {
namespace {
namespace batching {

using Sources = std::vector<std::vector<Output>>;

PartialShape ElementShape(Output tensor, bool enqueue_many) {
  const PartialShape& shape = tensor.node->output_shape(tensor.index);
  if (!enqueue_many || !shape.known_rank() || shape.rank() < 1) return shape;
  return PartialShape(shape.dims().subspan(1));
}

// What the shapes of all sources have in common.
absl::StatusOr<std::vector<PartialShape>> ShapesOf(const Sources& sources,
                                                   bool enqueue_many) {
  std::vector<PartialShape> shapes;
  for (size_t i = 0; i < sources[0].size(); ++i) {
    PartialShape common = ElementShape(sources[0][i], enqueue_many);
    for (const std::vector<Output>& source : sources) {
      const PartialShape shape = ElementShape(source[i], enqueue_many);
      if (!shape.known_rank()) {
        return InvalidArgument("Cannot infer Tensor's rank: ",
                               TensorName(source[i]));
      }
      if (shape.rank() != common.rank()) {
        return InvalidArgument("Tensor ", TensorName(source[i]),
                               " has another rank than that of the first "
                               "source: ",
                               shape.DebugString(), " and ",
                               common.DebugString());
      }
      for (int d = 0; d < shape.rank(); ++d) {
        if (shape.dim(d) != common.dim(d)) common.set_dim(d, -1);
      }
    }
    shapes.push_back(std::move(common));
  }
  return shapes;
}

absl::Status CheckSources(const Sources& sources) {
  if (sources.empty() || sources[0].empty()) {
    return InvalidArgument("Expected at least one set of tensors");
  }
  for (const std::vector<Output>& source : sources) {
    for (Output tensor : source) {
      if (!tensor) return InvalidArgument("A tensor to batch is none");
    }
    bool same = source.size() == sources[0].size();
    for (size_t i = 0; same && i < source.size(); ++i) {
      same = BaseType(TypeOf(source[i])) == BaseType(TypeOf(sources[0][i]));
    }
    if (!same) {
      return InvalidArgument("Expected types to be consistent in all sources");
    }
  }
  return absl::OkStatus();
}

void SummarizeFifo(const Scope& scope, const InputQueue& queue,
                   int64_t capacity) {
  AddScalarSummary(scope, StrCat("fraction_of_", capacity, "_full"),
                   QueueFraction(scope, queue.Size(scope), capacity));
}

void SummarizeShuffle(const Scope& scope, const InputQueue& queue,
                      const BatchOptions& options) {
  const int64_t room = options.capacity - options.min_after_dequeue;
  const Output size = queue.Size(scope);
  const Scope sub = scope.NameScope("sub");
  const Output least =
      sub.Named("y").Scalar(static_cast<int32_t>(options.min_after_dequeue));
  const Output over = Itself(sub).Add("Sub", {size, least});
  const Scope maximum = scope.NameScope("Maximum");
  const Output zero = maximum.Named("x").Scalar<int32_t>(0);
  const Output shown = Itself(maximum).Add("Maximum", {zero, over});
  AddScalarSummary(scope,
                   StrCat("fraction_over_", options.min_after_dequeue, "_of_",
                          room, "_full"),
                   QueueFraction(scope, shown, room));
}

Output MakeQueue(const Scope& scope, const InputQueue& queue,
                 const BatchOptions& options, bool shuffle) {
  AttrMap attrs{{"component_types", queue.types},
                {"shapes", queue.shapes},
                {"capacity", options.capacity},
                {"shared_name", options.shared_name}};
  if (shuffle) {
    attrs.Set("min_after_dequeue", options.min_after_dequeue);
    SetQueueSeeds(options.seed, &attrs);
    return scope.Named("random_shuffle_queue")
        .Add("RandomShuffleQueueV2", {}, attrs);
  }
  if (options.dynamic_pad) {
    return scope.Named("padding_fifo_queue")
        .Add("PaddingFIFOQueueV2", {}, attrs);
  }
  return scope.Named("fifo_queue").Add("FIFOQueueV2", {}, attrs);
}

std::vector<Output> BatchAll(const Scope& outer, std::string_view name,
                             const Sources& sources, int32_t batch_size,
                             const BatchOptions& options, bool shuffle) {
  if (shuffle && options.capacity <= options.min_after_dequeue) {
    outer.Fail(InvalidArgument("capacity ", options.capacity,
                               " must be bigger than min_after_dequeue ",
                               options.min_after_dequeue, "."));
  }
  outer.Fail(CheckSources(sources));
  if (!outer.ok()) return {};
  const Scope scope = outer.NameScope(
      outer.next_name().empty() ? name : std::string_view(outer.next_name()));
  // Python's `keep_input`.
  scope.Const(Tensor::Scalar<bool>(true));
  InputQueue queue;
  for (Output tensor : sources[0]) {
    queue.types.push_back(BaseType(TypeOf(tensor)));
  }
  queue.shapes = options.shapes;
  if (queue.shapes.empty()) {
    absl::StatusOr<std::vector<PartialShape>> shapes =
        ShapesOf(sources, options.enqueue_many);
    scope.Fail(shapes.status());
    if (!scope.ok()) return {};
    queue.shapes = *std::move(shapes);
  }
  queue.handle = MakeQueue(scope, queue, options, shuffle);
  std::vector<Node*> enqueues;
  for (const std::vector<Output>& source : sources) {
    enqueues.push_back(options.enqueue_many ? queue.EnqueueMany(scope, source)
                                            : queue.Enqueue(scope, source));
  }
  if (!scope.ok()) return {};
  std::vector<Node*> threads;
  for (int i = 0; i < options.num_threads; ++i) {
    threads.insert(threads.end(), enqueues.begin(), enqueues.end());
  }
  AddQueueRunner(scope.graph(), MakeQueueRunner(scope, queue.handle, threads));
  if (shuffle) {
    SummarizeShuffle(scope, queue, options);
  } else {
    SummarizeFifo(scope, queue, options.capacity);
  }
  return options.allow_smaller_final_batch
             ? queue.DequeueUpTo(Itself(scope), batch_size)
             : queue.DequeueMany(Itself(scope), batch_size);
}

}  // namespace batching
}  // namespace

using batching::BatchAll;

std::vector<Output> Batch(const Scope& scope,
                          const std::vector<Output>& tensors,
                          int32_t batch_size, const BatchOptions& options) {
  return BatchAll(scope, "batch", {tensors}, batch_size, options, false);
}

std::vector<Output> ShuffleBatch(const Scope& scope,
                                 const std::vector<Output>& tensors,
                                 int32_t batch_size,
                                 const BatchOptions& options) {
  return BatchAll(scope, "shuffle_batch", {tensors}, batch_size, options, true);
}

std::vector<Output> BatchJoin(const Scope& scope,
                              const batching::Sources& sources,
                              int32_t batch_size, const BatchOptions& options) {
  BatchOptions one_each = options;
  one_each.num_threads = 1;
  return BatchAll(scope, "batch_join", sources, batch_size, one_each, false);
}

std::vector<Output> ShuffleBatchJoin(const Scope& scope,
                                     const batching::Sources& sources,
                                     int32_t batch_size,
                                     const BatchOptions& options) {
  BatchOptions one_each = options;
  one_each.num_threads = 1;
  return BatchAll(scope, "shuffle_batch_join", sources, batch_size, one_each,
                  true);
}

}  // namespace sluice
