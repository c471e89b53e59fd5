// Input pipelines made of queues: producers of names, numbers and rows, and
// batches. Each function adds a queue, a queue runner that sessions start
// (StartQueueRunners; monitored sessions and the supervisor do it themselves)
// and a summary of how full the queue is. Names are those of Python's.
//
//   InputQueue files = StringInputProducer(root, {"a.csv", "b.csv"});
//   Output reader = ops::TextLineReaderV2(root);
//   auto record = ops::ReaderReadV2(root, reader, files.handle);
//   std::vector<Output> columns = …DecodeCSV of record.value…;
//   std::vector<Output> batch =
//       ShuffleBatch(root, columns, 32, {.capacity = 1000,
//                                        .min_after_dequeue = 500});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/graph/scope.h"

namespace sluice {

// A queue as a program sees it. A value; the graph owns the node.
struct InputQueue {
  Output handle;
  std::vector<DType> types;
  std::vector<PartialShape> shapes;

  // The components of one element, of `n` stacked ones, or of up to `n` when
  // the queue is closed.
  std::vector<Output> Dequeue(const Scope& scope) const;
  std::vector<Output> DequeueMany(const Scope& scope, int32_t n) const;
  std::vector<Output> DequeueUpTo(const Scope& scope, int32_t n) const;
  Node* Enqueue(const Scope& scope, const std::vector<Output>& element) const;
  Node* EnqueueMany(const Scope& scope, const std::vector<Output>& rows) const;
  Output Size(const Scope& scope) const;
};

// Gives `tensor` so many times, then OUT_OF_RANGE. Counts in a local variable.
Output LimitEpochs(const Scope& scope, Output tensor, int64_t num_epochs);

struct ProducerOptions {
  int64_t num_epochs = 0;  // 0: again and again.
  bool shuffle = true;     // Anew in each epoch.
  std::optional<int64_t> seed = std::nullopt;
  int64_t capacity = 32;
  std::string shared_name = {};
};

// The rows of a tensor, whose sizes but the first must be known.
InputQueue InputProducer(const Scope& scope, Output rows,
                         const ProducerOptions& options = {});
// Strings, such as names of files; at least one.
InputQueue StringInputProducer(const Scope& scope,
                               const std::vector<std::string>& strings,
                               const ProducerOptions& options = {});
// The int32 numbers below `limit`.
InputQueue RangeInputProducer(const Scope& scope, int32_t limit,
                              const ProducerOptions& options = {});
// One row of each tensor, the same for all.
std::vector<Output> SliceInputProducer(const Scope& scope,
                                       const std::vector<Output>& tensors,
                                       const ProducerOptions& options = {});

struct BatchOptions {
  int num_threads = 1;
  int64_t capacity = 32;
  // The tensors hold many elements each.
  bool enqueue_many = false;
  // Of one element; needed where they are not known.
  std::vector<PartialShape> shapes = {};
  // Sizes may differ; batches are padded with zeros.
  bool dynamic_pad = false;
  bool allow_smaller_final_batch = false;
  std::string shared_name = {};
  // Only for ShuffleBatch and ShuffleBatchJoin.
  int64_t min_after_dequeue = 0;
  std::optional<int64_t> seed = std::nullopt;
};

std::vector<Output> Batch(const Scope& scope,
                          const std::vector<Output>& tensors,
                          int32_t batch_size, const BatchOptions& options = {});
std::vector<Output> ShuffleBatch(const Scope& scope,
                                 const std::vector<Output>& tensors,
                                 int32_t batch_size,
                                 const BatchOptions& options);
// Of several sources, a thread each.
std::vector<Output> BatchJoin(const Scope& scope,
                              const std::vector<std::vector<Output>>& sources,
                              int32_t batch_size,
                              const BatchOptions& options = {});
std::vector<Output> ShuffleBatchJoin(
    const Scope& scope, const std::vector<std::vector<Output>>& sources,
    int32_t batch_size, const BatchOptions& options);

}  // namespace sluice
