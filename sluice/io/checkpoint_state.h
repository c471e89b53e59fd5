// The `checkpoint` file of a directory, which names its newest checkpoint and
// those before it, and what goes with a checkpoint's prefix.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/file.h"
#include "sluice/proto/saver.pb.h"

namespace sluice {

inline constexpr char kCheckpointStateFile[] = "checkpoint";

// What to write for a save: `newest` comes last in the list, and if `dir` is
// relative, or `relative` is asked for, paths become relative to it.
pb::CheckpointState MakeCheckpointState(const std::string& dir,
                                        const std::string& newest,
                                        const std::vector<std::string>& all,
                                        bool relative = false);

// Replaces `<dir>/<file>` in one step.
absl::Status WriteCheckpointState(
    FileSystem& files, const std::string& dir, const pb::CheckpointState& state,
    const std::string& file = kCheckpointStateFile);

// Reads it, with relative paths joined to `dir`. Nothing, and a warning, if
// there is no such file or it does not parse. A file without a path is
// INVALID_ARGUMENT.
absl::StatusOr<std::optional<pb::CheckpointState>> ReadCheckpointState(
    FileSystem& files, const std::string& dir,
    const std::string& file = kCheckpointStateFile);

// The prefix of the newest checkpoint, or nothing if none is named or its files
// are not there.
std::optional<std::string> LatestCheckpoint(
    FileSystem& files, const std::string& dir,
    const std::string& file = kCheckpointStateFile);

// Whether there is a checkpoint of that prefix (or pattern), V2 or V1.
bool CheckpointExists(FileSystem& files, const std::string& prefix);
// When it was finished, in nanoseconds since 1970.
absl::StatusOr<int64_t> CheckpointMtime(FileSystem& files,
                                        const std::string& prefix);
// Deletes its index first, then its data files and its meta graph.
absl::Status RemoveCheckpoint(FileSystem& files, const std::string& prefix);

}  // namespace sluice
