// ExampleParser: batches of serialized Examples as columns and dense tensors.
// What ParseExample, ParseSingleExample and the contexts of sequences share.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/kernel/kernel.h"
#include "sluice/ops/parsing/feature_column.h"

namespace sluice {

// A feature with any number of values.
struct SparseFeature {
  std::string key;
  DType dtype = DType::kInvalid;
};

// A feature of a known shape.
struct DenseFeature {
  std::string key;
  DType dtype = DType::kInvalid;
  // The first size may be unknown: then the examples of a batch are padded.
  PartialShape shape;
  // What an example that lacks it has; empty: it must be there. With an unknown
  // first size: the padding, one element.
  Tensor default_value;

  bool variable() const { return shape.rank() > 0 && shape.dim(0) < 0; }
  // Elements of one example, or with an unknown first size of one step of it.
  int64_t elements() const;
};

// Whether `feature` is one that can be parsed; `i` is its place, for messages.
absl::Status CheckDenseFeature(const DenseFeature& feature, size_t i);

struct ParsedExamples {
  std::vector<FeatureColumn> sparse;
  // One for each dense feature: [examples] and its shape.
  std::vector<Tensor> dense;
};

// Says in an error which example and which feature is meant.
struct ExampleErrors {
  // "Name: <unknown>, Key: k, Index: 0.  "
  virtual std::string AtKey(int64_t example, std::string_view key) const = 0;
  // "Name: <unknown>, Feature: k (data type: float) is required but could not
  // be found."
  virtual std::string Missing(int64_t example,
                              const DenseFeature& feature) const = 0;

 protected:
  ~ExampleErrors() = default;
};

// Immutable.
class ExampleParser {
 public:
  // The features must have passed CheckDenseFeature.
  ExampleParser(std::vector<SparseFeature> sparse,
                std::vector<DenseFeature> dense);

  const std::vector<SparseFeature>& sparse() const { return sparse_; }
  const std::vector<DenseFeature>& dense() const { return dense_; }

  // Calls `visit` for every feature of an example; VisitExample, or the context
  // of a sequence.
  using Visit = absl::FunctionRef<bool(std::string_view, EntryVisitor)>;
  // Parses on several threads if it is worth it. On an error the first example
  // that has one is named.
  absl::StatusOr<ParsedExamples> Parse(std::span<const std::string> serialized,
                                       Visit visit, const ExampleErrors& errors,
                                       const KernelContext& ctx) const;

 private:
  struct Shard;
  struct Place {
    int sparse = -1;
    int dense = -1;
  };

  absl::Status ParseOne(const std::string& example, int64_t index, Visit visit,
                        const ExampleErrors& errors, Shard* shard,
                        std::vector<Tensor>* fixed) const;
  absl::Status SetDense(const DenseFeature& feature,
                        const FeatureValues& values, int64_t index,
                        const ExampleErrors& errors, FeatureColumn* column,
                        Tensor* fixed) const;
  absl::StatusOr<Tensor> Pad(const DenseFeature& feature,
                             FeatureColumn column) const;

  const std::vector<SparseFeature> sparse_;
  const std::vector<DenseFeature> dense_;
  absl::flat_hash_map<std::string, Place> places_;
};

// "Could not parse example input, value: '…'".
absl::Status MalformedExample(std::string_view bytes);

}  // namespace sluice
