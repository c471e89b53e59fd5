// Arithmetic on outputs: `x * w + 1.0f`. What is built stands under the graph's
// current context (With in graph/scope.h) and is named as in Python: add, sub,
// mul, truediv, mod, Neg. Comparisons are functions: ops::Less and the like.
#pragma once

#include "sluice/client/input.h"

namespace sluice {

Output operator+(Output x, const Input& y);
Output operator+(const Literal& x, Output y);
Output operator-(Output x, const Input& y);
Output operator-(const Literal& x, Output y);
Output operator*(Output x, const Input& y);
Output operator*(const Literal& x, Output y);
// Integers are divided as floating point numbers (FloorDiv does not).
Output operator/(Output x, const Input& y);
Output operator/(const Literal& x, Output y);
// The result has the sign of y (FloorMod).
Output operator%(Output x, const Input& y);
Output operator%(const Literal& x, Output y);
Output operator-(Output x);

}  // namespace sluice
