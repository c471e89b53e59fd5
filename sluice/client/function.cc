#include "sluice/client/function.h"

#include <utility>

#include "sluice/base/status.h"
#include "sluice/graph/functions.h"
#include "sluice/graph/graph_to_function.h"

namespace sluice {
namespace {

absl::Status Build(const std::string& name, const std::vector<DType>& arguments,
                   const Function::Body& body, FunctionLibrary* library) {
  Graph graph;
  graph.functions() = *library;
  const Scope scope(graph);
  FunctionParts parts;
  parts.name = name;
  for (size_t i = 0; i < arguments.size(); ++i) {
    parts.inputs.push_back(
        scope.Named(StrCat("arg", i))
            .Add("Placeholder", {}, {{"dtype", arguments[i]}}));
  }
  parts.outputs = body(scope, parts.inputs);
  SLUICE_RETURN_IF_ERROR(scope.status());
  for (const Output& output : parts.outputs) {
    if (!output || &output.node->graph() != &graph) {
      return InvalidArgument("Function ", name,
                             " returns what its body did not build");
    }
  }
  return AddFunction(graph, parts, library);
}

}  // namespace

Function Function::Define(const Scope& scope, std::string name,
                          const std::vector<DType>& arguments,
                          const Body& body) {
  if (scope.ok()) {
    const absl::Status status =
        Build(name, arguments, body, &scope.graph().functions());
    if (!status.ok()) scope.Fail(status);
  }
  return Function(std::move(name));
}

std::vector<Output> Function::operator()(
    const Scope& scope, const std::vector<Output>& arguments) const {
  return scope.AddMulti(name_, arguments);
}

}  // namespace sluice
