// GraphToFunction: a function whose body is a graph.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "sluice/graph/graph.h"

namespace sluice {

namespace pb {
class FunctionDef;
}  // namespace pb

class FunctionLibrary;

struct FunctionParts {
  std::string name;
  // What calls give; their nodes are no part of the body.
  std::vector<Output> inputs;
  std::vector<Output> outputs;
  // One per output, or empty: named after the nodes they come from.
  std::vector<std::string> output_names;
  AttrMap attrs;
};

// All nodes of `graph` become the body; names are made fit for a function as
// TensorFlow makes them: arguments and results are in lower case, and nodes
// that are called as one of these get a number.
absl::Status GraphToFunction(const Graph& graph, const FunctionParts& parts,
                             pb::FunctionDef* def);

// The same, into a library; with it go the functions that the body calls.
absl::Status AddFunction(const Graph& graph, const FunctionParts& parts,
                         FunctionLibrary* library);

}  // namespace sluice
