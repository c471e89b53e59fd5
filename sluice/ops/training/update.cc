#include "sluice/ops/training/update.h"

#include "sluice/base/status.h"
#include "sluice/ops/array/shape_rules.h"
#include "sluice/ops/state/variable_shapes.h"

namespace sluice {
namespace {
namespace update {

bool IsVariableArg(const ArgDef& arg) {
  return arg.is_ref || arg.type == DType::kResource;
}

bool IsGradient(const ArgDef& arg) {
  return arg.name == "grad" || arg.name == "delta";
}

int FindInput(const OpDef& op, std::string_view name) {
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (op.inputs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

const std::string& InputName(const KernelContext& ctx, int i) {
  return ctx.node().op().def.inputs[i].name;
}

absl::Status ShapesDiffer(const KernelContext& ctx, int i, const Shape& var,
                          const Shape& other) {
  return InvalidArgument("var and ", InputName(ctx, i),
                         " do not have the same shape", var.DebugString(), " ",
                         other.DebugString());
}

absl::Status CheckSlots(const KernelContext& ctx, int variables,
                        const LockedVariables& locked) {
  const Shape& var = locked.value(0).shape();
  for (int i = 1; i < variables; ++i) {
    if (locked.value(i).shape() != var) {
      return ShapesDiffer(ctx, i, var, locked.value(i).shape());
    }
  }
  return absl::OkStatus();
}

// One gradient row for each index.
absl::Status RowsShape(ShapeContext& c, const PartialShape& var, int grad,
                       int indices) {
  SLUICE_ASSIGN_OR_RETURN(const PartialShape rows, c.WithRank(indices, 1));
  SLUICE_ASSIGN_OR_RETURN(const PartialShape row, WithoutFirst(var));
  return MergeShapes(c.input(grad), JoinShapes(rows, row)).status();
}

}  // namespace update
}  // namespace

absl::Status UpdateShape(ShapeContext& c) {
  const OpDef& op = c.node().op().def;
  const int indices = update::FindInput(op, "indices");
  PartialShape var = VariableShapeAt(c, 0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (update::IsVariableArg(op.inputs[i])) {
      SLUICE_ASSIGN_OR_RETURN(var, MergeShapes(var, VariableShapeAt(c, i)));
    }
  }
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (update::IsVariableArg(op.inputs[i]) || i == indices) continue;
    if (!update::IsGradient(op.inputs[i])) {
      SLUICE_RETURN_IF_ERROR(c.WithRank(i, 0).status());
    } else if (indices >= 0) {
      SLUICE_RETURN_IF_ERROR(update::RowsShape(c, var, i, indices));
    } else {
      SLUICE_ASSIGN_OR_RETURN(var, MergeShapes(var, c.input(i)));
    }
  }
  if (c.num_outputs() > 0) c.set_output(0, std::move(var));
  return absl::OkStatus();
}

UpdateLayout::UpdateLayout(const OpDef& op, int variables,
                           std::span<const std::string_view> scalar_names)
    : variables(variables), indices(update::FindInput(op, "indices")) {
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (update::IsGradient(op.inputs[i])) grad = static_cast<int>(i);
  }
  for (std::string_view name : scalar_names) {
    scalars.push_back(update::FindInput(op, name));
  }
}

absl::Status UpdateLayout::CheckScalars(const KernelContext& ctx) const {
  for (int i : scalars) {
    if (ctx.input(i).rank() != 0) {
      return InvalidArgument(update::InputName(ctx, i), " is not a scalar: ",
                             ctx.input(i).shape().DebugString());
    }
  }
  return absl::OkStatus();
}

absl::Status UpdateLayout::CheckDense(const KernelContext& ctx,
                                      const LockedVariables& locked) const {
  SLUICE_RETURN_IF_ERROR(update::CheckSlots(ctx, variables, locked));
  const Shape& var = locked.value(0).shape();
  if (ctx.input(grad).shape() == var) return absl::OkStatus();
  return update::ShapesDiffer(ctx, grad, var, ctx.input(grad).shape());
}

absl::Status UpdateLayout::CheckSparse(const KernelContext& ctx,
                                       const LockedVariables& locked) const {
  SLUICE_RETURN_IF_ERROR(update::CheckSlots(ctx, variables, locked));
  const Tensor& var = locked.value(0);
  const Tensor& g = ctx.input(grad);
  const Tensor& rows = ctx.input(indices);
  if (var.rank() < 1) {
    return InvalidArgument("var must be at least 1 dimensional");
  }
  if (rows.rank() != 1) {
    return InvalidArgument("indices must be one-dimensional");
  }
  if (g.rank() != var.rank()) {
    return InvalidArgument("var and grad must have the same rank, but have ",
                           var.shape().DebugString(), " and ",
                           g.shape().DebugString());
  }
  if (g.dim(0) != rows.dim(0)) {
    return InvalidArgument(
        "grad must be the same size as indices in the first dimension.");
  }
  for (int d = 1; d < var.rank(); ++d) {
    if (var.dim(d) != g.dim(d)) {
      return InvalidArgument("var and grad must match in dimension ", d);
    }
  }
  const IndexInput index(rows);
  const int64_t i = index.FindOutside(var.dim(0));
  if (i < 0) return absl::OkStatus();
  return InvalidArgument("Index ", index[i], " at offset ", i,
                         " in indices is out of range");
}

}  // namespace sluice
