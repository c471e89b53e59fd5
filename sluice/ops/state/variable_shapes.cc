#include "sluice/ops/state/variable_shapes.h"

#include "sluice/base/status.h"
#include "sluice/ops/array/shape_rules.h"

namespace sluice {

absl::StatusOr<PartialShape> WithoutFirst(const PartialShape& shape) {
  if (!shape.known_rank()) return shape;
  if (shape.rank() == 0) {
    return InvalidArgument("Shape must be at least rank 1 but is rank 0");
  }
  return PartialShape(shape.dims().subspan(1));
}

const PartialShape& VariableShapeAt(const ShapeContext& c, int i) {
  return IsRef(c.node().input_type(i)) ? c.input(i) : c.input_handle(i).shape;
}

absl::Status ScatterShape(ShapeContext& c) {
  const PartialShape& variable = VariableShapeAt(c, 0);
  SLUICE_ASSIGN_OR_RETURN(const PartialShape row, WithoutFirst(variable));
  const PartialShape& updates = c.input(2);
  if (!updates.known_rank() || updates.rank() != 0) {
    SLUICE_RETURN_IF_ERROR(
        MergeShapes(updates, JoinShapes(c.input(1), row)).status());
  }
  if (c.num_outputs() > 0) c.set_output(0, variable);
  return absl::OkStatus();
}

absl::Status AssignUpdateShape(ShapeContext& c) {
  SLUICE_ASSIGN_OR_RETURN(PartialShape merged,
                          MergeShapes(VariableShapeAt(c, 0), c.input(1)));
  if (c.num_outputs() > 0) c.set_output(0, std::move(merged));
  return absl::OkStatus();
}

}  // namespace sluice
