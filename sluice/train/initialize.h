// Giving all variables their first values, and asking which have none yet.
#pragma once

#include <string_view>
#include <vector>

#include "sluice/client/variable.h"

namespace sluice {

// A NoOp after all initializers; of no variables a NoOp too.
Node* VariablesInitializer(const Scope& scope,
                           const std::vector<Variable>& variables,
                           std::string_view name = "init");
Node* GlobalVariablesInitializer(const Scope& scope);
Node* LocalVariablesInitializer(const Scope& scope);
// All table initializers of the graph.
Node* TablesInitializer(const Scope& scope);

// A vector of the names of those without a value.
Output ReportUninitializedVariables(
    const Scope& scope, const std::vector<Variable>& variables,
    std::string_view name = "report_uninitialized_variables");

}  // namespace sluice
