// Record files (TFRecord): byte strings one after the other, each with its
// length and checksums. docs/formats/events.md has the layout.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/base/file.h"
#include "sluice/io/byte_stream.h"

namespace sluice {

// Thread-compatible.
class RecordWriter {
 public:
  // Makes the file, or empties it.
  static absl::StatusOr<std::unique_ptr<RecordWriter>> Open(
      FileSystem& files, const std::string& path,
      Compression compression = Compression::kNone);
  explicit RecordWriter(std::unique_ptr<WritableFile> file)
      : file_(std::move(file)) {}

  absl::Status Write(std::string_view record);
  absl::Status Flush() { return file_->Flush(); }
  absl::Status Sync() { return file_->Sync(); }
  absl::Status Close() { return file_->Close(); }

 private:
  const std::unique_ptr<WritableFile> file_;
};

// Thread-compatible.
class RecordReader {
 public:
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(
      FileSystem& files, const std::string& path,
      Compression compression = Compression::kNone);
  RecordReader(std::unique_ptr<RandomAccessFile> file, Compression compression);

  // The next record; false at the end of the file. DATA_LOSS "corrupted record
  // at <offset>" or "truncated record at <offset>" otherwise; then the place
  // stays, so that what a writer adds to a plain file later can be read.
  absl::StatusOr<bool> Read(std::string* record);

  // Where the next record starts, counted in unpacked bytes.
  uint64_t offset() const { return offset_; }
  // Only for plain files.
  absl::Status Seek(uint64_t offset);

  void set_verify_checksums(bool verify) { verify_ = verify; }

 private:
  absl::StatusOr<bool> ReadHere(std::string* record);

  const std::shared_ptr<const RandomAccessFile> file_;
  const Compression compression_;
  std::unique_ptr<ByteStream> stream_;
  uint64_t offset_ = 0;
  bool verify_ = true;
};

}  // namespace sluice
