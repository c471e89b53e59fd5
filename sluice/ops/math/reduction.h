// What the reductions and their gradients share.
#pragma once

#include "sluice/graph/scope.h"
#include "sluice/graph/shape_inference.h"
#include "sluice/kernel/kernel.h"
#include "sluice/numeric/reduce.h"

namespace sluice {

// Output 0 is input 0 without the dimensions that input 1 names.
absl::Status ReductionShape(ShapeContext& c);

// Reads input 1 and makes output 0. Runs once per kernel call.
struct Reduction {
  static absl::StatusOr<Reduction> Make(KernelContext& ctx, bool keep_dims);
  numeric::ReducePlan plan;
  Shape shape;  // Of the result.
};

// The gradient functions of Sum, Mean, Max or Min, and Prod.
Grads SumGradient(Scope& scope, const Node& op, std::span<const Output> dy);
Grads MeanGradient(Scope& scope, const Node& op, std::span<const Output> dy);
Grads ExtremeGradient(Scope& scope, const Node& op, std::span<const Output> dy);
Grads ProdGradient(Scope& scope, const Node& op, std::span<const Output> dy);

}  // namespace sluice
