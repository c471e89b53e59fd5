#include "sluice/train/saver.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_format.h"
#include "sluice/base/logging.h"
#include "sluice/base/path.h"
#include "sluice/base/status.h"
#include "sluice/client/collections.h"
#include "sluice/io/checkpoint_state.h"
#include "sluice/train/meta_graph.h"
#include "sluice/train/restore_report.h"
#include "sluice/train/saver_ops.h"

namespace sluice {
namespace {

// Whether both may have the same name in a checkpoint: as parts of one.
absl::Status CheckTogether(const std::string& name, const Variable& a,
                           const Variable& b) {
  if (!a.slice() && !b.slice()) {
    return InvalidArgument("At least two variables have the same name: ", name);
  }
  if (!a.slice() || !b.slice()) {
    return InvalidArgument("Mixing slices and non-slices with the same name: ",
                           name);
  }
  if (a.slice()->full_name != b.slice()->full_name) {
    return InvalidArgument("Slices must all be from the same tensor: ",
                           a.slice()->full_name, " != ", b.slice()->full_name);
  }
  return absl::OkStatus();
}

absl::StatusOr<SavedVariables> ToSave(Graph& graph,
                                      const SaverOptions& options) {
  SavedVariables saved = options.named;
  if (saved.empty()) {
    for (const Variable& variable : options.variables.empty()
                                        ? GlobalVariables(graph)
                                        : options.variables) {
      if (!variable) return InvalidArgument("One of the variables is none");
      saved.emplace(variable.saved_name(), variable);
    }
  }
  std::map<const Node*, std::string> seen;
  for (auto it = saved.begin(); it != saved.end(); ++it) {
    const auto& [name, variable] = *it;
    if (!variable) return InvalidArgument("There is no variable for ", name);
    if (!seen.emplace(variable.node(), name).second) {
      return InvalidArgument(
          "The same saveable will be restored with two names: ", name);
    }
    const auto first = saved.find(name);
    if (first != it) {
      SLUICE_RETURN_IF_ERROR(CheckTogether(name, first->second, variable));
    }
  }
  return saved;
}

constexpr std::string_view kMismatch =
    "a mismatch between the current graph and the graph";

absl::Status RestoreFailed(const absl::Status& cause, std::string_view why) {
  return WithMessage(
      cause,
      StrCat(
          "Restoring from checkpoint failed. This is most likely due to ", why,
          " from the checkpoint. Please ensure that you have not altered the "
          "graph expected based on the checkpoint. Original error:\n\n",
          ToStd(cause.message())));
}

// Whether the checkpoint itself is broken, and not what it is restored to.
bool IsDamaged(const absl::Status& status, bool exists) {
  return !exists || absl::IsDataLoss(status) || absl::IsOutOfRange(status) ||
         (absl::IsNotFound(status) &&
          status.message().find("not found in checkpoint") ==
              absl::string_view::npos);
}

// "m.meta" of "m"; V1 shards are named "m-?????-of-00002".
std::string MetaGraphName(std::string prefix, const std::string& suffix) {
  const size_t of = prefix.rfind("-of-");
  if (of != std::string::npos && of > 0 &&
      prefix.find_first_not_of("0123456789", of + 4) == std::string::npos) {
    const size_t dash = prefix.find_last_not_of("0123456789?", of - 1);
    if (dash != std::string::npos && dash + 1 < of && prefix[dash] == '-') {
      prefix.resize(dash);
    }
  }
  return StrCat(prefix, ".", suffix);
}

}  // namespace

Saver::Saver(Graph& graph, const pb::SaverDef& def, const SaverOptions& options)
    : graph_(graph),
      options_(options),
      files_(options.files ? *options.files : RealFileSystem()),
      clock_(options.clock ? *options.clock : RealClock()),
      def_(def) {
  keeper_ = std::make_unique<CheckpointKeeper>(
      files_, clock_,
      KeepOptions{def.max_to_keep(), def.keep_checkpoint_every_n_hours(),
                  options.relative_paths});
}

Saver::Saver(const Scope& scope, SaverOptions options)
    : Saver(
          scope.graph(),
          [&] {
            pb::SaverDef def;
            def.set_max_to_keep(std::max(options.max_to_keep, 0));
            def.set_keep_checkpoint_every_n_hours(
                static_cast<float>(options.keep_checkpoint_every_n_hours));
            return def;
          }(),
          options) {
  const absl::StatusOr<SavedVariables> variables = ToSave(graph_, options_);
  if (!variables.ok()) {
    scope.Fail(variables.status());
    return;
  }
  empty_ = variables->empty();
  if (empty_) {
    if (!options_.allow_empty) {
      scope.Fail(InvalidArgument("No variables to save"));
    }
    return;
  }
  pb::SaverDef built = BuildSaverOps(scope, *variables,
                                     {.sharded = options_.sharded,
                                      .reshape = options_.reshape,
                                      .gather_to = options_.gather_to,
                                      .version = options_.write_version});
  def_.MergeFrom(built);
}

absl::StatusOr<std::unique_ptr<Saver>> Saver::FromDef(Graph& graph,
                                                      const pb::SaverDef& def) {
  if (def.save_tensor_name().empty() || def.restore_op_name().empty() ||
      def.filename_tensor_name().empty()) {
    return InvalidArgument(
        "saver_def must specify the filename_tensor_name, save_tensor_name and "
        "restore_op_name: ",
        def.ShortDebugString());
  }
  return std::unique_ptr<Saver>(new Saver(graph, def, {}));
}

absl::StatusOr<Output> Saver::FileName() const {
  return graph_.FindOutput(def_.filename_tensor_name());
}

absl::StatusOr<std::string> Saver::Prefix(const std::string& path,
                                          const SaveOptions& options) const {
  if (!DirName(options.latest_filename).empty()) {
    return InvalidArgument(
        "'latest_filename' must not contain path components");
  }
  if (options.global_step) {
    return options_.pad_step_number
               ? absl::StrFormat("%s-%08d", path, *options.global_step)
               : absl::StrFormat("%s-%d", path, *options.global_step);
  }
  if (BaseName(path) == options.latest_filename && !def_.sharded()) {
    return InvalidArgument("'latest_filename' collides with 'save_path': '",
                           options.latest_filename, "' and '", path, "'");
  }
  return path;
}

absl::StatusOr<std::string> Saver::Save(Session& session,
                                        const std::string& path,
                                        const SaveOptions& options) {
  if (empty_) return std::string();
  SLUICE_ASSIGN_OR_RETURN(std::string prefix, Prefix(path, options));
  SLUICE_ASSIGN_OR_RETURN(const Output filename, FileName());
  SLUICE_ASSIGN_OR_RETURN(const Output save,
                          graph_.FindOutput(def_.save_tensor_name()));
  const std::string dir(DirName(path));
  const int64_t turn = keeper_->TakeTurn();
  std::vector<Tensor> saved;
  absl::Status status =
      session.Run({{filename, Tensor::Scalar(prefix)}}, {save}, {}, &saved);
  if (!status.ok()) {
    const bool gone =
        absl::IsNotFound(status) || absl::IsFailedPrecondition(status);
    if (gone && !dir.empty() && !files_.Exists(dir)) {
      return WithMessage(status, StrCat("Parent directory of ", path,
                                        " doesn't exist, can't save."));
    }
    return status;
  }
  prefix = saved[0].scalar<std::string>();
  if (options.write_meta_graph) {
    SLUICE_RETURN_IF_ERROR(files_.WriteFileAtomically(
        MetaGraphName(prefix, options.meta_graph_suffix),
        ExportMetaGraph(graph_, &def_).SerializeAsString()));
  }
  if (options.write_state) {
    SLUICE_RETURN_IF_ERROR(
        keeper_->Publish(prefix, turn, dir, options.latest_filename));
  }
  return prefix;
}

absl::Status Saver::Explain(const absl::Status& status,
                            const std::string& prefix) const {
  if (absl::IsNotFound(status)) {
    return RestoreFailed(status,
                         "a Variable name or other graph key that is missing");
  }
  if (!absl::IsInvalidArgument(status)) return status;
  const std::string mismatches =
      RestoreMismatches(graph_, def_.restore_op_name(), files_, prefix);
  return RestoreFailed(mismatches.empty()
                           ? status
                           : WithMessage(status, StrCat(ToStd(status.message()),
                                                        "\n\n", mismatches)),
                       kMismatch);
}

absl::Status Saver::Restore(Session& session, const std::string& prefix) {
  if (empty_) return absl::OkStatus();
  if (prefix.empty()) {
    return InvalidArgument("Can't load save_path when it is None.");
  }
  if (!CheckpointExists(files_, prefix)) {
    return InvalidArgument("The passed save_path is not a valid checkpoint: ",
                           prefix);
  }
  SLUICE_LOG(INFO) << "Restoring parameters from " << prefix;
  SLUICE_ASSIGN_OR_RETURN(const Output filename, FileName());
  Node* restore = graph_.FindNode(def_.restore_op_name());
  if (restore == nullptr) {
    return InvalidArgument("the graph has no op ", def_.restore_op_name());
  }
  // Assigning to a resource takes any shape.
  const std::string mismatches =
      RestoreMismatches(graph_, def_.restore_op_name(), files_, prefix,
                        /*resources_only=*/true);
  if (!mismatches.empty()) {
    return RestoreFailed(InvalidArgument(mismatches), kMismatch);
  }
  const absl::Status status =
      session.Run({{filename, Tensor::Scalar(prefix)}}, {}, {restore}, nullptr);
  if (!status.ok()) return Explain(status, prefix);
  MutexLock lock(mu_);
  restored_ = prefix;
  return absl::OkStatus();
}

absl::StatusOr<std::string> Saver::RestoreNewest(
    Session& session, const pb::CheckpointState& state) {
  std::vector<std::string> candidates = {state.model_checkpoint_path()};
  for (int i = state.all_model_checkpoint_paths_size() - 1; i >= 0; --i) {
    const std::string& prefix = state.all_model_checkpoint_paths(i);
    if (prefix != candidates[0]) candidates.push_back(prefix);
  }
  absl::Status first;
  for (const std::string& prefix : candidates) {
    const absl::Status status = Restore(session, prefix);
    if (status.ok()) {
      if (!first.ok()) {
        SLUICE_LOG(WARNING) << "Restored " << prefix << " in place of "
                            << candidates[0] << ", which is damaged.";
      }
      return prefix;
    }
    if (first.ok()) first = status;
    if (!IsDamaged(status, CheckpointExists(files_, prefix))) break;
    SLUICE_LOG(WARNING) << "Checkpoint " << prefix
                        << " is damaged, trying the one before it: "
                        << status.message();
  }
  return first;
}

std::string Saver::restored() const {
  MutexLock lock(mu_);
  return restored_;
}

std::vector<std::string> Saver::last_checkpoints() const {
  std::vector<std::string> prefixes;
  for (KeptCheckpoint& kept : keeper_->kept()) {
    prefixes.push_back(std::move(kept.prefix));
  }
  return prefixes;
}

std::vector<KeptCheckpoint> Saver::last_checkpoints_with_time() const {
  return keeper_->kept();
}

void Saver::SetLastCheckpoints(const std::vector<std::string>& prefixes) {
  std::vector<KeptCheckpoint> kept;
  for (const std::string& prefix : prefixes) {
    kept.push_back({prefix, std::numeric_limits<double>::infinity()});
  }
  keeper_->Set(std::move(kept));
}

void Saver::SetLastCheckpointsWithTime(
    std::vector<KeptCheckpoint> checkpoints) {
  keeper_->Set(std::move(checkpoints));
}

void Saver::RecoverLastCheckpoints(const std::vector<std::string>& prefixes) {
  keeper_->Recover(prefixes);
}

}  // namespace sluice
