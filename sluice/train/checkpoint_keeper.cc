#include "sluice/train/checkpoint_keeper.h"

#include <algorithm>

#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/io/checkpoint_state.h"

namespace sluice {

CheckpointKeeper::CheckpointKeeper(FileSystem& files, Clock& clock,
                                   const KeepOptions& options)
    : files_(files),
      clock_(clock),
      options_(options),
      next_keep_seconds_(NowSeconds() + options.every_n_hours * 3600) {}

double CheckpointKeeper::NowSeconds() const {
  return static_cast<double>(clock_.WallMicros()) / 1e6;
}

int64_t CheckpointKeeper::TakeTurn() {
  MutexLock lock(mu_);
  return ++turns_;
}

absl::Status CheckpointKeeper::Publish(const std::string& prefix, int64_t turn,
                                       const std::string& dir,
                                       const std::string& file) {
  absl::Status deleted;
  {
    // One at a time, so that the state file lists every checkpoint.
    MutexLock lock(mu_);
    Record(prefix, turn);
    std::vector<std::string> prefixes;
    for (const KeptCheckpoint& kept : kept_) prefixes.push_back(kept.prefix);
    SLUICE_RETURN_IF_ERROR(WriteCheckpointState(
        files_, dir,
        MakeCheckpointState(dir, latest_, prefixes, options_.relative_paths),
        file));
    deleted = DeleteOld();
  }
  if (!deleted.ok()) {
    // An old file must not end the training.
    SLUICE_LOG(WARNING) << "Ignoring: " << deleted.message();
  }
  return absl::OkStatus();
}

void CheckpointKeeper::Record(const std::string& prefix, int64_t turn) {
  // A save that took longer than one that began after it holds older values.
  const bool overtaken = turn < latest_turn_;
  if (!overtaken) {
    latest_ = prefix;
    latest_turn_ = turn;
  }
  if (options_.max_to_keep <= 0) return;
  const auto same = [&](const KeptCheckpoint& k) { return k.prefix == prefix; };
  std::erase_if(kept_, same);
  // It is new again.
  std::erase_if(to_delete_, same);
  kept_.insert(overtaken && !kept_.empty() ? kept_.end() - 1 : kept_.end(),
               {prefix, NowSeconds()});
  if (kept_.size() > static_cast<size_t>(options_.max_to_keep)) {
    to_delete_.push_back(kept_.front());
    kept_.erase(kept_.begin());
  }
}

absl::Status CheckpointKeeper::DeleteOld() {
  if (to_delete_.empty()) return absl::OkStatus();
  const KeptCheckpoint old = to_delete_.front();
  to_delete_.erase(to_delete_.begin());
  if (old.seconds > next_keep_seconds_) {
    // Kept for good.
    next_keep_seconds_ += options_.every_n_hours * 3600;
    return absl::OkStatus();
  }
  return RemoveCheckpoint(files_, old.prefix);
}

std::vector<KeptCheckpoint> CheckpointKeeper::kept() const {
  MutexLock lock(mu_);
  return kept_;
}

void CheckpointKeeper::Set(std::vector<KeptCheckpoint> kept) {
  MutexLock lock(mu_);
  kept_ = std::move(kept);
}

void CheckpointKeeper::Recover(const std::vector<std::string>& prefixes) {
  std::vector<KeptCheckpoint> found;
  for (const std::string& prefix : prefixes) {
    const absl::StatusOr<int64_t> nanos = CheckpointMtime(files_, prefix);
    if (nanos.ok()) {
      found.push_back({prefix, static_cast<double>(*nanos) / 1e9});
    }
  }
  Set(std::move(found));
}

}  // namespace sluice
