#include "sluice/ops/queue/queue_kinds.h"

#include <cstring>

#include "sluice/base/random.h"
#include "sluice/base/status.h"
#include "sluice/ops/state/elements.h"

namespace sluice {

Tuple FifoQueue::Pop() {
  Tuple element = std::move(elements_.front());
  elements_.pop_front();
  return element;
}

void FifoQueue::PutBack(std::vector<Tuple> elements) {
  elements_.insert(elements_.begin(), std::make_move_iterator(elements.begin()),
                   std::make_move_iterator(elements.end()));
}

namespace {

int64_t StepOf(const Tuple& token) {
  return token[0].dtype() == DType::kInt64 ? token[0].scalar<int64_t>()
                                           : token[0].scalar<int32_t>();
}

}  // namespace

bool TokenQueue::IsOne(const QueueConfig& config) {
  return config.name == "sync_token_q" && config.capacity < 0 &&
         config.types.size() == 1 &&
         (config.types[0] == DType::kInt64 ||
          config.types[0] == DType::kInt32) &&
         config.shapes.size() == 1 && config.shapes[0].FullyDefined() &&
         config.shapes[0].rank() == 0;
}

void TokenQueue::Push(Tuple token) {
  const int64_t step = StepOf(token);
  if (!elements_.empty() && step < StepOf(elements_.front())) return;
  if (!elements_.empty() && step > StepOf(elements_.front())) elements_.clear();
  elements_.push_back(std::move(token));
}

bool TokenQueue::BeginBatch(const Tuple& first) {
  if (!elements_.empty() && StepOf(first) != StepOf(elements_.front())) {
    elements_.clear();
  }
  return true;
}

void TokenQueue::PutBack(std::vector<Tuple> tokens) {
  for (Tuple& token : tokens) Push(std::move(token));
}

namespace {

// Copies `from` into the corner of `to`, from element `to_at` on, dimension by
// dimension. Both have the rank of `to_shape`.
void CopyIntoCorner(const Tensor& from, int64_t from_at, Tensor* to,
                    const Shape& to_shape, int64_t to_at, int dim) {
  if (dim + 1 >= from.rank()) {
    CopyElements(from, from_at, to, to_at,
                 from.rank() == 0 ? 1 : from.dim(dim));
    return;
  }
  int64_t from_step = 1;
  int64_t to_step = 1;
  for (int d = dim + 1; d < from.rank(); ++d) {
    from_step *= from.dim(d);
    to_step *= to_shape.dim(d);
  }
  for (int64_t i = 0; i < from.dim(dim); ++i) {
    CopyIntoCorner(from, from_at + i * from_step, to, to_shape,
                   to_at + i * to_step, dim + 1);
  }
}

// The smallest shape that holds this component of every element.
Shape LargestShape(const std::vector<Tuple>& elements, size_t component,
                   const PartialShape& shape) {
  Shape largest;
  for (int d = 0; d < shape.rank(); ++d) {
    int64_t size = std::max<int64_t>(shape.dim(d), 0);
    for (const Tuple& element : elements) {
      size = std::max(size, element[component].dim(d));
    }
    largest.AddDim(size);
  }
  return largest;
}

}  // namespace

absl::StatusOr<Tuple> PaddingFifoQueue::Stack(
    const std::vector<Tuple>& elements) const {
  Tuple stacked;
  for (size_t i = 0; i < config().types.size(); ++i) {
    const Shape element = LargestShape(elements, i, config().shapes[i]);
    std::vector<int64_t> dims = {static_cast<int64_t>(elements.size())};
    dims.insert(dims.end(), element.dims().begin(), element.dims().end());
    SLUICE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    SLUICE_ASSIGN_OR_RETURN(Tensor batch,
                            Tensor::Zeros(config().types[i], shape));
    for (size_t n = 0; n < elements.size(); ++n) {
      if (elements[n][i].size() == 0) continue;
      CopyIntoCorner(elements[n][i], 0, &batch, element, n * element.size(), 0);
    }
    stacked.push_back(std::move(batch));
  }
  return stacked;
}

namespace {

PhiloxWords WordsFor(const RandomShuffleQueue::Options& options) {
  if (options.seed == 0 && options.seed2 == 0) {
    return PhiloxWords(Philox(RandomId(), 0, RandomId()));
  }
  return PhiloxWords(Philox::FromSeeds(options.seed, options.seed2));
}

}  // namespace

RandomShuffleQueue::RandomShuffleQueue(QueueConfig config,
                                       const Options& options)
    : Queue(std::move(config)), options_(options), words_(WordsFor(options)) {}

Tuple RandomShuffleQueue::Pop() {
  Tuple& chosen = elements_[words_.Next() % elements_.size()];
  std::swap(chosen, elements_.back());
  Tuple element = std::move(elements_.back());
  elements_.pop_back();
  return element;
}

void RandomShuffleQueue::PutBack(std::vector<Tuple> elements) {
  for (auto it = elements.rbegin(); it != elements.rend(); ++it) {
    elements_.push_back(std::move(*it));
  }
}

absl::Status RandomShuffleQueue::MatchOptions(const Options& options) const {
  if (options.min_after_dequeue != options_.min_after_dequeue) {
    return InvalidArgument("Shared queue '", name(), "' has min_after_dequeue ",
                           options_.min_after_dequeue,
                           " but requested min_after_dequeue was ",
                           options.min_after_dequeue, ".");
  }
  const bool any = options.seed == 0 && options.seed2 == 0;
  if (!any &&
      (options.seed != options_.seed || options.seed2 != options_.seed2)) {
    return InvalidArgument("Shared queue '", name(), "' has random seeds (",
                           options_.seed, ", ", options_.seed2,
                           ") but requested seeds are (", options.seed, ", ",
                           options.seed2, ").");
  }
  return absl::OkStatus();
}

absl::Status PriorityQueue::Check(const Tuple& element) const {
  SLUICE_RETURN_IF_ERROR(Queue::Check(element));
  if (element[0].rank() == 0) return absl::OkStatus();
  return InvalidArgument(
      "Expected the priority element to be a scalar, but received shape: ",
      element[0].shape().DebugString());
}

void PriorityQueue::Push(Tuple element) {
  const int64_t priority = element[0].scalar<int64_t>();
  elements_.emplace(priority, std::move(element));
}

Tuple PriorityQueue::Pop() {
  auto first = elements_.begin();
  Tuple element = std::move(first->second);
  elements_.erase(first);
  return element;
}

void PriorityQueue::PutBack(std::vector<Tuple> elements) {
  for (auto it = elements.rbegin(); it != elements.rend(); ++it) {
    const int64_t priority = (*it)[0].scalar<int64_t>();
    // Before those of the same priority, as it was older.
    elements_.emplace_hint(elements_.lower_bound(priority), priority,
                           std::move(*it));
  }
}

}  // namespace sluice
