#include "sluice/base/file.h"

#include <fnmatch.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "sluice/base/path.h"
#include "sluice/base/random.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

bool HasWildcard(std::string_view text) {
  return text.find_first_of("*?[\\") != std::string_view::npos;
}

// Takes the first component off `rest`, with the slashes behind it.
std::string_view TakeComponent(std::string_view* rest) {
  const size_t end = std::min(rest->find('/'), rest->size());
  const std::string_view component = rest->substr(0, end);
  const size_t next = rest->find_first_not_of('/', end);
  *rest = next == std::string_view::npos ? "" : rest->substr(next);
  return component;
}

// Adds to `found` what matches `pattern` under `dir`.
absl::Status GlobUnder(FileSystem& files, const std::string& dir,
                       std::string_view pattern,
                       std::vector<std::string>* found) {
  if (pattern.empty()) {
    if (files.Exists(dir)) found->push_back(dir);
    return absl::OkStatus();
  }
  std::string_view rest = pattern;
  const std::string component(TakeComponent(&rest));
  if (!HasWildcard(component)) {
    return GlobUnder(files, JoinPath(dir, component), rest, found);
  }
  SLUICE_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          files.List(dir.empty() ? "." : dir));
  for (const std::string& name : names) {
    if (fnmatch(component.c_str(), name.c_str(), 0) != 0) continue;
    const std::string path = JoinPath(dir, name);
    if (!rest.empty()) {
      const absl::StatusOr<FileStat> stat = files.Stat(path);
      if (!stat.ok() || !stat->is_dir) continue;
    }
    SLUICE_RETURN_IF_ERROR(GlobUnder(files, path, rest, found));
  }
  return absl::OkStatus();
}

absl::Status WriteAndSync(FileSystem& files, const std::string& path,
                          std::string_view contents) {
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                          files.NewWritable(path));
  SLUICE_RETURN_IF_ERROR(file->Append(contents));
  SLUICE_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace

absl::StatusOr<std::string> FileSystem::ReadFile(const std::string& path) {
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file,
                          NewRandomAccess(path));
  // Files of /proc say size 0, and a file may grow: read until there is no
  // more.
  std::string contents(file->size() + 1, '\0');
  size_t filled = 0;
  while (true) {
    SLUICE_ASSIGN_OR_RETURN(
        const size_t n,
        file->Read(filled, contents.size() - filled, contents.data() + filled));
    filled += n;
    if (filled < contents.size()) break;
    contents.resize(contents.size() * 2);
  }
  contents.resize(filled);
  return contents;
}

absl::Status FileSystem::WriteFile(const std::string& path,
                                   std::string_view contents) {
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                          NewWritable(path));
  SLUICE_RETURN_IF_ERROR(file->Append(contents));
  return file->Close();
}

absl::Status FileSystem::WriteFileAtomically(const std::string& path,
                                             std::string_view contents) {
  const std::string temporary =
      absl::StrFormat("%s.tmp%016x", path, RandomId());
  absl::Status status = WriteAndSync(*this, temporary, contents);
  if (status.ok()) status = Rename(temporary, path);
  if (!status.ok()) {
    Delete(temporary).IgnoreError();  // The first error says more.
    return status;
  }
  return SyncDir(std::string(DirName(path)));
}

absl::StatusOr<std::vector<std::string>> FileSystem::Glob(
    const std::string& pattern) {
  std::vector<std::string> found;
  if (!HasWildcard(pattern)) {
    const absl::StatusOr<FileStat> stat = Stat(pattern);
    if (absl::IsPermissionDenied(stat.status())) return stat.status();
    if (stat.ok()) found.push_back(pattern);
    return found;
  }
  const bool absolute = IsAbsolutePath(pattern);
  std::string_view rest = pattern;
  if (absolute) {
    rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
  }
  SLUICE_RETURN_IF_ERROR(GlobUnder(*this, absolute ? "/" : "", rest, &found));
  std::sort(found.begin(), found.end());
  return found;
}

absl::Status ReadExactly(const RandomAccessFile& file, uint64_t offset,
                         size_t n, char* scratch) {
  SLUICE_ASSIGN_OR_RETURN(const size_t got, file.Read(offset, n, scratch));
  if (got == n) return absl::OkStatus();
  return OutOfRange("Read ", got, " bytes at offset ", offset, " where ", n,
                    " were expected: the file ends early");
}

}  // namespace sluice
