// The file system of the machine, by system calls.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "sluice/base/blocking_pool.h"
#include "sluice/base/errno_status.h"
#include "sluice/base/file.h"
#include "sluice/base/path.h"
#include "sluice/base/posix_file.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

class PosixFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> NewWritable(
      const std::string& path) override {
    return OpenForWriting(path, O_TRUNC);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> NewExclusive(
      const std::string& path) override {
    return OpenForWriting(path, O_EXCL);
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> NewAppendable(
      const std::string& path) override {
    return OpenForWriting(path, O_APPEND);
  }

  absl::StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccess(
      const std::string& path) override {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ErrnoStatus(errno, path);
    struct stat stat;
    if (fstat(fd, &stat) != 0) stat.st_size = 0;
    return NewPosixRandomAccess(path, fd, stat.st_size);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    return ErrnoStatus(errno, from);
  }

  absl::Status Link(const std::string& path,
                    const std::string& second) override {
    if (link(path.c_str(), second.c_str()) == 0) return absl::OkStatus();
    return ErrnoStatus(errno, second);
  }

  // To free a large file takes a disk tens of milliseconds. Its name goes at
  // once, and its room when who holds it open lets go.
  absl::Status Delete(const std::string& path) override {
    const int held = OpenIfLarge(path);
    const int error = unlink(path.c_str()) == 0 ? 0 : errno;
    if (held >= 0) RunBlocking([held] { close(held); });
    return error == 0 ? absl::OkStatus() : ErrnoStatus(error, path);
  }

  absl::Status DeleteRecursively(const std::string& path) override {
    std::error_code error;
    const auto removed = std::filesystem::remove_all(path, error);
    if (error) return ErrnoStatus(error.value(), path);
    return removed > 0 ? absl::OkStatus() : ErrnoStatus(ENOENT, path);
  }

  absl::StatusOr<std::vector<std::string>> List(
      const std::string& dir) override {
    DIR* const stream = opendir(dir.c_str());
    if (stream == nullptr) return ErrnoStatus(errno, dir);
    std::vector<std::string> names;
    while (const dirent* entry = readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    closedir(stream);
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::Status MkDirs(const std::string& dir) override {
    std::error_code error;
    std::filesystem::create_directories(dir, error);
    return error ? ErrnoStatus(error.value(), dir) : absl::OkStatus();
  }

  absl::StatusOr<FileStat> Stat(const std::string& path) override {
    struct stat stat;
    if (::stat(path.c_str(), &stat) != 0) return ErrnoStatus(errno, path);
    return FileStat{
        .size = stat.st_size,
        .mtime_nanos =
            int64_t{stat.st_mtim.tv_sec} * 1'000'000'000 + stat.st_mtim.tv_nsec,
        .is_dir = S_ISDIR(stat.st_mode),
    };
  }

  absl::Status SyncDir(const std::string& dir) override {
    const char* const path = dir.empty() ? "." : dir.c_str();
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return ErrnoStatus(errno, dir);
    const int error = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    // Some file systems cannot sync a directory and need not.
    if (error == 0 || error == EINVAL) return absl::OkStatus();
    return ErrnoStatus(error, dir);
  }

 private:
  // -1 if the file is not large, or none that can be opened.
  static int OpenIfLarge(const std::string& path) {
    constexpr int64_t kLarge = 4 << 20;
    struct stat stat;
    if (lstat(path.c_str(), &stat) != 0 || !S_ISREG(stat.st_mode) ||
        stat.st_size < kLarge) {
      return -1;
    }
    return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  }

  static absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWriting(
      const std::string& path, int flags) {
    const int fd =
        open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
    if (fd < 0) return ErrnoStatus(errno, path);
    return NewPosixWritable(path, fd, /*from_start=*/(flags & O_APPEND) == 0);
  }
};

}  // namespace

FileSystem& RealFileSystem() {
  static FileSystem* const files = new PosixFileSystem;
  return *files;
}

}  // namespace sluice
