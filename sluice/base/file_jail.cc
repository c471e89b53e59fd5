#include "sluice/base/file_jail.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "sluice/base/errno_status.h"
#include "sluice/base/mutex.h"
#include "sluice/base/path.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

// As many as Linux follows.
constexpr int kMaxLinks = 40;

// The target of a symbolic link; "" if `path` is none.
std::string LinkTarget(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t size = readlink(path.c_str(), target, sizeof(target));
  return size <= 0 ? "" : std::string(target, size);
}

// Where a path really leads: absolute, without links and `..`. Components that
// do not exist stay as they are, so that new files can be checked too. If
// `follow_last` is false the last one is not followed: calls that take a name
// away act on a link itself.
absl::StatusOr<std::string> Resolve(const std::string& path, bool follow_last) {
  // The system would stop reading there.
  if (path.find('\0') != std::string::npos) {
    return InvalidArgument("A path with a zero byte in it: ", path.c_str());
  }
  char cwd[PATH_MAX];
  if (!IsAbsolutePath(path) && getcwd(cwd, sizeof(cwd)) == nullptr) {
    return ErrnoStatus(errno, path);
  }
  std::string resolved;  // "" is "/".
  std::string rest = IsAbsolutePath(path) ? path : JoinPath(cwd, path);
  int links = 0;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('/'), rest.size());
    const std::string name = rest.substr(0, end);
    rest.erase(0, std::min(end + 1, rest.size()));
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      resolved.resize(resolved.empty() ? 0 : resolved.rfind('/'));
      continue;
    }
    const std::string next = StrCat(resolved, "/", name);
    const bool last = rest.find_first_not_of('/') == std::string::npos;
    const std::string target = last && !follow_last ? "" : LinkTarget(next);
    if (target.empty()) {
      resolved = next;
      continue;
    }
    if (++links > kMaxLinks) return ErrnoStatus(ELOOP, path);
    if (IsAbsolutePath(target)) resolved.clear();
    rest = rest.empty() ? target : StrCat(target, "/", rest);
  }
  return resolved.empty() ? "/" : resolved;
}

bool IsIn(const std::string& path, const std::string& root) {
  if (root == "/") return true;
  return path.starts_with(root) &&
         (path.size() == root.size() || path[root.size()] == '/');
}

// The path without links followed: what its words alone say.
std::string AsWritten(const std::string& path) {
  std::error_code unknown_cwd;
  return std::filesystem::absolute(path, unknown_cwd)
      .lexically_normal()
      .string();
}

