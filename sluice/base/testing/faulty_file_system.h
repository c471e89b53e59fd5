// FaultyFileSystem: passes calls on to another file system until the fault a
// test asked for comes up.
#pragma once

#include <cerrno>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/errno_status.h"
#include "sluice/base/file.h"
#include "sluice/base/mutex.h"
#include "sluice/base/status.h"

namespace sluice {

// Thread-safe.
class FaultyFileSystem : public FileSystem {
 public:
  explicit FaultyFileSystem(FileSystem& files) : files_(files) {}

  // The disk has room for `bytes` more; then appends fail with ENOSPC.
  void FillAfter(int64_t bytes) {
    MutexLock lock(mu_);
    room_ = bytes;
  }
  // `calls` more calls that change the disk work; all later ones fail, as if
  // the process had died there.
  void StopAfter(int64_t calls) {
    MutexLock lock(mu_);
    calls_left_ = calls;
  }
  // Renames onto a path that ends so fail with EIO.
  void FailRenamesTo(std::string suffix) {
    MutexLock lock(mu_);
    bad_rename_ = std::move(suffix);
  }
  // Calls so far that change the disk.
  int64_t changes() const {
    MutexLock lock(mu_);
    return changes_;
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> NewWritable(
      const std::string& path) override {
    SLUICE_RETURN_IF_ERROR(Change(path));
    return Wrap(path, files_.NewWritable(path));
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> NewExclusive(
      const std::string& path) override {
    SLUICE_RETURN_IF_ERROR(Change(path));
    return Wrap(path, files_.NewExclusive(path));
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> NewAppendable(
      const std::string& path) override {
    SLUICE_RETURN_IF_ERROR(Change(path));
    return Wrap(path, files_.NewAppendable(path));
  }
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccess(
      const std::string& path) override {
    return files_.NewRandomAccess(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    SLUICE_RETURN_IF_ERROR(Change(from));
    {
      MutexLock lock(mu_);
      if (!bad_rename_.empty() && to.ends_with(bad_rename_)) {
        return ErrnoStatus(EIO, from);
      }
    }
    return files_.Rename(from, to);
  }
  absl::Status Link(const std::string& path,
                    const std::string& second) override {
    SLUICE_RETURN_IF_ERROR(Change(second));
    return files_.Link(path, second);
  }
  absl::Status Delete(const std::string& path) override {
    SLUICE_RETURN_IF_ERROR(Change(path));
    return files_.Delete(path);
  }
  absl::Status DeleteRecursively(const std::string& path) override {
    SLUICE_RETURN_IF_ERROR(Change(path));
    return files_.DeleteRecursively(path);
  }
  absl::StatusOr<std::vector<std::string>> List(
      const std::string& dir) override {
    return files_.List(dir);
  }
  absl::Status MkDirs(const std::string& dir) override {
    SLUICE_RETURN_IF_ERROR(Change(dir));
    return files_.MkDirs(dir);
  }
  absl::StatusOr<FileStat> Stat(const std::string& path) override {
    return files_.Stat(path);
  }
  absl::Status SyncDir(const std::string& dir) override {
    SLUICE_RETURN_IF_ERROR(Change(dir));
    return files_.SyncDir(dir);
  }

 private:
  class File : public WritableFile {
   public:
    File(FaultyFileSystem* files, std::string path,
         std::unique_ptr<WritableFile> file)
        : files_(files), path_(std::move(path)), file_(std::move(file)) {}

    absl::Status Append(std::string_view data) override {
      if (status_.ok()) status_ = files_->Append(path_, &data);
      // What still fits is written, as a real disk does.
      if (!data.empty()) file_->Append(data).IgnoreError();
      return status_;
    }
    absl::Status Flush() override {
      if (status_.ok()) status_ = file_->Flush();
      return status_;
    }
    absl::Status Sync() override {
      if (status_.ok()) status_ = files_->Change(path_);
      if (status_.ok()) status_ = file_->Sync();
      return status_;
    }
    absl::Status Close() override {
      if (status_.ok()) status_ = file_->Close();
      return status_;
    }

   private:
    FaultyFileSystem* const files_;
    const std::string path_;
    const std::unique_ptr<WritableFile> file_;
    absl::Status status_;
  };

  absl::StatusOr<std::unique_ptr<WritableFile>> Wrap(
      const std::string& path,
      absl::StatusOr<std::unique_ptr<WritableFile>> file) {
    SLUICE_RETURN_IF_ERROR(file.status());
    return std::make_unique<File>(this, path, *std::move(file));
  }

  absl::Status Change(const std::string& path) {
    MutexLock lock(mu_);
    ++changes_;
    if (calls_left_ <= 0) return ErrnoStatus(EIO, path);
    --calls_left_;
    return absl::OkStatus();
  }

  // Cuts `data` to what the disk takes.
  absl::Status Append(const std::string& path, std::string_view* data) {
    const absl::Status status = Change(path);
    if (!status.ok()) {
      *data = {};
      return status;
    }
    MutexLock lock(mu_);
    if (static_cast<int64_t>(data->size()) <= room_) {
      room_ -= static_cast<int64_t>(data->size());
      return absl::OkStatus();
    }
    *data = data->substr(0, static_cast<size_t>(std::exchange(room_, 0)));
    return ErrnoStatus(ENOSPC, path);
  }

  FileSystem& files_;
  mutable Mutex mu_;
  int64_t room_ SLUICE_GUARDED_BY(mu_) = std::numeric_limits<int64_t>::max();
  int64_t calls_left_ SLUICE_GUARDED_BY(mu_) =
      std::numeric_limits<int64_t>::max();
  std::string bad_rename_ SLUICE_GUARDED_BY(mu_);
  int64_t changes_ SLUICE_GUARDED_BY(mu_) = 0;
};

}  // namespace sluice
