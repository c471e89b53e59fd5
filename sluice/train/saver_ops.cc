#include "sluice/train/saver_ops.h"

#include <vector>

#include "sluice/autodiff/gate.h"
#include "sluice/base/random.h"
#include "sluice/base/status.h"
#include "sluice/graph/device_name.h"

namespace sluice {
namespace {

using Variables = SavedVariables;

Output Strings(const Scope& scope, std::vector<std::string> values) {
  return scope.Const(
      Tensor::Of<std::string>({static_cast<int64_t>(values.size())},
                              std::span<const std::string>(values)));
}

// The value of a ref variable is read where it is written to the file; that of
// a part, as in TensorFlow, where it lives.
Output Saved(const Variable& variable) {
  const bool by_value = variable.resource() || variable.slice() != nullptr;
  return by_value ? variable.value() : variable.ref();
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

// The inputs that name what is saved or restored, below `scope`.
struct Listed {
  Output names, slices;
  std::vector<DType> types;
};
Listed ListOf(const Scope& scope, const Variables& variables,
              std::string_view slices = "shape_and_slices") {
  std::vector<std::string> names, parts;
  Listed list;
  for (const auto& [name, variable] : variables) {
    names.push_back(name);
    parts.push_back(variable.saved_slice());
    list.types.push_back(variable.dtype());
  }
  list.names = Strings(scope.Named("tensor_names"), std::move(names));
  list.slices = Strings(scope.Named(slices), std::move(parts));
  return list;
}

void AppendSaved(const Variables& variables, std::vector<Output>* inputs) {
  for (const auto& [name, variable] : variables) {
    inputs->push_back(Saved(variable));
  }
}

Output AddSave(const Scope& outer, Output prefix, const Variables& variables,
               bool old) {
  const Scope scope = outer.NameScope(old ? "save" : "SaveV2");
  const Listed list =
      ListOf(scope, variables, old ? "shapes_and_slices" : "shape_and_slices");
  std::vector<Output> inputs = {prefix, list.names, list.slices};
  AppendSaved(variables, &inputs);
  Node* save = OwnName(scope).AddNode(old ? "SaveSlices" : "SaveV2", inputs,
                                      {{old ? "T" : "dtypes", list.types}});
  return After(outer, save, prefix);
}

Node* AddAssign(const Scope& scope, const Variable& variable, Output value,
                bool reshape) {
  const PartialShape static_shape = variable.shape();
  const bool known = static_shape.FullyDefined();
  if (reshape && known) {
    const Scope inner = scope.NameScope("Reshape");
    std::vector<int32_t> dims;
    for (int64_t dim : static_shape.dims()) {
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

Node* AssignAll(const Scope& scope, const Variables& variables,
                const std::vector<Output>& values, bool reshape,
                std::string_view name) {
  if (!scope.ok()) return nullptr;
  std::vector<Node*> assigns;
  size_t next = 0;
  for (const auto& [key, variable] : variables) {
    assigns.push_back(AddAssign(scope, variable, values[next++], reshape));
  }
  return scope.ok() ? Group(scope, assigns, name) : nullptr;
}

Node* AddRestore(const Scope& scope, Output prefix, const Variables& variables,
                 bool reshape, std::string_view name) {
  const Scope inside = scope.Device("/device:CPU:0").NameScope("RestoreV2");
  const Listed list = ListOf(inside, variables);
  return AssignAll(
      scope, variables,
      OwnName(inside).AddMulti("RestoreV2", {prefix, list.names, list.slices},
                               {{"dtypes", list.types}}),
      reshape, name);
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
    groups[device->ToString()].emplace(name, variable);
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

using Groups = std::map<std::string, Variables>;

// A ticket of each end of a transfer, which the other one gets over an edge.
std::vector<Output> Tickets(const Scope& from, const Scope& to) {
  return {from.Named("ShardTicket").Add("_SluiceShardTicket", {}),
          to.Named("ShardTicket").Add("_SluiceShardTicket", {})};
}

// `there` sends its part, `owner` writes it to `prefix`.
Node* AddGatheredSave(const Scope& there, const Scope& owner, Output prefix,
                      const Variables& variables) {
  std::vector<Output> tickets = Tickets(there, owner);
  const Scope scope = there.NameScope("SendShard");
  const Listed list = ListOf(scope, variables);
  std::vector<Output> inputs = tickets;
  inputs.insert(inputs.end(), {list.names, list.slices});
  AppendSaved(variables, &inputs);
  Node* send = OwnName(scope).AddNode("_SluiceSendShard", inputs,
                                      {{"dtypes", list.types}});
  if (!scope.ok()) return nullptr;
  tickets.push_back(prefix);
  return owner.Control(std::vector<Node*>{send})
      .Named("StoreShard")
      .AddNode("_SluiceStoreShard", tickets);
}

// `owner` reads the part of `there` and sends it, which does not end before
// all of it has arrived.
Node* AddScatteredRestore(const Scope& there, const Scope& owner, Output prefix,
                          const Variables& variables, bool reshape) {
  const std::vector<Output> tickets = Tickets(owner, there);
  const Scope scope = owner.NameScope("LoadShard");
  const Listed list = ListOf(scope, variables);
  std::vector<Output> inputs = tickets;
  inputs.insert(inputs.end(), {prefix, list.names, list.slices});
  Node* load = OwnName(scope).AddNode("_SluiceLoadShard", inputs,
                                      {{"dtypes", list.types}});
  if (!scope.ok()) return nullptr;
  Node* assign = AssignAll(
      there, variables,
      there.Named("FetchShard")
          .AddMulti("_SluiceFetchShard", tickets, {{"dtypes", list.types}}),
      reshape, "restore_part");
  if (!there.ok()) return nullptr;
  return Group(there, std::vector<Node*>{load, assign}, "restore_shard");
}

Output AddShardedSave(const Scope& scope, Output prefix, const Groups& groups,
                      const SaverOpsOptions& options) {
  // Each task writes a part of its own in a directory of this Saver; the last
  // step merges them under the prefix.
  const bool old = options.version == pb::SaverDef::V1;
  Output base = prefix;
  if (!old) {
    const Scope join = scope.NameScope("StringJoin");
    const Output suffix =
        join.Named("inputs_1")
            .Scalar<std::string>(StrCat("_temp_", RandomHex(), "/part"));
    base = OwnName(join).Add("StringJoin", {prefix, suffix}, {{"N", 2}});
  }
  const Output num_shards =
      scope.Named("num_shards").Scalar(static_cast<int32_t>(groups.size()));
  const std::string last_device = options.gather_to.empty()
                                      ? Cpu0Of(groups.rbegin()->first)
                                      : Cpu0Of(options.gather_to);
  const Scope owner = scope.Device(last_device);
  std::vector<Output> prefixes;
  std::vector<Node*> saves;
  int32_t shard = 0;
  for (const auto& [device, variables] : groups) {
    const Scope there = scope.Device(Cpu0Of(device));
    const Scope file = (options.gather_to.empty() ? there : owner)
                           .NameScope("ShardedFilename");
    const Output index = file.Named("shard").Scalar(shard++);
    prefixes.push_back(
        OwnName(file).Add("ShardedFilename", {base, index, num_shards}));
    if (options.gather_to.empty()) {
      const Output saved = AddSave(there, prefixes.back(), variables, old);
      if (!scope.ok()) return Output();
      saves.push_back(saved.node);
    } else {
      saves.push_back(
          AddGatheredSave(there, owner, prefixes.back(), variables));
      if (!scope.ok()) return Output();
    }
  }
  if (old) {
    return scope.Control(saves).Add("ShardedFilespec", {prefix, num_shards});
  }
  const Scope last = scope.Control(saves).Device(last_device);
  const Scope merging = last.NameScope("MergeV2Checkpoints");
  const Output all = merging.Named("checkpoint_prefixes")
                         .Add("Pack", prefixes,
                              {{"N", static_cast<int64_t>(prefixes.size())}});
  Node* merge = OwnName(merging).AddNode("MergeV2Checkpoints", {all, prefix},
                                         {{"delete_old_dirs", true}});
  return last.Control(std::vector<Node*>{merge}).Add("Identity", {prefix});
}

Node* AddShardedRestore(const Scope& scope, Output prefix, const Groups& groups,
                        const SaverOpsOptions& options) {
  std::vector<Node*> restores;
  for (const auto& [device, members] : groups) {
    const Scope there = device.empty() ? scope : scope.Device(device);
    restores.push_back(
        options.gather_to.empty()
            ? AddRestore(there, prefix, members, options.reshape,
                         "restore_shard")
            : AddScatteredRestore(scope.Device(Cpu0Of(device)),
                                  scope.Device(Cpu0Of(options.gather_to)),
                                  prefix, members, options.reshape));
  }
  return scope.ok() ? Group(scope, restores, "restore_all") : nullptr;
}

}  // namespace

pb::SaverDef BuildSaverOps(const Scope& outer, const Variables& variables,
                           const SaverOpsOptions& options) {
  const Scope scope =
      outer.NameScope(outer.next_name().empty() ? "save" : outer.next_name());
  const bool sharded = options.sharded || !options.gather_to.empty();
  const bool old = options.version == pb::SaverDef::V1;
  pb::SaverDef def;
  if (old && !options.gather_to.empty()) {
    scope.Fail(InvalidArgument(
        "Checkpoints that are gathered are written in the V2 format only"));
    return def;
  }
  // What is fed has been called Const since the first release.
  const Output model =
      scope.NameScope("filename").Named("input").Scalar<std::string>("model");
  const Output prefix = FedString(
      scope, "Const",
      FedString(scope, scope.context().name_scope + "filename/", model));
  Output save;
  Node* restore = nullptr;
  if (sharded) {
    const Groups groups = ByDevice(scope, variables);
    if (!scope.ok()) return def;
    save = AddShardedSave(scope, prefix, groups, options);
    if (scope.ok()) restore = AddShardedRestore(scope, prefix, groups, options);
  } else {
    save = AddSave(scope, prefix, variables, old);
    restore =
        AddRestore(scope, prefix, variables, options.reshape, "restore_all");
  }
  if (!scope.ok()) return def;
  def.set_filename_tensor_name(TensorName(prefix));
  def.set_save_tensor_name(TensorName(save));
  def.set_restore_op_name(restore->name());
  def.set_sharded(sharded);
  def.set_version(options.version);
  return def;
}

}  // namespace sluice
