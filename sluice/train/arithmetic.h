// Python's operators, built in a scope: the nodes that `x * y`, `1 - x` and the
// like add, with the names Python gives them. Operators on outputs
// (client/operators.h) report errors to the graph; these report to the scope,
// so that a call from Python can fail and leave the graph as it was.
//
// Arguments are evaluated in no fixed order and names count up: write one call
// a statement.
#pragma once

#include "sluice/client/input.h"
#include "sluice/graph/scope.h"

namespace sluice {

Output Plus(const Scope& scope, const Input& x, const Input& y);
Output Minus(const Scope& scope, const Input& x, const Input& y);
Output Times(const Scope& scope, const Input& x, const Input& y);
Output Over(const Scope& scope, const Input& x, const Input& y);

// `x` as `dtype`: itself if it has it. A written number is a float or an int
// first, as Python's are.
Output CastTo(const Scope& scope, const Input& x, DType dtype);

// The first element of a vector: `x[0]`.
Output First(const Scope& scope, Output x);

}  // namespace sluice
