#include "sluice/train/init_from_checkpoint.h"

#include <vector>

#include "sluice/base/file.h"
#include "sluice/base/status.h"
#include "sluice/client/collections.h"
#include "sluice/io/checkpoint_reader.h"
#include "sluice/io/checkpoint_state.h"

namespace sluice {
namespace {

// A variable and the tensor that it begins with.
struct FirstValue {
  Variable variable;
  std::string tensor;
};

absl::StatusOr<std::string> PrefixOf(const std::string& dir_or_prefix) {
  const absl::StatusOr<FileStat> stat = RealFileSystem().Stat(dir_or_prefix);
  if (!stat.ok() || !stat->is_dir) return dir_or_prefix;
  const auto latest = LatestCheckpoint(RealFileSystem(), dir_or_prefix);
  if (latest) return *latest;
  return InvalidArgument(
      "Couldn't find 'checkpoint' file or checkpoints in given directory ",
      dir_or_prefix);
}

// What one item of the assignment means.
absl::StatusOr<std::vector<FirstValue>> Expand(
    const std::string& tensor, const std::string& target,
    const std::vector<Variable>& variables) {
  std::vector<FirstValue> values;
  for (const Variable& variable : variables) {
    if (variable.saved_name() == target) values.push_back({variable, tensor});
  }
  if (!values.empty()) return values;
  const size_t slash = target.rfind('/');
  const std::string scope =
      slash == std::string::npos ? "" : target.substr(0, slash);
  if (!tensor.ends_with('/')) {
    return InvalidArgument("Assignment map with scope only name ", scope,
                           " should map to scope only ", tensor,
                           ". Should be 'scope/': 'other_scope/'.");
  }
  const std::string prefix = scope.empty() ? "" : StrCat(scope, "/");
  for (const Variable& variable : variables) {
    if (!variable.saved_name().starts_with(prefix)) continue;
    const std::string inside = variable.saved_name().substr(prefix.size());
    values.push_back(
        {variable, tensor == "/" ? inside : StrCat(tensor, inside)});
  }
  return values;
}

absl::Status Check(const FirstValue& value, CheckpointReader& reader,
                   const std::string& prefix) {
  const absl::StatusOr<CheckpointTensor> stored = reader.Find(value.tensor);
  if (!stored.ok()) {
    return InvalidArgument("Tensor ", value.tensor, " is not found in ", prefix,
                           " checkpoint");
  }
  // Of a part, the whole is there.
  const SaveSlice* slice = value.variable.slice();
  const PartialShape wanted = slice == nullptr
                                  ? value.variable.shape()
                                  : PartialShape(slice->full_shape);
  if (wanted.CompatibleWith(stored->shape)) return absl::OkStatus();
  return InvalidArgument("Shape of variable ", TensorName(value.variable.ref()),
                         " (", wanted.DebugString(),
                         ") doesn't match with shape of tensor ", value.tensor,
                         " (", stored->shape.DebugString(),
                         ") from checkpoint reader.");
}

Output OneString(const Scope& scope, std::string_view name,
                 const std::string& text) {
  return scope.Named(name).Const(Tensor::Vector<std::string>({text}));
}

// The variable with another initializer.
Variable WithInitializer(const Scope& outer, const FirstValue& value,
                         const std::string& prefix) {
  const Variable& variable = value.variable;
  const Scope scope = outer.Device(variable.device())
                          .Device("/device:CPU:0")
                          .NameScope("checkpoint_initializer");
  const Output restored =
      scope.Named(scope.context().name_scope)
          .AddMulti(
              "RestoreV2",
              {scope.Named("prefix").Scalar(prefix),
               OneString(scope, "tensor_names", value.tensor),
               OneString(scope, "shape_and_slices", variable.saved_slice())},
              {{"dtypes", std::vector<DType>{variable.dtype()}}})
          .front();
  if (!scope.ok()) return variable;
  Variable::Nodes nodes;
  nodes.ref = variable.ref();
  nodes.value = variable.value();
  nodes.trainable = variable.trainable();
  if (variable.slice()) nodes.slice = *variable.slice();
  nodes.initial_value = restored;
  nodes.initializer =
      variable.resource()
          ? outer.AddNode("AssignVariableOp", {variable.ref(), restored})
          : outer.AddNode("Assign", {variable.ref(), restored});
  return Variable(nodes);
}

void Replace(Graph& graph, const Variable& changed) {
  Collections& collections = Collections::Of(graph);
  const auto all = collections.all();
  for (const auto& [key, items] : all) {
    bool found = false;
    for (const CollectionItem& item : items) {
      const auto* variable = std::get_if<Variable>(&item);
      found = found || (variable != nullptr && *variable == changed);
    }
    if (!found) continue;
    collections.Clear(key);
    for (const CollectionItem& item : items) {
      const auto* variable = std::get_if<Variable>(&item);
      const bool same = variable != nullptr && *variable == changed;
      collections.Add(key, same ? CollectionItem(changed) : item);
    }
  }
}

}  // namespace

absl::Status InitFromCheckpoint(
    const Scope& scope, const std::string& dir_or_prefix,
    const std::map<std::string, std::string>& assignment) {
  SLUICE_ASSIGN_OR_RETURN(const std::string prefix, PrefixOf(dir_or_prefix));
  SLUICE_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                          CheckpointReader::Open(RealFileSystem(), prefix));
  std::vector<FirstValue> all;
  for (const auto& [tensor, target] : assignment) {
    SLUICE_ASSIGN_OR_RETURN(
        const std::vector<FirstValue> values,
        Expand(tensor, target, GlobalVariables(scope.graph())));
    for (const FirstValue& value : values) {
      SLUICE_RETURN_IF_ERROR(Check(value, *reader, dir_or_prefix));
      all.push_back(value);
    }
  }
  for (const FirstValue& value : all) {
    const Variable changed = WithInitializer(scope, value, prefix);
    if (!scope.ok()) return scope.status();
    Replace(scope.graph(), changed);
  }
  return absl::OkStatus();
}

}  // namespace sluice
