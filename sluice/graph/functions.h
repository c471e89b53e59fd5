// FunctionLibrary: the functions that came with a graph, kept as data. They go
// out again as they came in; function_body.h makes graphs of them, and
// passes/inline_functions.h puts these in the place of calls.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "sluice/graph/attr_value.h"
#include "sluice/graph/op_registry.h"

namespace sluice {

class Graph;

namespace pb {
class FunctionDef;
class FunctionDefLibrary;
}  // namespace pb

// Thread-compatible.
class FunctionLibrary {
 public:
  FunctionLibrary();
  ~FunctionLibrary();
  // Cheap: definitions are shared.
  FunctionLibrary(const FunctionLibrary& other);
  FunctionLibrary& operator=(const FunctionLibrary& other);

  // Adds all functions and gradients. The same definition again is fine,
  // another one of the same name is an error; then nothing is added.
  absl::Status Add(const pb::FunctionDefLibrary& library);
  // nullptr if there is none.
  const pb::FunctionDef* Find(std::string_view name) const;
  // The function as an op, for nodes that call it by using its name as theirs.
  // nullptr if there is none. Valid as long as the function is in a library.
  const OpInfo* FindOp(std::string_view name) const;
  // The function that is declared to be the gradient of `function`; nullptr if
  // none is.
  const std::string* FindGradient(std::string_view function) const;
  bool empty() const;
  void ToProto(pb::FunctionDefLibrary* library) const;
  absl::Status AddAll(const FunctionLibrary& other);
  // Those that the nodes of `graph` call, by type or by attribute, and those
  // that these reach.
  FunctionLibrary ReachedFrom(const Graph& graph) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Whether a node runs a function: it is named after one of its graph, or is one
// of the ops that take one and give what it gives (PartitionedCall,
// SymbolicGradient, …).
bool CallsFunction(const Node& node);

// The gradient of a node that calls `function`: a SymbolicGradient of it.
Grads FunctionGradient(Scope& scope, const Node& op,
                       const std::string& function, std::span<const Output> dy);

}  // namespace sluice
