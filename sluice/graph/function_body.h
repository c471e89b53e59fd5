// InstantiateFunction: the body of a function as a graph.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/graph/functions.h"
#include "sluice/graph/graph.h"

namespace sluice {

struct FunctionBody {
  // Its functions are those of the library that the function is from.
  std::unique_ptr<Graph> graph;
  // One `_Arg` node per argument and one output per result; lists are spread
  // out.
  std::vector<Node*> args;
  std::vector<Output> results;
  // Nodes that must have run before the call is over.
  std::vector<Node*> control_results;
};

// The body for a call with these attributes, which stand for those that the
// function leaves open. Errors say what is wrong with the function or call.
absl::StatusOr<FunctionBody> InstantiateFunction(
    const FunctionLibrary& functions, std::string_view name,
    const AttrMap& attrs);

}  // namespace sluice
