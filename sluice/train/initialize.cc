#include "sluice/train/initialize.h"

#include "sluice/autodiff/gate.h"
#include "sluice/client/collections.h"

namespace sluice {

Node* VariablesInitializer(const Scope& scope,
                           const std::vector<Variable>& variables,
                           std::string_view name) {
  if (!scope.ok()) return nullptr;
  std::vector<Node*> initializers;
  for (const Variable& variable : variables) {
    if (variable.initializer() != nullptr) {
      initializers.push_back(variable.initializer());
    }
  }
  return Group(scope, initializers, name);
}

Node* GlobalVariablesInitializer(const Scope& scope) {
  return VariablesInitializer(scope, GlobalVariables(scope.graph()));
}

Node* LocalVariablesInitializer(const Scope& scope) {
  return VariablesInitializer(scope, LocalVariables(scope.graph()));
}

Node* TablesInitializer(const Scope& scope) {
  if (!scope.ok()) return nullptr;
  return Group(scope,
               Collections::Of(scope.graph()).nodes(keys::kTableInitializers),
               "init_all_tables");
}

Output ReportUninitializedVariables(const Scope& outer,
                                    const std::vector<Variable>& variables,
                                    std::string_view name) {
  const Scope scope = outer.NameScope(name).Device("/device:CPU:0");
  std::vector<std::string> names;
  std::vector<Output> initialized;
  for (const Variable& variable : variables) {
    names.push_back(variable.name());
    initialized.push_back(scope.Add(
        variable.resource() ? "VarIsInitializedOp" : "IsVariableInitialized",
        {variable.ref()}));
  }
  const Output all =
      scope.Const(Tensor::Of<std::string>({static_cast<int64_t>(names.size())},
                                          std::span<const std::string>(names)));
  if (names.empty()) return all;
  const Output missing = scope.Add(
      "LogicalNot", {scope.Named("stack").Add(
                        "Pack", initialized,
                        {{"N", static_cast<int64_t>(initialized.size())}})});
  const Output rows = scope.Add("Squeeze", {scope.Add("Where", {missing})},
                                {{"squeeze_dims", std::vector<int64_t>{1}}});
  const Output axis = scope.NameScope("GatherV2").Named("axis").Scalar(0);
  return scope.Add("GatherV2", {all, rows, axis});
}

}  // namespace sluice
