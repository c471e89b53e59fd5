// SymbolicGradient, PartitionedCall, StatefulPartitionedCall: nodes that run a
// function. They have no kernel: a worker puts bodies in the place of calls
// before it runs a graph (passes/inline_functions.h).

#include "sluice/base/status.h"
#include "sluice/graph/functions.h"
#include "sluice/graph/op_registry.h"
#include "sluice/graph/shape_inference.h"

namespace sluice {
namespace {
namespace function_ops {

// The gradients are of the first inputs.
absl::Status GradientShape(ShapeContext& c) {
  if (c.num_inputs() < c.num_outputs()) {
    return InvalidArgument("len(inputs) < len(outputs)");
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(i));
  return absl::OkStatus();
}

Grads CallGradient(Scope& scope, const Node& op, std::span<const Output> dy) {
  return FunctionGradient(scope, op, op.attr<FunctionName>("f").name, dy);
}

}  // namespace function_ops
}  // namespace

SLUICE_OP(SymbolicGradient)
    .Input("input: Tin")
    .Output("output: Tout")
    .Attr("Tin: list(type) >= 1")
    .Attr("Tout: list(type) >= 1")
    .Attr("f: func")
    .Shape(function_ops::GradientShape);

SLUICE_OP(PartitionedCall)
    .Input("args: Tin")
    .Output("output: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0")
    .Attr("f: func")
    .Attr("config: string = ''")
    .Attr("config_proto: string = ''")
    .Attr("executor_type: string = ''")
    .Shape(shapes::Unknown)
    .Gradient(function_ops::CallGradient);

SLUICE_OP(StatefulPartitionedCall)
    .Input("args: Tin")
    .Output("output: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0")
    .Attr("f: func")
    .Attr("config: string = ''")
    .Attr("config_proto: string = ''")
    .Attr("executor_type: string = ''")
    .Stateful()
    .Shape(shapes::Unknown)
    .Gradient(function_ops::CallGradient);

}  // namespace sluice
