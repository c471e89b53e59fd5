#include "sluice/train/saver_ops.h"

#include <vector>

#include "sluice/autodiff/gate.h"
#include "sluice/base/random.h"
#include "sluice/base/status.h"
#include "sluice/graph/device_name.h"

namespace sluice {
namespace {

using Variables = std::map<std::string, Variable>;

Output Strings(const Scope& scope, std::vector<std::string> values) {
  return scope.Const(
      Tensor::Of<std::string>({static_cast<int64_t>(values.size())},
                              std::span<const std::string>(values)));
}

// The value of a ref variable is read where it is written to the file.
Output Saved(const Variable& variable) {
  return variable.resource() ? variable.value() : variable.ref();
}

Scope OwnName(const Scope& scope) {
  return scope.Named(scope.context().name_scope);
}

// "default" unless fed.
Output FedString(const Scope& outer, std::string_view name, Output value) {
  return outer.Named(name).Add("PlaceholderWithDefault", {value},
                               {{"shape", PartialShape::Scalar()}});
}

// `output`, to be used only after `node`.
Output After(const Scope& outer, Node* node, Output output) {
  if (!outer.ok()) return Output();
  const Scope scope = outer.NameScope("control_dependency");
  return OwnName(scope)
      .Colocate(output.node)
      .Control(std::vector<Node*>{node})
      .Add("Identity", {output});
}

Output AddSave(const Scope& outer, Output prefix, const Variables& variables) {
  const Scope scope = outer.NameScope("SaveV2");
  std::vector<std::string> names;
  std::vector<DType> types;
  for (const auto& [name, variable] : variables) {
    names.push_back(name);
    types.push_back(variable.dtype());
  }
  std::vector<Output> inputs = {
      prefix, Strings(scope.Named("tensor_names"), names),
      Strings(scope.Named("shape_and_slices"),
              std::vector<std::string>(names.size()))};
  for (const auto& [name, variable] : variables) {
    inputs.push_back(Saved(variable));
  }
  Node* save = OwnName(scope).AddNode("SaveV2", inputs, {{"dtypes", types}});
  return After(outer, save, prefix);
}

Node* AddAssign(const Scope& scope, const Variable& variable, Output value,
                bool reshape) {
  const bool known = variable.shape().FullyDefined();
  if (reshape && known) {
    const Scope inner = scope.NameScope("Reshape");
    std::vector<int32_t> dims;
    for (int64_t dim : variable.shape().dims()) {
      dims.push_back(static_cast<int32_t>(dim));
    }
    const Output shape = inner.Named("shape").Ints(std::move(dims));
    value = OwnName(inner).Add("Reshape", {value, shape});
  }
  if (variable.resource()) {
    const Scope there = scope.Device(variable.value().node->device());
    const Output copy = there.Add("Identity", {value});
    return there.AddNode("AssignVariableOp", {variable.ref(), copy});
  }
  return scope.AddNode(
      "Assign", {variable.ref(), value},
      {{"validate_shape", known && !reshape}, {"use_locking", true}});
}

Node* AddRestore(const Scope& scope, Output prefix, const Variables& variables,
                 bool reshape, std::string_view name) {
  const Scope cpu = scope.Device("/device:CPU:0");
  const Scope inside = cpu.NameScope("RestoreV2");
  std::vector<std::string> names;
  std::vector<DType> types;
  for (const auto& [key, variable] : variables) {
    names.push_back(key);
    types.push_back(variable.dtype());
  }
  const std::vector<Output> restored = OwnName(inside).AddMulti(
      "RestoreV2",
      {prefix, Strings(inside.Named("tensor_names"), names),
       Strings(inside.Named("shape_and_slices"),
               std::vector<std::string>(names.size()))},
      {{"dtypes", types}});
  if (!scope.ok()) return nullptr;
  std::vector<Node*> assigns;
  size_t next = 0;
  for (const auto& [key, variable] : variables) {
    assigns.push_back(AddAssign(scope, variable, restored[next++], reshape));
  }
  return scope.ok() ? Group(scope, assigns, name) : nullptr;
}

std::map<std::string, Variables> ByDevice(const Scope& scope,
                                          const Variables& variables) {
  std::map<std::string, Variables> groups;
  for (const auto& [name, variable] : variables) {
    absl::StatusOr<DeviceName> device = DeviceName();
    if (!variable.device().empty()) {
      device = DeviceName::Parse(variable.device());
    }
    if (!device.ok()) {
      scope.Fail(device.status());
      return {};
    }
    groups[device->ToString()][name] = variable;
  }
  return groups;
}

std::string Cpu0Of(const std::string& device) {
  DeviceName name;
  if (!device.empty()) name = DeviceName::Parse(device).value_or(DeviceName());
  name.type = "CPU";
  name.id = 0;
  return name.ToString();
}

std::string RandomHex() {
  return absl::StrCat(absl::Hex(RandomId(), absl::kZeroPad16),
                      absl::Hex(RandomId(), absl::kZeroPad16));
}

Output AddShardedSave(const Scope& scope, Output prefix,
                      const std::map<std::string, Variables>& groups) {
  // Each task writes a part of its own in a directory of this Saver; the last
  // step merges them under the prefix.
  const Scope join = scope.NameScope("StringJoin");
  const Output suffix =
      join.Named("inputs_1")
          .Scalar<std::string>(StrCat("_temp_", RandomHex(), "/part"));
  const Output temporary =
      OwnName(join).Add("StringJoin", {prefix, suffix}, {{"N", 2}});
  const Output num_shards =
      scope.Named("num_shards").Scalar(static_cast<int32_t>(groups.size()));
  std::vector<Output> prefixes;
  std::vector<Node*> saves;
  int32_t shard = 0;
  for (const auto& [device, variables] : groups) {
    const Scope there = scope.Device(Cpu0Of(device));
    const Scope file = there.NameScope("ShardedFilename");
    const Output index = file.Named("shard").Scalar(shard++);
    prefixes.push_back(
        OwnName(file).Add("ShardedFilename", {temporary, index, num_shards}));
    const Output saved = AddSave(there, prefixes.back(), variables);
    if (!scope.ok()) return Output();
    saves.push_back(saved.node);
  }
  const Scope last =
      scope.Control(saves).Device(Cpu0Of(groups.rbegin()->first));
  const Scope merging = last.NameScope("MergeV2Checkpoints");
  const Output all = merging.Named("checkpoint_prefixes")
                         .Add("Pack", prefixes,
                              {{"N", static_cast<int64_t>(prefixes.size())}});
  Node* merge = OwnName(merging).AddNode("MergeV2Checkpoints", {all, prefix},
                                         {{"delete_old_dirs", true}});
  return last.Control(std::vector<Node*>{merge}).Add("Identity", {prefix});
}

}  // namespace

pb::SaverDef BuildSaverOps(const Scope& outer, const Variables& variables,
                           bool sharded, bool reshape) {
  const Scope scope =
      outer.NameScope(outer.next_name().empty() ? "save" : outer.next_name());
  // What is fed has been called Const since the first release.
  const Output model =
      scope.NameScope("filename").Named("input").Scalar<std::string>("model");
  const Output prefix = FedString(
      scope, "Const",
      FedString(scope, scope.context().name_scope + "filename/", model));
  Output save;
  Node* restore = nullptr;
  if (sharded) {
    const std::map<std::string, Variables> groups = ByDevice(scope, variables);
    if (!scope.ok()) return {};
    save = AddShardedSave(scope, prefix, groups);
    std::vector<Node*> restores;
    for (const auto& [device, members] : groups) {
      const Scope there = device.empty() ? scope : scope.Device(device);
      restores.push_back(
          AddRestore(there, prefix, members, reshape, "restore_shard"));
    }
    if (scope.ok()) restore = Group(scope, restores, "restore_all");
  } else {
    save = AddSave(scope, prefix, variables);
    restore = AddRestore(scope, prefix, variables, reshape, "restore_all");
  }
  pb::SaverDef def;
  if (!scope.ok()) return def;
  def.set_filename_tensor_name(TensorName(prefix));
  def.set_save_tensor_name(TensorName(save));
  def.set_restore_op_name(restore->name());
  def.set_sharded(sharded);
  def.set_version(pb::SaverDef::V2);
  return def;
}

}  // namespace sluice
