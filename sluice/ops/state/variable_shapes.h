// Shape arithmetic that the ops on variables share.
#pragma once

#include "absl/status/statusor.h"
#include "sluice/graph/shape_inference.h"

namespace sluice {

// The shape without its first dimension.
absl::StatusOr<PartialShape> WithoutFirst(const PartialShape& shape);

// The shape of the variable at input `i`, ref or resource.
const PartialShape& VariableShapeAt(const ShapeContext& c, int i);

// Inputs: variable, indices, updates. The updates are a scalar or one row for
// each index. Output 0, if any, is like the variable.
absl::Status ScatterShape(ShapeContext& c);
// Inputs: variable, value of the same shape. Output 0, if any, is like both.
absl::Status AssignUpdateShape(ShapeContext& c);

}  // namespace sluice
