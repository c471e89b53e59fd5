// Saver: writes variables to checkpoints and reads them back. Building one adds
// its ops to the graph; Save and Restore run them, so that each task writes the
// variables it holds. Names and files are TensorFlow's (V2).
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
#include "sluice/base/mutex.h"
#include "sluice/client/variable.h"
#include "sluice/proto/saver.pb.h"
#include "sluice/session/session.h"

namespace sluice {

struct SaverOptions {
  // Empty: all global variables.
  std::vector<Variable> variables = {};
  // In place of `variables`: by the name in the checkpoint.
  std::map<std::string, Variable> named = {};
  // Every device writes a file of its own.
  bool sharded = false;
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
  bool write_meta_graph = true;
  bool write_state = true;
};

// Thread-compatible.
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

  // The checkpoints kept, oldest first.
  std::vector<std::string> last_checkpoints() const;
  // Goes on with those of an earlier run; what is not there is left out.
  void RecoverLastCheckpoints(const std::vector<std::string>& prefixes);

 private:
  struct Kept {
    std::string prefix;
    double seconds = 0;  // When it was saved.
  };
  Saver(Graph& graph, const pb::SaverDef& def, const SaverOptions& options);
  // `turn` counts the saves as they began.
  void Record(const std::string& prefix, int64_t turn) SLUICE_REQUIRES(mu_);
  absl::Status DeleteOld() SLUICE_REQUIRES(mu_);
  std::vector<std::string> KeptPrefixes() const SLUICE_REQUIRES(mu_);
  double NowSeconds() const;
  absl::StatusOr<Output> FileName() const;
  absl::Status Publish(const std::string& prefix, const std::string& dir,
                       int64_t turn, const SaveOptions& options);

  Graph& graph_;
  const SaverOptions options_;
  FileSystem& files_;
  Clock& clock_;
  pb::SaverDef def_;
  bool empty_ = false;
  // A program may save while a supervisor's thread does.
  mutable Mutex mu_;
  double next_keep_seconds_ SLUICE_GUARDED_BY(mu_) = 0;
  std::vector<Kept> kept_ SLUICE_GUARDED_BY(mu_);
  std::vector<Kept> to_delete_ SLUICE_GUARDED_BY(mu_);
  int64_t turns_ SLUICE_GUARDED_BY(mu_) = 0;
  // The latest checkpoint, and when its save had its turn.
  std::string latest_ SLUICE_GUARDED_BY(mu_);
  int64_t latest_turn_ SLUICE_GUARDED_BY(mu_) = 0;
};

}  // namespace sluice
