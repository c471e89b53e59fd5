#include "sluice/train/variable_ops.h"

#include "sluice/base/strings.h"
#include "sluice/client/op_call.h"

namespace sluice {

Output ReadValue(const Scope& scope, const Variable& var) {
  if (!var.resource()) return var.value();
  // Beside the variable, whatever is being built around.
  Scope there = scope;
  there.context().colocation.clear();
  return there.Device(var.device())
      .Add("ReadVariableOp", {var.ref()}, {{"dtype", var.dtype()}});
}

Output ReadAfter(const Scope& scope, const Variable& var, Node* update) {
  if (update == nullptr) return Output();
  if (!var.resource()) return update->output(0);
  return ReadValue(scope.Control(std::vector<Node*>{update}), var);
}

Output InitializedValue(const Scope& outer, const Variable& var) {
  const Scope scope = outer.NameScope("cond");
  const bool resource = var.resource();
  const Output there = scope.Add(
      resource ? "VarIsInitializedOp" : "IsVariableInitialized", {var.ref()});
  // Passes the variable on without reading it.
  const std::vector<Output> has =
      scope.AddMulti(resource ? "Switch" : "RefSwitch", {var.ref(), there});
  const std::vector<Output> lacks =
      scope.AddMulti("Switch", {var.initial_value(), there});
  if (!scope.ok()) return Output();
  const Output value =
      resource ? scope.Add("ReadVariableOp", {has[1]}, {{"dtype", var.dtype()}})
               : scope.Add("Identity", {has[1]});
  return scope.Add("Merge", {lacks[0], value});
}

Output GatherRows(const Scope& scope, const Variable& var, Output indices) {
  if (!var.resource()) {
    return OpCall(scope, "GatherV2").In(var.value()).In(indices).In(0).One();
  }
  const Scope gather = scope.NameScope("Gather");
  const Output rows = gather.Named(gather.context().name_scope)
                          .Add("ResourceGather", {var.ref(), indices},
                               {{"dtype", var.dtype()}});
  return scope.Add("Identity", {rows});
}

Updated UpdateVariable(const Scope& scope, std::string_view op,
                       const Variable& var, Output value, bool use_locking) {
  if (!var.resource()) {
    Node* update =
        scope.AddNode(op, {var.ref(), value}, {{"use_locking", use_locking}});
    return {update, update == nullptr ? Output() : update->output(0)};
  }
  Node* update = scope.AddNode(StrCat(op, "VariableOp"), {var.ref(), value});
  if (update == nullptr) return {};
  return {update,
          scope.Control(std::vector<Node*>{update})
              .Named("")
              .Add("ReadVariableOp", {var.ref()}, {{"dtype", var.dtype()}})};
}

Node* ScatterRows(const Scope& scope, std::string_view op, const Variable& var,
                  Output indices, Output rows, bool use_locking) {
  if (var.resource()) {
    return scope.AddNode(StrCat("Resource", op), {var.ref(), indices, rows});
  }
  return scope.AddNode(op, {var.ref(), indices, rows},
                       {{"use_locking", use_locking}});
}

std::optional<SaveSlice> SliceOfSlot(const Variable& var,
                                     std::string_view slot) {
  if (!var.slice()) return std::nullopt;
  SaveSlice slice = *var.slice();
  // "table/part_0/Adam_1" is a part of "table/Adam_1".
  StrAppend(&slice.full_name, slot.substr(var.name().size()));
  return slice;
}

}  // namespace sluice
