#include "sluice/train/saver.h"

#include <algorithm>
#include <cstdio>

#include "sluice/base/logging.h"
#include "sluice/base/path.h"
#include "sluice/base/status.h"
#include "sluice/client/collections.h"
#include "sluice/io/checkpoint_state.h"
#include "sluice/train/meta_graph.h"
#include "sluice/train/saver_ops.h"

namespace sluice {
namespace {

absl::StatusOr<std::map<std::string, Variable>> ToSave(
    Graph& graph, const SaverOptions& options) {
  std::map<std::string, Variable> names = options.named;
  if (names.empty()) {
    for (const Variable& variable : options.variables.empty()
                                        ? GlobalVariables(graph)
                                        : options.variables) {
      if (!names.emplace(variable.name(), variable).second) {
        return InvalidArgument("At least two variables have the same name: ",
                               variable.name());
      }
    }
  }
  std::map<const Node*, std::string> seen;
  for (const auto& [name, variable] : names) {
    if (!variable) return InvalidArgument("There is no variable for ", name);
    if (!seen.emplace(variable.node(), name).second) {
      return InvalidArgument(
          "The same saveable will be restored with two names: ", name);
    }
  }
  return names;
}

absl::Status RestoreFailed(const absl::Status& cause, std::string_view why) {
  return WithMessage(
      cause,
      StrCat(
          "Restoring from checkpoint failed. This is most likely due to ", why,
          " from the checkpoint. Please ensure that you have not altered the "
          "graph expected based on the checkpoint. Original error:\n\n",
          ToStd(cause.message())));
}

}  // namespace

Saver::Saver(Graph& graph, const pb::SaverDef& def, const SaverOptions& options)
    : graph_(graph),
      options_(options),
      files_(options.files ? *options.files : RealFileSystem()),
      clock_(options.clock ? *options.clock : RealClock()),
      def_(def) {
  next_keep_seconds_ =
      NowSeconds() + def_.keep_checkpoint_every_n_hours() * 3600;
}

Saver::Saver(const Scope& scope, SaverOptions options)
    : Saver(scope.graph(), {}, options) {
  const absl::StatusOr<std::map<std::string, Variable>> variables =
      ToSave(graph_, options_);
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
  def_ = BuildSaverOps(scope, *variables, options_.sharded, options_.reshape);
  def_.set_max_to_keep(std::max(options_.max_to_keep, 0));
  def_.set_keep_checkpoint_every_n_hours(
      static_cast<float>(options_.keep_checkpoint_every_n_hours));
  next_keep_seconds_ =
      NowSeconds() + options_.keep_checkpoint_every_n_hours * 3600;
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

double Saver::NowSeconds() const {
  return static_cast<double>(clock_.WallMicros()) / 1e6;
}

absl::StatusOr<Output> Saver::FileName() const {
  return graph_.FindOutput(def_.filename_tensor_name());
}

absl::StatusOr<std::string> Saver::Save(Session& session,
                                        const std::string& path,
                                        const SaveOptions& options) {
  if (empty_) return std::string();
  if (!DirName(options.latest_filename).empty()) {
    return InvalidArgument(
        "'latest_filename' must not contain path components");
  }
  std::string prefix = path;
  if (options.global_step) {
    char number[32];
    std::snprintf(number, sizeof number,
                  options_.pad_step_number ? "-%08lld" : "-%lld",
                  static_cast<long long>(*options.global_step));
    prefix += number;
  } else if (BaseName(path) == options.latest_filename) {
    return InvalidArgument("'latest_filename' collides with 'save_path': '",
                           options.latest_filename, "' and '", path, "'");
  }
  SLUICE_ASSIGN_OR_RETURN(const Output filename, FileName());
  SLUICE_ASSIGN_OR_RETURN(const Output save,
                          graph_.FindOutput(def_.save_tensor_name()));
  const std::string dir(DirName(path));
  int64_t turn;
  {
    MutexLock lock(mu_);
    turn = ++turns_;
  }
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
  SLUICE_RETURN_IF_ERROR(Publish(prefix, dir, turn, options));
  return prefix;
}

absl::Status Saver::Publish(const std::string& prefix, const std::string& dir,
                            int64_t turn, const SaveOptions& options) {
  if (options.write_meta_graph) {
    SLUICE_RETURN_IF_ERROR(files_.WriteFileAtomically(
        prefix + ".meta", ExportMetaGraph(graph_, &def_).SerializeAsString()));
  }
  if (!options.write_state) return absl::OkStatus();
  absl::Status deleted;
  {
    // One at a time, so that the state file lists every checkpoint.
    MutexLock lock(mu_);
    Record(prefix, turn);
    SLUICE_RETURN_IF_ERROR(
        WriteCheckpointState(files_, dir,
                             MakeCheckpointState(dir, latest_, KeptPrefixes(),
                                                 options_.relative_paths),
                             options.latest_filename));
    deleted = DeleteOld();
  }
  if (!deleted.ok()) {
    // An old file must not end the training.
    SLUICE_LOG(WARNING) << "Ignoring: " << deleted.message();
  }
  return absl::OkStatus();
}

void Saver::Record(const std::string& prefix, int64_t turn) {
  // A save that took longer than one that began after it holds older values.
  const bool overtaken = turn < latest_turn_;
  if (!overtaken) {
    latest_ = prefix;
    latest_turn_ = turn;
  }
  if (def_.max_to_keep() <= 0) return;
  std::erase_if(kept_, [&](const Kept& k) { return k.prefix == prefix; });
  kept_.insert(overtaken && !kept_.empty() ? kept_.end() - 1 : kept_.end(),
               {prefix, NowSeconds()});
  if (kept_.size() > static_cast<size_t>(def_.max_to_keep())) {
    to_delete_.push_back(kept_.front());
    kept_.erase(kept_.begin());
  }
}

absl::Status Saver::DeleteOld() {
  if (to_delete_.empty()) return absl::OkStatus();
  const Kept old = to_delete_.front();
  to_delete_.erase(to_delete_.begin());
  if (old.seconds > next_keep_seconds_) {
    // Kept for good.
    next_keep_seconds_ += def_.keep_checkpoint_every_n_hours() * 3600;
    return absl::OkStatus();
  }
  if (std::ranges::count(kept_, old.prefix, &Kept::prefix) > 0) {
    return absl::OkStatus();
  }
  return RemoveCheckpoint(files_, old.prefix);
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
  absl::Status status =
      session.Run({{filename, Tensor::Scalar(prefix)}}, {}, {restore}, nullptr);
  if (absl::IsNotFound(status)) {
    return RestoreFailed(status,
                         "a Variable name or other graph key that is missing");
  }
  if (absl::IsInvalidArgument(status)) {
    return RestoreFailed(status,
                         "a mismatch between the current graph and the graph");
  }
  return status;
}

std::vector<std::string> Saver::last_checkpoints() const {
  MutexLock lock(mu_);
  return KeptPrefixes();
}

std::vector<std::string> Saver::KeptPrefixes() const {
  std::vector<std::string> prefixes;
  prefixes.reserve(kept_.size());
  for (const Kept& kept : kept_) prefixes.push_back(kept.prefix);
  return prefixes;
}

void Saver::RecoverLastCheckpoints(const std::vector<std::string>& prefixes) {
  MutexLock lock(mu_);
  kept_.clear();
  for (const std::string& prefix : prefixes) {
    const absl::StatusOr<int64_t> nanos = CheckpointMtime(files_, prefix);
    if (nanos.ok())
      kept_.push_back({prefix, static_cast<double>(*nanos) / 1e9});
  }
}

}  // namespace sluice
