// Saver: writes variables to checkpoints and reads them back. Building one adds
// its ops to the graph; Save and Restore run them, so that each task writes the
// variables it holds. Names and files are TensorFlow's (V2, or V1 if asked
// for).
//
//   Saver saver(scope);
//   auto prefix = saver.Save(*session, "/tmp/model.ckpt", {.global_step = 7});
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/clock.h"
#include "sluice/base/file.h"
#include "sluice/client/variable.h"
#include "sluice/proto/saver.pb.h"
#include "sluice/session/session.h"
#include "sluice/train/checkpoint_keeper.h"

namespace sluice {

struct SaverOptions {
  // Empty: all global variables.
  std::vector<Variable> variables = {};
  // In place of `variables`: by the name in the checkpoint. The parts of one
  // variable have the same.
  std::multimap<std::string, Variable> named = {};
  // Every device writes a file of its own.
  bool sharded = false;
  // The task that owns the checkpoint directory, "/job:worker/task:0", when the
  // tasks share no disk: the others send it their parts in chunks, and get them
  // back from it. Implies `sharded`.
  std::string gather_to = {};
  // V1 is what TensorFlow wrote before 2017: one file, everything in memory.
  pb::SaverDef::CheckpointFormatVersion write_version = pb::SaverDef::V2;
  // Older checkpoints are deleted; 0: none.
  int max_to_keep = 5;
  // One that old is kept for good.
  double keep_checkpoint_every_n_hours = 10000;
  // A graph without variables is fine; then nothing is saved or restored.
  bool allow_empty = false;
  // Restored tensors take the shape of the variable.
  bool reshape = false;
  // "model.ckpt-00000007".
  bool pad_step_number = false;
  // The state file names checkpoints relative to its directory.
  bool relative_paths = false;
  // For tests.
  FileSystem* files = nullptr;
  Clock* clock = nullptr;
};

struct SaveOptions {
  std::optional<int64_t> global_step = std::nullopt;
  std::string latest_filename = "checkpoint";
  std::string meta_graph_suffix = "meta";
  bool write_meta_graph = true;
  bool write_state = true;
};

// Thread-safe once built.
class Saver {
 public:
  // Builds the ops in `scope`, below "save" unless Named says otherwise. Errors
  // go to the scope.
  explicit Saver(const Scope& scope, SaverOptions options = {});
  // The one whose ops are in `graph` already (import of a meta graph).
  static absl::StatusOr<std::unique_ptr<Saver>> FromDef(
      Graph& graph, const pb::SaverDef& def);

  const pb::SaverDef& def() const { return def_; }
  // Without variables.
  bool empty() const { return empty_; }

  // Writes `<path>[-<step>]` and returns that prefix; empty if there is nothing
  // to save. The state file names the new checkpoint only when all its files
  // are there; then the oldest may be deleted.
  absl::StatusOr<std::string> Save(Session& session, const std::string& path,
                                   const SaveOptions& options = {});
  // A missing or damaged checkpoint is an error that names it.
  absl::Status Restore(Session& session, const std::string& prefix);
  // Restores the newest checkpoint of `state` that is whole, and says so if it
  // is not the newest of all; returns its prefix. The error is that of the
  // newest.
  absl::StatusOr<std::string> RestoreNewest(Session& session,
                                            const pb::CheckpointState& state);
  // What this Saver restored last; a save there would put the only good
  // checkpoint at risk for nothing.
  std::string restored() const;

  // The checkpoints kept, oldest first.
  std::vector<std::string> last_checkpoints() const;
  std::vector<KeptCheckpoint> last_checkpoints_with_time() const;
  // Goes on with those of an earlier run. Without times they are never kept for
  // good.
  void SetLastCheckpoints(const std::vector<std::string>& prefixes);
  void SetLastCheckpointsWithTime(std::vector<KeptCheckpoint> checkpoints);
  // The same with the times of their files; what is not there is left out.
  void RecoverLastCheckpoints(const std::vector<std::string>& prefixes);

 private:
  Saver(Graph& graph, const pb::SaverDef& def, const SaverOptions& options);
  absl::StatusOr<std::string> Prefix(const std::string& path,
                                     const SaveOptions& options) const;
  absl::StatusOr<Output> FileName() const;
  absl::Status Explain(const absl::Status& status,
                       const std::string& prefix) const;

  Graph& graph_;
  const SaverOptions options_;
  FileSystem& files_;
  Clock& clock_;
  pb::SaverDef def_;
  bool empty_ = false;
  std::unique_ptr<CheckpointKeeper> keeper_;
  mutable Mutex mu_;
  std::string restored_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace sluice
