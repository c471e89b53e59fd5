// CheckpointKeeper: which checkpoints of a directory stay. It writes the state
// file that names them and deletes the others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "sluice/base/clock.h"
#include "sluice/base/file.h"
#include "sluice/base/mutex.h"

namespace sluice {

struct KeepOptions {
  // Older checkpoints are deleted; 0: none.
  int max_to_keep = 5;
  // One that old is kept for good.
  double every_n_hours = 10000;
  // The state file names checkpoints relative to its directory.
  bool relative_paths = false;
};

struct KeptCheckpoint {
  std::string prefix;
  double seconds = 0;  // When it was saved, since 1970.
};

// Thread-safe: a program may save while a supervisor's thread does.
class CheckpointKeeper {
 public:
  CheckpointKeeper(FileSystem& files, Clock& clock, const KeepOptions& options);

  // A save that begins takes its turn. The one that began last is the latest,
  // whichever ends first.
  int64_t TakeTurn();
  // The checkpoint `prefix` is complete: makes the state file `<dir>/<file>`
  // name it, then deletes the oldest if there are too many. Once this is OK,
  // the checkpoint is found after any crash.
  absl::Status Publish(const std::string& prefix, int64_t turn,
                       const std::string& dir, const std::string& file);

  // Oldest first.
  std::vector<KeptCheckpoint> kept() const;
  // Goes on with those of an earlier run.
  void Set(std::vector<KeptCheckpoint> kept);
  // The same by the times of their files; what is not there is left out.
  void Recover(const std::vector<std::string>& prefixes);

 private:
  void Record(const std::string& prefix, int64_t turn) SLUICE_REQUIRES(mu_);
  absl::Status DeleteOld() SLUICE_REQUIRES(mu_);
  double NowSeconds() const;

  FileSystem& files_;
  Clock& clock_;
  const KeepOptions options_;

  mutable Mutex mu_;
  double next_keep_seconds_ SLUICE_GUARDED_BY(mu_);
  std::vector<KeptCheckpoint> kept_ SLUICE_GUARDED_BY(mu_);
  std::vector<KeptCheckpoint> to_delete_ SLUICE_GUARDED_BY(mu_);
  int64_t turns_ SLUICE_GUARDED_BY(mu_) = 0;
  // The latest checkpoint, and when its save had its turn.
  std::string latest_ SLUICE_GUARDED_BY(mu_);
  int64_t latest_turn_ SLUICE_GUARDED_BY(mu_) = 0;
};

}  // namespace sluice
