// FileSystem: where the engine keeps files. Everything that touches a disk goes
// through one, so that tests can fill it, break it and cut its power.
//
// Errors carry the code of the system's error and name the path:
// NOT_FOUND "<path>; No such file or directory".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice {

// A file being written. Small appends are gathered, large ones go straight
// through. After an error every later call fails with it too, so that Close
// alone tells whether all went well. Thread-compatible.
class WritableFile {
 public:
  // Closes. An error that comes up only now is lost.
  virtual ~WritableFile() = default;
  virtual absl::Status Append(std::string_view data) = 0;
  // Hands what was gathered to the system, where other readers see it.
  virtual absl::Status Flush() = 0;
  // Flushes, and returns when the bytes would survive a power cut.
  virtual absl::Status Sync() = 0;
  // Flushes and closes. Nothing but destruction may follow.
  virtual absl::Status Close() = 0;
};

// A file being read. Thread-safe.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  // When it was opened; a file may grow under its reader.
  virtual int64_t size() const = 0;
  // Reads up to `n` bytes into `scratch` and returns how many there were: fewer
  // than `n` only at the end of the file.
  virtual absl::StatusOr<size_t> Read(uint64_t offset, size_t n,
                                      char* scratch) const = 0;
};

struct FileStat {
  int64_t size = 0;
  int64_t mtime_nanos = 0;  // Since 1970.
  bool is_dir = false;
};

// Thread-safe. All calls block.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Makes the file, or empties it.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> NewWritable(
      const std::string& path) = 0;
  // Makes the file; ALREADY_EXISTS if it is there, also when another process is
  // first.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> NewExclusive(
      const std::string& path) = 0;
  // Makes the file, or goes on at its end.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> NewAppendable(
      const std::string& path) = 0;
  virtual absl::StatusOr<std::unique_ptr<RandomAccessFile>> NewRandomAccess(
      const std::string& path) = 0;
  // Puts `from` in the place of `to`, which may exist, in one step.
  virtual absl::Status Rename(const std::string& from,
                              const std::string& to) = 0;
  // Gives a file a second name, which must not exist. UNIMPLEMENTED or
  // PERMISSION_DENIED where file systems cannot do that.
  virtual absl::Status Link(const std::string& path,
                            const std::string& second) = 0;
  virtual absl::Status Delete(const std::string& path) = 0;
  // Takes a file, or a directory and all in it. Does not follow links.
  virtual absl::Status DeleteRecursively(const std::string& path) = 0;
  // The names in a directory, sorted.
  virtual absl::StatusOr<std::vector<std::string>> List(
      const std::string& dir) = 0;
  // Makes a directory and those above it; fine if it is there.
  virtual absl::Status MkDirs(const std::string& dir) = 0;
  virtual absl::StatusOr<FileStat> Stat(const std::string& path) = 0;
  // Returns when the names in `dir` ("" is the working directory) would
  // survive a power cut.
  virtual absl::Status SyncDir(const std::string& dir) = 0;

  bool Exists(const std::string& path) { return Stat(path).ok(); }
  absl::StatusOr<std::string> ReadFile(const std::string& path);
  absl::Status WriteFile(const std::string& path, std::string_view contents);
  // A reader, or a machine that loses power, sees the old file or the new one.
  absl::Status WriteFileAtomically(const std::string& path,
                                   std::string_view contents);
  // The paths that match, sorted. `*`, `?` and `[a-z]` stand for what they do
  // in a shell, but `*` takes a leading dot too. It is an error if the
  // directory before the first such component does not exist.
  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern);
};

// The machine's files; lives for ever.
FileSystem& RealFileSystem();

// Reads `n` bytes; a file that ends before is OUT_OF_RANGE.
absl::Status ReadExactly(const RandomAccessFile& file, uint64_t offset,
                         size_t n, char* scratch);

}  // namespace sluice
