#include "sluice/io/checkpoint_state.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>

#include "sluice/base/logging.h"
#include "sluice/base/path.h"
#include "sluice/base/status.h"
#include "sluice/io/bundle_format.h"

namespace sluice {
namespace {

// Keeps protobuf from logging by itself.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) {
      text_ = StrCat(line + 1, ":", column + 1, ": ", message);
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::vector<std::string> Components(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (part.empty() || part == ".") continue;
    if (part == ".." && !parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else {
      parts.emplace_back(part);
    }
  }
  return parts;
}

// `path` as seen from `dir`; both relative or both absolute.
std::string RelativePath(const std::string& path, const std::string& dir) {
  const std::vector<std::string> to = Components(path), from = Components(dir);
  const auto [a, b] =
      std::mismatch(to.begin(), to.end(), from.begin(), from.end());
  std::string relative;
  for (auto up = b; up != from.end(); ++up) relative += "../";
  for (auto part = a; part != to.end(); ++part) {
    relative += *part;
    if (part + 1 != to.end()) relative += '/';
  }
  return relative.empty() ? "." : relative;
}

// Whether it is "00000-of-00001".
bool IsShardNumber(std::string_view text) {
  constexpr std::string_view kForm = "#####-of-#####";
  if (text.size() != kForm.size()) return false;
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '#' ? !digit : text[i] != kForm[i]) return false;
  }
  return true;
}

}  // namespace

pb::CheckpointState MakeCheckpointState(const std::string& dir,
                                        const std::string& newest,
                                        const std::vector<std::string>& all,
                                        bool relative) {
  const auto stored = [&](const std::string& path) {
    const bool fits = IsAbsolutePath(path) == IsAbsolutePath(dir);
    const bool wanted = relative || !IsAbsolutePath(dir);
    return fits && wanted ? RelativePath(path, dir) : path;
  };
  pb::CheckpointState state;
  state.set_model_checkpoint_path(stored(newest));
  for (const std::string& path : all) {
    state.add_all_model_checkpoint_paths(stored(path));
  }
  if (all.empty() || all.back() != newest) {
    state.add_all_model_checkpoint_paths(stored(newest));
  }
  return state;
}

absl::Status WriteCheckpointState(FileSystem& files, const std::string& dir,
                                  const pb::CheckpointState& state,
                                  const std::string& file) {
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(state, &text)) {
    return Internal("The checkpoint state does not print");
  }
  return files.WriteFileAtomically(JoinPath(dir, file), text);
}

absl::StatusOr<std::optional<pb::CheckpointState>> ReadCheckpointState(
    FileSystem& files, const std::string& dir, const std::string& file) {
  const std::string path = JoinPath(dir, file);
  if (!files.Exists(path)) return std::nullopt;
  const absl::StatusOr<std::string> text = files.ReadFile(path);
  pb::CheckpointState state;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.AllowUnknownField(true);
  if (!text.ok() || !parser.ParseFromString(*text, &state)) {
    SLUICE_LOG(WARNING) << path << ": "
                        << (text.ok() ? error.text()
                                      : StatusText(text.status()));
    SLUICE_LOG(WARNING) << path << ": Checkpoint ignored";
    return std::nullopt;
  }
  if (state.model_checkpoint_path().empty()) {
    return InvalidArgument("Invalid checkpoint state loaded from ", dir);
  }
  state.set_model_checkpoint_path(JoinPath(dir, state.model_checkpoint_path()));
  for (std::string& old : *state.mutable_all_model_checkpoint_paths()) {
    old = JoinPath(dir, old);
  }
  return state;
}

std::optional<std::string> LatestCheckpoint(FileSystem& files,
                                            const std::string& dir,
                                            const std::string& file) {
  const absl::StatusOr<std::optional<pb::CheckpointState>> state =
      ReadCheckpointState(files, dir, file);
  if (!state.ok()) {
    SLUICE_LOG(ERROR) << state.status().message();
    return std::nullopt;
  }
  if (!state->has_value()) return std::nullopt;
  const std::string& prefix = (*state)->model_checkpoint_path();
  if (CheckpointExists(files, prefix)) return prefix;
  SLUICE_LOG(ERROR) << "Couldn't match files for checkpoint " << prefix;
  return std::nullopt;
}

bool CheckpointExists(FileSystem& files, const std::string& prefix) {
  return CheckpointMtime(files, prefix).ok();
}

absl::StatusOr<int64_t> CheckpointMtime(FileSystem& files,
                                        const std::string& prefix) {
  const absl::StatusOr<FileStat> index = files.Stat(BundleIndexName(prefix));
  if (index.ok()) return index->mtime_nanos;
  for (const std::string& pattern : {BundleIndexName(prefix), prefix}) {
    const absl::StatusOr<std::vector<std::string>> found = files.Glob(pattern);
    if (!found.ok() || found->empty()) continue;
    SLUICE_ASSIGN_OR_RETURN(const FileStat stat, files.Stat(found->front()));
    return stat.mtime_nanos;
  }
  return NotFound("There is no checkpoint ", prefix);
}

absl::Status RemoveCheckpoint(FileSystem& files, const std::string& prefix) {
  absl::Status status;
  const auto remove = [&](const std::string& path) {
    absl::Status deleted = files.Delete(path);
    if (status.ok() && !absl::IsNotFound(deleted)) status = std::move(deleted);
  };
  // The index makes it a checkpoint, so it goes first.
  remove(BundleIndexName(prefix));
  // Not by a pattern: a prefix may hold characters that stand for others.
  const std::string dir(DirName(prefix));
  const std::string start = StrCat(BaseName(prefix), ".data-");
  const absl::StatusOr<std::vector<std::string>> names =
      files.List(dir.empty() ? "." : dir);
  if (names.ok()) {
    for (const std::string& name : *names) {
      if (name.starts_with(start) && IsShardNumber(name.substr(start.size()))) {
        remove(JoinPath(dir, name));
      }
    }
  }
  remove(StrCat(prefix, ".meta"));
  return status;
}

}  // namespace sluice
