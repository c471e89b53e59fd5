// MemoryFileSystem: files that live in this object, for simulated clusters and
// tests. It also knows what a disk would still hold after a power cut.
#pragma once

#include <map>

#include "sluice/base/file.h"
#include "sluice/base/mutex.h"

namespace sluice {

// Paths are taken as they are but for empty and "." components; "", "." and "/"
// exist from the start. Thread-safe.
class MemoryFileSystem : public FileSystem {
 public:
  MemoryFileSystem();
  ~MemoryFileSystem() override;

  absl::StatusOr<std::unique_ptr<WritableFile>> NewWritable(
      const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> NewExclusive(
      const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> NewAppendable(
      const std::string& path) override;
  absl::StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccess(
      const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Link(const std::string& path,
                    const std::string& second) override;
  absl::Status Delete(const std::string& path) override;
  absl::Status DeleteRecursively(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(
      const std::string& dir) override;
  absl::Status MkDirs(const std::string& dir) override;
  absl::StatusOr<FileStat> Stat(const std::string& path) override;
  absl::Status SyncDir(const std::string& dir) override;

  // What a power cut leaves of what was not synced: bytes by
  // WritableFile::Sync, names by SyncDir. A disk promises nothing, so a writer
  // must live with all of these. Directories are never lost.
  enum class PowerCut {
    kLosesAll,
    kKeepsNames,  // But not the bytes in the files.
    kKeepsBytes,  // But not the names of the files.
    kTearsBytes,  // Names stay, and half of the bytes of each file.
  };
  void CutPower(PowerCut what = PowerCut::kLosesAll);

 private:
  friend class MemoryWritableFile;
  friend class MemoryRandomAccessFile;
  struct Node;
  using Names = std::map<std::string, std::shared_ptr<Node>>;

  absl::StatusOr<std::shared_ptr<Node>> FindFile(const std::string& path)
      SLUICE_REQUIRES(mu_);
  enum class How { kEmpty, kNew, kAppend };
  absl::StatusOr<std::unique_ptr<WritableFile>> Open(const std::string& path,
                                                     How how);

  mutable Mutex mu_;
  Names names_ SLUICE_GUARDED_BY(mu_);
  Names durable_ SLUICE_GUARDED_BY(mu_);
  int64_t ticks_ SLUICE_GUARDED_BY(mu_) = 0;  // Serves as the time of day.
};

}  // namespace sluice
