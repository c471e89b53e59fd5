#include "sluice/autodiff/aggregate.h"

#include <algorithm>
#include <map>

#include "sluice/autodiff/slices.h"
#include "sluice/base/logging.h"
#include "sluice/graph/shape_inference.h"

namespace sluice {

namespace {

Output AddN(const Scope& scope, const std::vector<Output>& terms) {
  return terms.size() == 1 ? terms[0] : scope.Add("AddN", terms);
}

// Sums what lies on one device there, then the sums.
Output AddPerDevice(const Scope& scope, const std::vector<Output>& terms) {
  std::map<std::string, std::vector<Output>> by_device;
  for (const Output& term : terms) {
    by_device[term.node->device()].push_back(term);
  }
  std::vector<Output> sums;
  for (const auto& [device, group] : by_device) {
    Scope beside = scope;
    beside.context().PushColocation(group[0].node, /*replace=*/true);
    sums.push_back(AddN(beside, group));
  }
  return AddN(scope, sums);
}

// Two at a time, so that terms can be freed early.
Output AddInPairs(const Scope& scope, const Node& op,
                  const std::vector<Output>& terms) {
  const Scope inner = scope.NameScope(op.name() + "_gradient_sum");
  Output sum = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    sum = inner.Add("AddN", {sum, terms[i]});
  }
  return sum;
}

absl::StatusOr<Output> SumDense(const Scope& scope, const Node& op,
                                const std::vector<Output>& terms,
                                AggregationMethod method) {
  PartialShape shape;
  for (const Output& term : terms) {
    SLUICE_ASSIGN_OR_RETURN(shape, shape.MergeWith(ShapeOf(term)));
  }
  if (method == AggregationMethod::kAddN) return AddPerDevice(scope, terms);
  if (method == AggregationMethod::kAccumulateN && terms.size() > 2 &&
      shape.FullyDefined()) {
    return scope.Add("AccumulateNV2", terms, {{"shape", shape}});
  }
  return AddInPairs(scope, op, terms);
}

constexpr int64_t kManyElements = 100'000'000;

void WarnIfLarge(const Grad& slices) {
  if (!slices.dense_shape) return;
  const auto shape = ConstantValueAsShape(slices.dense_shape);
  const int64_t size = shape ? shape->NumElements() : -1;
  if (size < 0) {
    SLUICE_LOG(WARNING) << "Converting sparse IndexedSlices to a dense Tensor "
                           "of unknown shape. This may consume a large amount "
                           "of memory.";
  } else if (size >= kManyElements) {
    SLUICE_LOG(WARNING) << "Converting sparse IndexedSlices to a dense Tensor "
                           "with "
                        << size
                        << " elements. This may consume a large amount of "
                           "memory.";
  }
}

// Slices become dense under the name of the sum.
Output SumMixed(const Scope& scope, std::span<const Grad> grads) {
  const Scope inner = scope.NameScope("AddN");
  std::vector<Output> terms;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].is_slices()) WarnIfLarge(grads[i]);
    terms.push_back(Densify(inner, grads[i], StrCat("inputs_", i)));
  }
  return inner.Named(inner.context().name_scope).Add("AddN", terms);
}

}  // namespace

absl::Status CheckAggregationMethod(AggregationMethod method) {
  switch (method) {
    case AggregationMethod::kAddN:
    case AggregationMethod::kTree:
    case AggregationMethod::kAccumulateN:
      return absl::OkStatus();
  }
  return InvalidArgument("Invalid aggregation_method specified ",
                         static_cast<int>(method), ".");
}

absl::StatusOr<Grad> Aggregate(const Scope& scope, const Node& op,
                               std::span<const Grad> grads,
                               AggregationMethod method) {
  const auto slices = std::ranges::count_if(grads, &Grad::is_slices);
  Grad sum;
  if (slices == 0) {
    std::vector<Output> terms;
    for (const Grad& grad : grads) terms.push_back(grad.values);
    SLUICE_ASSIGN_OR_RETURN(sum.values, SumDense(scope, op, terms, method));
  } else if (slices == static_cast<int64_t>(grads.size())) {
    sum = ConcatSlices(scope, grads);
  } else {
    sum.values = SumMixed(scope, grads);
  }
  SLUICE_RETURN_IF_ERROR(scope.status());
  return sum;
}

}  // namespace sluice
