#include "sluice/train/input.h"

#include "sluice/base/path.h"
#include "sluice/base/status.h"
#include "sluice/client/variable.h"
#include "sluice/train/input_nodes.h"
#include "sluice/train/queue_runner.h"
#include "sluice/train/summary_writer.h"

namespace sluice {

Scope Itself(const Scope& scope) {
  return scope.Named(scope.context().name_scope);
}

void SetQueueSeeds(const std::optional<int64_t>& seed, AttrMap* attrs) {
  // TensorFlow's graph seed when only an op has one.
  constexpr int64_t kDefaultGraphSeed = 87654321;
  attrs->Set("seed", seed ? kDefaultGraphSeed : int64_t{0});
  attrs->Set("seed2", seed.value_or(0));
}

Output QueueFraction(const Scope& scope, Output count, int64_t whole) {
  const Output size = scope.Add("Cast", {count}, {{"DstT", DType::kFloat}});
  const Scope inside = scope.NameScope("mul");
  const Output factor = inside.Named("y").Scalar(
      whole == 0 ? 0.0f : 1.0f / static_cast<float>(whole));
  return Itself(inside).Add("Mul", {size, factor});
}

namespace {
namespace input_producers {

constexpr char kNoStrings[] =
    "string_input_producer requires a non-null input tensor";

std::string Suffixed(Output queue, std::string_view suffix) {
  return StrCat(BaseName(queue.node->name()), suffix);
}

void AddFractionSummary(const Scope& scope, const InputQueue& queue,
                        int64_t capacity) {
  AddScalarSummary(scope, StrCat("fraction_of_", capacity, "_full"),
                   QueueFraction(scope, queue.Size(scope), capacity));
}

PartialShape RowShape(Output rows) {
  const PartialShape& shape = rows.node->output_shape(rows.index);
  if (!shape.known_rank() || shape.rank() < 1) return PartialShape();
  return PartialShape(shape.dims().subspan(1));
}

std::vector<Output> OutputsOf(Node* node) {
  std::vector<Output> outputs;
  for (int i = 0; node != nullptr && i < node->num_outputs(); ++i) {
    outputs.push_back(node->output(i));
  }
  return outputs;
}

// `suffix` is what the op is called if the scope gives no name.
Node* QueueOp(const Scope& scope, std::string_view op, const InputQueue& queue,
              std::string_view suffix, std::vector<Output> inputs,
              AttrMap attrs = {}) {
  if (!scope.ok()) return nullptr;
  inputs.insert(inputs.begin(), queue.handle);
  const Scope named = scope.next_name().empty()
                          ? scope.Named(Suffixed(queue.handle, suffix))
                          : scope;
  return named.AddNode(op, inputs, std::move(attrs));
}

// What comes out of a queue has the shapes of its elements, behind `before`.
void RefineShapes(const Scope& scope, Node* node, const InputQueue& queue,
                  const PartialShape& before) {
  if (node == nullptr) return;
  for (size_t i = 0; i < queue.shapes.size(); ++i) {
    if (!queue.shapes[i].known_rank()) continue;
    PartialShape shape = before;
    for (int64_t dim : queue.shapes[i].dims()) shape.AddDim(dim);
    scope.Fail(node->RefineOutputShape(static_cast<int>(i), shape));
  }
}

std::vector<Output> DequeueN(const Scope& scope, const InputQueue& queue,
                             std::string_view op, std::string_view suffix,
                             int32_t n) {
  if (!scope.ok()) return {};
  const Scope inside = scope.next_name().empty()
                           ? scope.NameScope(Suffixed(queue.handle, suffix))
                           : scope.NameScope(scope.next_name());
  const Output count = inside.Named("n").Scalar(n);
  Node* node = QueueOp(Itself(inside), op, queue, suffix, {count},
                       {{"component_types", queue.types}});
  const bool all = op == "QueueDequeueManyV2";
  RefineShapes(scope, node, queue, PartialShape({all ? n : -1}));
  return OutputsOf(node);
}

}  // namespace input_producers
}  // namespace

using namespace input_producers;  // NOLINT: of this file.

std::vector<Output> InputQueue::Dequeue(const Scope& scope) const {
  Node* node = QueueOp(scope, "QueueDequeueV2", *this, "_Dequeue", {},
                       {{"component_types", types}});
  RefineShapes(scope, node, *this, PartialShape::Scalar());
  return OutputsOf(node);
}

std::vector<Output> InputQueue::DequeueMany(const Scope& scope,
                                            int32_t n) const {
  return DequeueN(scope, *this, "QueueDequeueManyV2", "_DequeueMany", n);
}

std::vector<Output> InputQueue::DequeueUpTo(const Scope& scope,
                                            int32_t n) const {
  return DequeueN(scope, *this, "QueueDequeueUpToV2", "_DequeueUpTo", n);
}

Node* InputQueue::Enqueue(const Scope& scope,
                          const std::vector<Output>& element) const {
  return QueueOp(scope, "QueueEnqueueV2", *this, "_enqueue", element);
}

Node* InputQueue::EnqueueMany(const Scope& scope,
                              const std::vector<Output>& rows) const {
  return QueueOp(scope, "QueueEnqueueManyV2", *this, "_EnqueueMany", rows);
}

Output InputQueue::Size(const Scope& scope) const {
  Node* node = QueueOp(scope, "QueueSizeV2", *this, "_Size", {});
  return node == nullptr ? Output() : node->output(0);
}

Output LimitEpochs(const Scope& scope, Output tensor, int64_t num_epochs) {
  if (num_epochs <= 0) {
    scope.Fail(InvalidArgument("num_epochs must be > 0 not ", num_epochs, "."));
    return Output();
  }
  const Scope inside = scope.NameScope("limit_epochs");
  const Output zero = inside.Scalar<int64_t>(0);
  const Variable epochs(
      inside.Named("epochs"), zero,
      {.trainable = false, .collections = {keys::kLocalVariables}});
  const Output counter =
      inside.Add("CountUpTo", {epochs.ref()}, {{"limit", num_epochs}});
  return Itself(inside.Control({counter})).Add("Identity", {tensor});
}

namespace {
namespace input_producers {

// Into a scope that is open already; with a summary if `summarize`.
InputQueue Produce(const Scope& scope, Output rows, PartialShape row,
                   const ProducerOptions& options, bool summarize) {
  InputQueue queue;
  if (!scope.ok()) return queue;
  if (!row.FullyDefined()) {
    scope.Fail(InvalidArgument(
        "The rows of an input producer must have a known shape, but the shape "
        "of ",
        TensorName(rows), " is ",
        rows.node->output_shape(rows.index).DebugString()));
    return queue;
  }
  if (options.shuffle) {
    AttrMap seeds;
    SetQueueSeeds(options.seed, &seeds);
    rows = scope.Add("RandomShuffle", {rows}, seeds);
  }
  if (options.num_epochs != 0) {
    rows = LimitEpochs(scope, rows, options.num_epochs);
  }
  if (!scope.ok()) return queue;
  queue.types = {BaseType(TypeOf(rows))};
  queue.shapes = {std::move(row)};
  // Python names it after its scope only where it gave the scope its name.
  const Scope named = summarize ? Itself(scope) : scope;
  queue.handle = named.Add("FIFOQueueV2", {},
                           {{"component_types", queue.types},
                            {"shapes", queue.shapes},
                            {"capacity", options.capacity},
                            {"shared_name", options.shared_name}});
  Node* enqueue = queue.EnqueueMany(scope, {rows});
  if (!scope.ok()) return queue;
  AddQueueRunner(scope.graph(),
                 MakeQueueRunner(scope, queue.handle, {enqueue}));
  if (summarize) AddFractionSummary(scope, queue, options.capacity);
  return queue;
}

InputQueue ProduceRange(const Scope& scope, Output limit,
                        const ProducerOptions& options) {
  const Scope range = scope.NameScope("range");
  const Output start = range.Named("start").Scalar<int32_t>(0);
  if (!limit) return {};
  const Output delta = range.Named("delta").Scalar<int32_t>(1);
  const Output numbers = Itself(range).Add("Range", {start, limit, delta});
  return Produce(scope, numbers, PartialShape::Scalar(), options, true);
}

}  // namespace input_producers
}  // namespace

InputQueue InputProducer(const Scope& scope, Output rows,
                         const ProducerOptions& options) {
  if (!scope.ok()) return {};
  return Produce(scope.NameScope("input_producer"), rows, RowShape(rows),
                 options, false);
}

InputQueue StringInputProducer(const Scope& scope,
                               const std::vector<std::string>& strings,
                               const ProducerOptions& options) {
  if (strings.empty()) {
    scope.Fail(InvalidArgument(kNoStrings));
    return {};
  }
  const Scope inside = scope.NameScope("input_producer");
  const int64_t count = static_cast<int64_t>(strings.size());
  const Output all = inside.Const(
      Tensor::Of<std::string>({count}, std::span<const std::string>(strings)));
  // Python asks again when the step runs, as it may have been fed.
  const Output size = inside.Named("Size").Scalar(static_cast<int32_t>(count));
  const Scope greater = inside.NameScope("Greater");
  const Output zero = greater.Named("y").Scalar<int32_t>(0);
  const Output some = Itself(greater).Add("Greater", {size, zero});
  const Scope assert_scope = inside.NameScope("Assert");
  assert_scope.Scalar<std::string>(kNoStrings);
  const Scope assert_op = assert_scope.NameScope("Assert");
  const Output text = assert_op.Named("data_0").Scalar<std::string>(kNoStrings);
  Node* check = Itself(assert_op).AddNode("Assert", {some, text});
  if (!scope.ok()) return {};
  const Output checked =
      inside.Control(std::vector<Node*>{check}).Add("Identity", {all});
  return Produce(inside, checked, PartialShape::Scalar(), options, true);
}

InputQueue RangeInputProducer(const Scope& scope, int32_t limit,
                              const ProducerOptions& options) {
  const Scope inside = scope.NameScope("input_producer");
  const Scope range = inside.NameScope("range");
  const Output start = range.Named("start").Scalar<int32_t>(0);
  const Output end = range.Named("limit").Scalar(limit);
  const Output delta = range.Named("delta").Scalar<int32_t>(1);
  const Output numbers = Itself(range).Add("Range", {start, end, delta});
  return Produce(inside, numbers, PartialShape::Scalar(), options, true);
}

std::vector<Output> SliceInputProducer(const Scope& scope,
                                       const std::vector<Output>& tensors,
                                       const ProducerOptions& options) {
  if (tensors.empty()) {
    scope.Fail(InvalidArgument(
        "Expected at least one tensor in slice_input_producer()."));
  }
  if (!scope.ok()) return {};
  const Scope inside = scope.NameScope("input_producer");
  const PartialShape& shape = tensors[0].node->output_shape(tensors[0].index);
  Output sizes;
  if (shape.FullyDefined()) {
    std::vector<int32_t> dims(shape.dims().begin(), shape.dims().end());
    sizes = inside.Named("Shape").Ints(std::move(dims));
  } else {
    sizes = inside.Add("Shape", {tensors[0]});
  }
  const Scope slice = inside.NameScope("strided_slice");
  const Output begin = slice.Named("stack").Ints({0});
  const Output end = slice.Named("stack_1").Ints({1});
  const Output stride = slice.Named("stack_2").Ints({1});
  const Output rows =
      Itself(slice).Add("StridedSlice", {sizes, begin, end, stride},
                        {{"shrink_axis_mask", int64_t{1}}});
  const InputQueue queue =
      ProduceRange(inside.NameScope("input_producer"), rows, options);
  const std::vector<Output> index = queue.Dequeue(inside);
  if (index.empty()) return {};
  std::vector<Output> slices;
  for (Output tensor : tensors) {
    const Scope gather = inside.NameScope("GatherV2");
    const Output axis = gather.Named("axis").Scalar<int32_t>(0);
    slices.push_back(Itself(gather).Add("GatherV2", {tensor, index[0], axis}));
  }
  return slices;
}

}  // namespace sluice
