// SequenceParser: serialized SequenceExamples as columns. Their contexts go the
// way of Examples; a feature list has a row for every step.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/ops/parsing/example_parser.h"

namespace sluice {

// A feature list whose steps all have one shape.
struct DenseList {
  std::string key;
  DType dtype = DType::kInvalid;
  Shape shape;
  bool may_be_missing = false;
};

// The rows of a batch of lists.
struct ListColumn {
  explicit ListColumn(DType dtype) : column(dtype) {}
  FeatureColumn column;
  std::vector<int64_t> steps;  // One an example.

  int64_t longest() const;
};

struct ParsedSequences {
  ParsedExamples context;
  std::vector<ListColumn> sparse;
  std::vector<ListColumn> dense;
};

// Immutable.
class SequenceParser {
 public:
  SequenceParser(ExampleParser context, std::vector<SparseFeature> sparse,
                 std::vector<DenseList> dense)
      : context_(std::move(context)),
        sparse_(std::move(sparse)),
        dense_(std::move(dense)) {}

  const ExampleParser& context() const { return context_; }
  const std::vector<DenseList>& dense() const { return dense_; }

  // `names` says what the examples are called in messages; may be empty.
  absl::StatusOr<ParsedSequences> Parse(std::span<const std::string> serialized,
                                        std::span<const std::string> names,
                                        const KernelContext& ctx) const;

 private:
  absl::Status ParseLists(const std::string& example, std::string_view name,
                          ParsedSequences* parsed) const;
  absl::Status AddSparse(const SparseFeature& feature, std::string_view list,
                         std::string_view name, ListColumn* column) const;
  absl::Status AddDense(const DenseList& feature, const std::string_view* list,
                        std::string_view name, ListColumn* column) const;

  const ExampleParser context_;
  const std::vector<SparseFeature> sparse_;
  const std::vector<DenseList> dense_;
};

}  // namespace sluice
