#include "sluice/autodiff/zeros.h"

#include <algorithm>
#include <limits>

#include "sluice/graph/control_flow.h"

namespace sluice {

namespace {

bool FitsInt32(const PartialShape& shape) {
  return shape.FullyDefined() &&
         std::ranges::all_of(shape.dims(), [](int64_t dim) {
           return dim <= std::numeric_limits<int32_t>::max();
         });
}

Output Dims(const Scope& scope, const PartialShape& shape) {
  return scope.Ints({shape.dims().begin(), shape.dims().end()});
}

// What stands in a scope of its own but has the scope's name.
Scope NamedAsScope(const Scope& scope) {
  return scope.Named(scope.context().name_scope);
}

// `scope` is the one named after the result. `shape` is a vector.
Output FillZeros(const Scope& scope, Output shape, DType type) {
  const Output zero = scope.Const(ScalarOfType(type, 0));
  return NamedAsScope(scope).Add("Fill", {shape, zero});
}

}  // namespace

Output Zeros(const Scope& scope, Output shape, DType type) {
  return FillZeros(scope.NameScope("zeros"), shape, type);
}

Output ConstZeros(const Scope& scope, const PartialShape& shape, DType type) {
  absl::StatusOr<Tensor> zeros = Tensor::Zeros(type, shape.AsShape());
  if (!zeros.ok()) {
    scope.Fail(zeros.status());
    return Output();
  }
  AttrValue value(*std::move(zeros));
  if (shape.NumElements() > 1) value.set_given_values(1);
  AttrMap attrs;
  attrs.Set("value", std::move(value));
  attrs.Set("dtype", type);
  return scope.Add("Const", {}, std::move(attrs));
}

namespace {

// Large ones are filled when they are needed, so that graphs stay small.
constexpr int64_t kLargestConst = 999;

Output ZerosOfShape(const Scope& scope, const PartialShape& shape, DType type) {
  if (shape.NumElements() > kLargestConst) {
    const Output dims = Dims(scope.Named("shape_as_tensor"), shape);
    return FillZeros(scope, dims, type);
  }
  return ConstZeros(NamedAsScope(scope), shape, type);
}

}  // namespace

Output ZerosOfKnownShape(const Scope& scope, const PartialShape& shape,
                         DType type) {
  return ZerosOfShape(scope.NameScope("zeros"), shape, type);
}

namespace {

// The type of the variable behind a handle.
DType VariableType(Output handle) {
  const DType type = handle.node->output_handle(handle.index).dtype;
  return type == DType::kInvalid ? DType::kFloat : BaseType(type);
}

bool IsResource(Output tensor) {
  return BaseType(TypeOf(tensor)) == DType::kResource;
}

Output GuardedZeros(const Scope& scope, const Node& op,
                    const CondContext& cond) {
  Node* guard = scope.AddNode("Switch", {op.input(0), cond.pred()});
  if (guard == nullptr) return Output();
  const Output value = guard->output(1 - cond.branch());
  // Control edges come from whole nodes, so one on the live side is needed.
  const Output pivot = scope.Add("Identity", {value});
  const Scope guarded = scope.Control(std::vector<Output>{pivot});
  if (IsResource(value)) {
    return Zeros(guarded, guarded.Add("VariableShape", {value}),
                 VariableType(op.input(0)));
  }
  const Output shape = scope.Add("Shape", {value});
  return Zeros(guarded, shape, BaseType(TypeOf(value)));
}

}  // namespace

Output ShapeNode(const Scope& scope, Output tensor) {
  const PartialShape& shape = ShapeOf(tensor);
  if (FitsInt32(shape)) return Dims(scope.Named("Shape"), shape);
  return scope.Add("Shape", {tensor});
}

Output ZerosForOutput(const Scope& scope, const Node& op, int index) {
  if (op.type() == "Switch" || op.type() == "RefSwitch") {
    const auto* cond =
        dynamic_cast<const CondContext*>(op.control_flow().get());
    if (cond != nullptr) return GuardedZeros(scope, op, *cond);
  }
  const Output value = op.output(index);
  if (!IsResource(value)) {
    return scope.Named("zeros_like").Add("ZerosLike", {value});
  }
  return Zeros(scope, scope.Add("VariableShape", {value}), VariableType(value));
}

Output ZerosForUnconnected(const Scope& scope, Output x) {
  if (IsResource(x)) {
    const PartialShape& shape = x.node->output_handle(x.index).shape;
    const Output dims =
        FitsInt32(shape) ? Dims(scope, shape) : scope.Add("VariableShape", {x});
    return Zeros(scope, dims, VariableType(x));
  }
  const DType type = BaseType(TypeOf(x));
  if (FitsInt32(ShapeOf(x)) && type != DType::kVariant) {
    return ZerosOfShape(scope.NameScope("zeros_like"), ShapeOf(x), type);
  }
  return scope.Named("zeros_like").Add("ZerosLike", {x});
}

}  // namespace sluice
