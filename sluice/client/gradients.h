// The gradients of a graph that a C++ program builds; autodiff/gradients.h does
// the work and has more options.
#pragma once

#include <vector>

#include "sluice/graph/scope.h"

namespace sluice {

// The sum over ys of dy/dx for every x, as dense tensors; none where no y
// depends on x. A Variable in `xs` stands for its value(), through which an
// expression reads it; its ref() catches other reads too. Errors go to the
// scope, and then all are none.
std::vector<Output> Gradients(const Scope& scope, const std::vector<Output>& ys,
                              const std::vector<Output>& xs);

}  // namespace sluice
