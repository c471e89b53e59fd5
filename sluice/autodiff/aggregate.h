// Sums the gradients that reach one tensor on several ways.
#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "sluice/autodiff/gradients.h"

namespace sluice {

// InvalidArgument for a number that is no method; Python passes numbers on.
absl::Status CheckAggregationMethod(AggregationMethod method);

// The sum of two or more gradients of one output of `op`: dense if one of them
// is, else slices with all the rows.
absl::StatusOr<Grad> Aggregate(const Scope& scope, const Node& op,
                               std::span<const Grad> grads,
                               AggregationMethod method);

}  // namespace sluice
