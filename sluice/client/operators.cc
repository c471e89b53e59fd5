#include "sluice/client/operators.h"

#include "sluice/client/op_call.h"
#include "sluice/client/ops/array.h"
#include "sluice/client/ops/math.h"

namespace sluice {
namespace {

// The graph an expression is built in; nullptr if no operand has one, which is
// so only after an error.
Graph* GraphOf(const Input& x, const Input& y) {
  for (const Input* input : {&x, &y}) {
    if (input->is_output() && input->output()) {
      return &input->output().node->graph();
    }
  }
  return nullptr;
}

Output Binary(const char* op, const char* name, const Input& x,
              const Input& y) {
  Graph* const graph = GraphOf(x, y);
  if (graph == nullptr) return Output();
  const Scope scope = Scope(*graph).Named(name);
  return OpCall(scope, op).In(x).In(y).One();
}

DType TypeOf(const Input& input) {
  if (!input.is_output()) return input.literal().dtype();
  const Output output = input.output();
  return output ? BaseType(TypeOf(output)) : DType::kInvalid;
}

const char* AddOp(const Input& x, const Input& y) {
  const bool text = TypeOf(x) == DType::kString || TypeOf(y) == DType::kString;
  return text ? "Add" : "AddV2";
}

// The type that integers are divided as; kInvalid: as they are.
DType QuotientType(DType type) {
  if (!IsInteger(type)) return DType::kInvalid;
  return ElementSize(type) < 4 ? DType::kFloat : DType::kDouble;
}

Output Divide(const Input& x, const Input& y) {
  Graph* const graph = GraphOf(x, y);
  if (graph == nullptr) return Output();
  const DType type = TypeOf(x.is_output() ? x : y);
  const DType quotient = QuotientType(type);
  if (quotient == DType::kInvalid) return Binary("RealDiv", "truediv", x, y);
  const Scope outer(*graph);
  const Scope scope = outer.NameScope("truediv");
  const auto converted = [&](const Input& operand, const char* name) {
    return ops::Cast(scope, AsOutput(scope, operand, name, type), quotient);
  };
  const Output a = converted(x, "x");
  const Output b = converted(y, "y");
  return ops::RealDiv(outer.Named(scope.context().name_scope), a, b);
}

}  // namespace

Output operator+(Output x, const Input& y) {
  return Binary(AddOp(x, y), "add", x, y);
}
Output operator+(const Literal& x, Output y) {
  return Binary(AddOp(x, y), "add", x, y);
}
Output operator-(Output x, const Input& y) {
  return Binary("Sub", "sub", x, y);
}
Output operator-(const Literal& x, Output y) {
  return Binary("Sub", "sub", x, y);
}
Output operator*(Output x, const Input& y) {
  return Binary("Mul", "mul", x, y);
}
Output operator*(const Literal& x, Output y) {
  return Binary("Mul", "mul", x, y);
}
Output operator/(Output x, const Input& y) { return Divide(x, y); }
Output operator/(const Literal& x, Output y) { return Divide(x, y); }
Output operator%(Output x, const Input& y) {
  return Binary("FloorMod", "mod", x, y);
}
Output operator%(const Literal& x, Output y) {
  return Binary("FloorMod", "mod", x, y);
}

Output operator-(Output x) {
  return x ? ops::Neg(Scope(x.node->graph()), x) : Output();
}

}  // namespace sluice