class JailedFileSystem : public FileSystem {
 public:
  explicit JailedFileSystem(std::vector<std::string> roots)
      : roots_(std::move(roots)) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> NewWritable(
      const std::string& path) override {
    SLUICE_ASSIGN_OR_RETURN(const std::string real, Enter(path));
    return files_.NewWritable(real);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> NewExclusive(
      const std::string& path) override {
    SLUICE_ASSIGN_OR_RETURN(const std::string real, Enter(path));
    return files_.NewExclusive(real);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> NewAppendable(
      const std::string& path) override {
    SLUICE_ASSIGN_OR_RETURN(const std::string real, Enter(path));
    return files_.NewAppendable(real);
  }
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccess(
      const std::string& path) override {
    SLUICE_ASSIGN_OR_RETURN(const std::string real, Enter(path));
    return files_.NewRandomAccess(real);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    SLUICE_ASSIGN_OR_RETURN(const std::string real_from, EnterName(from));
    SLUICE_ASSIGN_OR_RETURN(const std::string real_to, EnterName(to));
    return files_.Rename(real_from, real_to);
  }
  absl::Status Link(const std::string& path,
                    const std::string& second) override {
    SLUICE_ASSIGN_OR_RETURN(const std::string real, EnterName(path));
    SLUICE_ASSIGN_OR_RETURN(const std::string real_second, EnterName(second));
    return files_.Link(real, real_second);
  }
  absl::Status Delete(const std::string& path) override {
    SLUICE_ASSIGN_OR_RETURN(const std::string real, EnterName(path));
    return files_.Delete(real);
  }
  absl::Status DeleteRecursively(const std::string& path) override {
    SLUICE_ASSIGN_OR_RETURN(const std::string real, EnterName(path));
    return files_.DeleteRecursively(real);
  }
  absl::StatusOr<std::vector<std::string>> List(
      const std::string& dir) override {
    SLUICE_ASSIGN_OR_RETURN(const std::string real, Enter(dir));
    return files_.List(real);
  }
  absl::Status MkDirs(const std::string& dir) override {
    SLUICE_ASSIGN_OR_RETURN(const std::string real, Enter(dir));
    return files_.MkDirs(real);
  }
  absl::StatusOr<FileStat> Stat(const std::string& path) override {
    SLUICE_ASSIGN_OR_RETURN(const std::string real, Enter(path));
    return files_.Stat(real);
  }
  absl::Status SyncDir(const std::string& dir) override {
    SLUICE_ASSIGN_OR_RETURN(const std::string real, Enter(dir));
    return files_.SyncDir(real);
  }

 private:
  // Where `path` leads, if that is in here.
  absl::StatusOr<std::string> Enter(const std::string& path) const {
    SLUICE_ASSIGN_OR_RETURN(const std::string real,
                            Resolve(path, /*follow_last=*/true));
    return Allowed(path, real, real);
  }
  // The same for a name that is given or taken away: the folder it stands in
  // must be in here, so that the roots themselves stay.
  absl::StatusOr<std::string> EnterName(const std::string& path) const {
    SLUICE_ASSIGN_OR_RETURN(const std::string real,
                            Resolve(path, /*follow_last=*/false));
    return Allowed(path, std::string(DirName(real)), real);
  }

  absl::StatusOr<std::string> Allowed(const std::string& path,
                                      const std::string& where,
                                      const std::string& real) const {
    if (InARoot(where)) return real;
    std::string list;
    for (const std::string& root : roots_) {
      StrAppend(&list, list.empty() ? "" : ", ", root);
    }
    // What links there are elsewhere is not for clients to know.
    const bool tell = real != path && InARoot(AsWritten(path));
    return PermissionDenied(path, tell ? StrCat(" (", real, ")") : "",
                            " is outside of what this server may touch: ", list,
                            " (--allow-files, SLUICE_ALLOW_FILES)");
  }

  bool InARoot(const std::string& path) const {
    return std::ranges::any_of(
        roots_, [&](const std::string& root) { return IsIn(path, root); });
  }

  const std::vector<std::string> roots_;
  FileSystem& files_ = RealFileSystem();
};

}  // namespace

absl::StatusOr<FileSystem*> FileJail(const std::vector<std::string>& roots) {
  std::vector<std::string> resolved;
  for (const std::string& root : roots) {
    const absl::StatusOr<FileStat> stat = RealFileSystem().Stat(root);
    if (!stat.ok()) {
      return WithMessage(stat.status(),
                         StrCat("Allowed files: ", stat.status().message()));
    }
    if (!stat->is_dir) {
      return InvalidArgument("Allowed files: ", root, " is not a folder");
    }
    SLUICE_ASSIGN_OR_RETURN(std::string real,
                            Resolve(root, /*follow_last=*/true));
    resolved.push_back(std::move(real));
  }
  struct Jails {
    Mutex mu;
    std::map<std::vector<std::string>, JailedFileSystem> by_roots
        SLUICE_GUARDED_BY(mu);
  };
  static Jails* const jails = new Jails;
  MutexLock lock(jails->mu);
  return &jails->by_roots.try_emplace(resolved, resolved).first->second;
}

absl::StatusOr<std::vector<std::string>> AllowedFilesFromEnvironment() {
  std::vector<std::string> roots;
  const char* text = std::getenv("SLUICE_ALLOW_FILES");
  if (text == nullptr) return roots;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) roots.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (roots.empty()) {
    return InvalidArgument("SLUICE_ALLOW_FILES is set and names no folder: \"",
                           text, "\"; unset it to allow all files");
  }
  return roots;
}

}  // namespace sluice
