// The file system of the machine, by system calls.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "sluice/base/errno_status.h"
#include "sluice/base/file.h"
#include "sluice/base/path.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

constexpr size_t kGather = 64 << 10;
// Linux moves at most 2 GiB less a page in one call.
constexpr size_t kLargestTransfer = size_t{1} << 30;
// The disk is set to work on each such part as soon as it is written, so that
// Sync finds little left to do.
constexpr int64_t kWritebackPart = 8 << 20;

class PosixWritableFile : public WritableFile {
 public:
  PosixWritableFile(std::string path, int fd)
      : path_(std::move(path)), fd_(fd) {}
  ~PosixWritableFile() override { Close().IgnoreError(); }

  absl::Status Append(std::string_view data) override {
    if (gathered_.size() + data.size() <= kGather) {
      gathered_.append(data);
      return status_;
    }
    SLUICE_RETURN_IF_ERROR(Flush());
    if (data.size() >= kGather) return Write(data);
    gathered_.append(data);
    return status_;
  }

  absl::Status Flush() override {
    const absl::Status status = Write(gathered_);
    gathered_.clear();
    return status;
  }

  absl::Status Sync() override {
    SLUICE_RETURN_IF_ERROR(Flush());
    if (fdatasync(fd_) != 0) status_ = ErrnoStatus(errno, path_);
    return status_;
  }

  absl::Status Close() override {
    if (fd_ < 0) return status_;
    Flush().IgnoreError();  // It stays in status_.
    if (close(fd_) != 0 && status_.ok()) status_ = ErrnoStatus(errno, path_);
    fd_ = -1;
    return status_;
  }

 private:
  absl::Status Write(std::string_view data) {
    if (fd_ < 0 && status_.ok()) {
      status_ = FailedPrecondition(path_, "; the file is closed");
    }
    while (status_.ok() && !data.empty()) {
      const ssize_t n =
          write(fd_, data.data(), std::min(data.size(), kLargestTransfer));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        status_ = ErrnoStatus(errno, path_);
        break;
      }
      data.remove_prefix(n);
      written_ += n;
    }
    if (status_.ok() && written_ - started_ >= kWritebackPart) {
      // Only a hint; Sync is what counts.
      (void)sync_file_range(fd_, started_, written_ - started_,
                            SYNC_FILE_RANGE_WRITE);
      started_ = written_;
    }
    return status_;
  }

  const std::string path_;
  int fd_;
  std::string gathered_;
  absl::Status status_;
  int64_t written_ = 0;
  int64_t started_ = 0;  // Up to here the disk has been set to work.
};

class PosixRandomAccessFile : public RandomAccessFile {
 public:
  PosixRandomAccessFile(std::string path, int fd, int64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}
  ~PosixRandomAccessFile() override { close(fd_); }

  int64_t size() const override { return size_; }

  absl::StatusOr<size_t> Read(uint64_t offset, size_t n,
                              char* scratch) const override {
    size_t done = 0;
    while (done < n) {
      const ssize_t got =
          pread(fd_, scratch + done, std::min(n - done, kLargestTransfer),
                static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus(errno, path_);
      if (got == 0) break;
      done += got;
    }
    return done;
  }

 private:
  const std::string path_;
  const int fd_;
  const int64_t size_;
};

class PosixFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> NewWritable(
      const std::string& path) override {
    return OpenForWriting(path, O_TRUNC);
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
    return std::make_unique<PosixRandomAccessFile>(path, fd, stat.st_size);
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

  absl::Status Delete(const std::string& path) override {
    if (unlink(path.c_str()) == 0) return absl::OkStatus();
    return ErrnoStatus(errno, path);
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
  static absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWriting(
      const std::string& path, int flags) {
    const int fd =
        open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
    if (fd < 0) return ErrnoStatus(errno, path);
    return std::make_unique<PosixWritableFile>(path, fd);
  }
};

}  // namespace

FileSystem& RealFileSystem() {
  static FileSystem* const files = new PosixFileSystem;
  return *files;
}

}  // namespace sluice
