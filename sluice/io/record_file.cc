#include "sluice/io/record_file.h"

#include <algorithm>

#include "sluice/base/coding.h"
#include "sluice/base/crc32c.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

constexpr size_t kHeader = 12;  // Length and its checksum.
constexpr size_t kFooter = 4;
// A length is believed only as far as the bytes are there.
constexpr size_t kFirstPart = 1 << 20;

// Reads `n` bytes into `out`, which grows with what is there. Fewer at the end.
absl::StatusOr<size_t> ReadGrowing(ByteStream& stream, uint64_t n,
                                   std::string* out) {
  out->clear();
  while (out->size() < n) {
    const size_t have = out->size();
    const size_t part = static_cast<size_t>(
        std::min<uint64_t>(n - have, std::max(kFirstPart, have)));
    out->resize(have + part);
    SLUICE_ASSIGN_OR_RETURN(const size_t got,
                            stream.Read(part, out->data() + have));
    out->resize(have + got);
    if (got < part) break;
  }
  return out->size();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::Open(
    FileSystem& files, const std::string& path, Compression compression) {
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                          files.NewWritable(path));
  if (compression != Compression::kNone) {
    file = NewDeflatingFile(std::move(file), compression);
  }
  return std::make_unique<RecordWriter>(std::move(file));
}

absl::Status RecordWriter::Write(std::string_view record) {
  std::string header;
  AppendFixed64(record.size(), &header);
  AppendFixed32(MaskCrc(Crc32c(header)), &header);
  std::string footer;
  AppendFixed32(MaskCrc(Crc32c(record)), &footer);
  SLUICE_RETURN_IF_ERROR(file_->Append(header));
  SLUICE_RETURN_IF_ERROR(file_->Append(record));
  return file_->Append(footer);
}

absl::StatusOr<std::unique_ptr<RecordReader>> RecordReader::Open(
    FileSystem& files, const std::string& path, Compression compression) {
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file,
                          files.NewRandomAccess(path));
  return std::make_unique<RecordReader>(std::move(file), compression);
}

RecordReader::RecordReader(std::unique_ptr<RandomAccessFile> file,
                           Compression compression)
    : file_(std::move(file)),
      compression_(compression),
      stream_(NewByteStream(file_, compression)) {}

absl::Status RecordReader::Seek(uint64_t offset) {
  if (compression_ != Compression::kNone) {
    return Unimplemented("Cannot seek in a compressed record file");
  }
  stream_ = NewByteStream(file_, compression_, offset);
  offset_ = offset;
  return absl::OkStatus();
}

absl::StatusOr<bool> RecordReader::Read(std::string* record) {
  absl::StatusOr<bool> found = ReadHere(record);
  // Also after the end: a plain file may grow.
  if (!(found.ok() && *found) && compression_ == Compression::kNone) {
    SLUICE_RETURN_IF_ERROR(Seek(offset_));
  }
  return found;
}

absl::StatusOr<bool> RecordReader::ReadHere(std::string* record) {
  char header[kHeader];
  SLUICE_ASSIGN_OR_RETURN(size_t got, stream_->Read(kHeader, header));
  if (got == 0) return false;
  if (got < kHeader) return DataLoss("truncated record at ", offset_);
  if (verify_ && UnmaskCrc(LoadFixed32(header + 8)) !=
                     Crc32c(std::string_view(header, 8))) {
    return DataLoss("corrupted record at ", offset_);
  }
  const uint64_t length = LoadFixed64(header);
  SLUICE_ASSIGN_OR_RETURN(got, ReadGrowing(*stream_, length, record));
  if (got < length) return DataLoss("truncated record at ", offset_);
  char footer[kFooter];
  SLUICE_ASSIGN_OR_RETURN(got, stream_->Read(kFooter, footer));
  if (got < kFooter) return DataLoss("truncated record at ", offset_);
  if (verify_ && UnmaskCrc(LoadFixed32(footer)) != Crc32c(*record)) {
    return DataLoss("corrupted record at ", offset_);
  }
  offset_ += kHeader + length + kFooter;
  return true;
}

}  // namespace sluice
