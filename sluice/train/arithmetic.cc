#include "sluice/train/arithmetic.h"

#include "sluice/client/op_call.h"

namespace sluice {
namespace {

Output Binary(const Scope& scope, const char* op, const char* name,
              const Input& x, const Input& y) {
  const Scope named = scope.next_name().empty() ? scope.Named(name) : scope;
  return OpCall(named, op).In(x).In(y).One();
}

}  // namespace

Output Plus(const Scope& scope, const Input& x, const Input& y) {
  return Binary(scope, "AddV2", "add", x, y);
}

Output Minus(const Scope& scope, const Input& x, const Input& y) {
  return Binary(scope, "Sub", "sub", x, y);
}

Output Times(const Scope& scope, const Input& x, const Input& y) {
  return Binary(scope, "Mul", "mul", x, y);
}

Output Over(const Scope& scope, const Input& x, const Input& y) {
  return Binary(scope, "RealDiv", "truediv", x, y);
}

Output CastTo(const Scope& scope, const Input& x, DType dtype) {
  if (x.is_output()) {
    const Output value = x.output();
    if (!value || BaseType(TypeOf(value)) == dtype) return value;
    return scope.Add("Cast", {value}, {{"DstT", dtype}});
  }
  const Scope inner = scope.NameScope("Cast");
  const DType own = x.literal().dtype();
  const Output number =
      AsOutput(inner, x, "x", own == DType::kDouble ? DType::kFloat : own);
  if (!number || TypeOf(number) == dtype) return number;
  return inner.Named(inner.context().name_scope)
      .Add("Cast", {number}, {{"DstT", dtype}});
}

Output First(const Scope& outer, Output x) {
  const Scope scope = outer.NameScope("strided_slice");
  const Output begin = scope.Named("stack").Ints({0});
  const Output end = scope.Named("stack_1").Ints({1});
  const Output strides = scope.Named("stack_2").Ints({1});
  return scope.Named(scope.context().name_scope)
      .Add("StridedSlice", {x, begin, end, strides}, {{"shrink_axis_mask", 1}});
}

}  // namespace sluice
