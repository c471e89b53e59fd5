// The kinds of queues: in what order elements leave, and what may be put in.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "sluice/numeric/philox.h"
#include "sluice/ops/queue/queue.h"

namespace sluice {

// First in, first out.
class FifoQueue : public Queue {
 public:
  using Queue::Queue;

 protected:
  std::string_view kind() const override { return "FIFOQueue"; }
  int64_t Count() const override {
    return static_cast<int64_t>(elements_.size());
  }
  void Push(Tuple element) override { elements_.push_back(std::move(element)); }
  Tuple Pop() override;
  void PutBack(std::vector<Tuple> elements) override;

  std::deque<Tuple> elements_;
};

// The queue in which the chief of a synchronous training hands out tokens: the
// step that a worker computes its next gradient for. Only those of one step are
// of use; in a plain queue whoever gets an older one computes for nothing.
//
// A batch comes from the chief: it takes the place of tokens of other steps,
// also of later ones, and opens a queue that the end of an earlier training
// closed. A single token is one that a worker gives back: an old one is
// dropped.
class TokenQueue : public FifoQueue {
 public:
  using FifoQueue::FifoQueue;
  // Whether a queue is one: by the name that all programs give it.
  static bool IsOne(const QueueConfig& config);

 protected:
  void Push(Tuple token) override;
  void PutBack(std::vector<Tuple> tokens) override;
  bool BeginBatch(const Tuple& first) override;
};

// As FifoQueue for elements whose shapes differ in sizes that the queue's
// shapes leave open; batches are padded with zeros to the largest.
class PaddingFifoQueue : public FifoQueue {
 public:
  using FifoQueue::FifoQueue;

 protected:
  // Single elements keep the name of the base class, as in TensorFlow.
  std::string_view batch_kind() const override { return "PaddingFIFOQueue"; }
  absl::StatusOr<Tuple> Stack(
      const std::vector<Tuple>& elements) const override;
};

// Any element with equal chance, by a stream of random words that the seeds
// fix. While it is open at least `min_after_dequeue` elements stay in.
class RandomShuffleQueue : public Queue {
 public:
  struct Options {
    int64_t min_after_dequeue = 0;
    int64_t seed = 0;
    int64_t seed2 = 0;
  };
  RandomShuffleQueue(QueueConfig config, const Options& options);

  absl::Status MatchOptions(const Options& options) const;

 protected:
  std::string_view kind() const override { return "RandomShuffleQueue"; }
  int64_t Count() const override {
    return static_cast<int64_t>(elements_.size());
  }
  void Push(Tuple element) override { elements_.push_back(std::move(element)); }
  Tuple Pop() override;
  void PutBack(std::vector<Tuple> elements) override;
  int64_t Reserve() const override { return options_.min_after_dequeue; }

 private:
  const Options options_;
  PhiloxWords words_;
  std::vector<Tuple> elements_;
};

// The element whose first component, an int64 scalar, is smallest; the oldest
// of equal ones.
class PriorityQueue : public Queue {
 public:
  using Queue::Queue;
  absl::Status Check(const Tuple& element) const override;

 protected:
  std::string_view kind() const override { return "PriorityQueue"; }
  int64_t Count() const override {
    return static_cast<int64_t>(elements_.size());
  }
  void Push(Tuple element) override;
  Tuple Pop() override;
  void PutBack(std::vector<Tuple> elements) override;

 private:
  std::multimap<int64_t, Tuple> elements_;
};

}  // namespace sluice
