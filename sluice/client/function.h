// Function: a part of a graph that has a name and is called, as Python's Defun
// makes them. The body stands in the graph's library, a call is one node, and
// Gradients goes through calls.
//
//   Function f = Function::Define(root, "Norm", {DType::kFloat},
//       [](const Scope& body, std::span<const Output> args) {
//         return std::vector{ops::Sqrt(body, args[0] * args[0])};
//       });
//   Output y = f(root, {x})[0];
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sluice/graph/scope.h"

namespace sluice {

// A cheap value.
class Function {
 public:
  // Gives the results, built in a graph of their own of its arguments alone.
  using Body = std::function<std::vector<Output>(const Scope& body,
                                                 std::span<const Output> args)>;

  // Adds the function to the graph of `scope`, which keeps the first error. The
  // body may call functions that the graph has already.
  static Function Define(const Scope& scope, std::string name,
                         const std::vector<DType>& arguments, const Body& body);

  const std::string& name() const { return name_; }

  // The results of a call; as many "none" as there are after an error.
  std::vector<Output> operator()(const Scope& scope,
                                 const std::vector<Output>& arguments) const;

 private:
  explicit Function(std::string name) : name_(std::move(name)) {}
  std::string name_;
};

}  // namespace sluice
