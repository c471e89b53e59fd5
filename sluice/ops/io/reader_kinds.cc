#include "sluice/ops/io/reader_kinds.h"

#include <algorithm>
#include <utility>

#include "sluice/base/status.h"

namespace sluice {
namespace {

// How much is asked of a file at once.
constexpr size_t kReadBytes = 256 << 10;

absl::StatusOr<std::unique_ptr<ByteStream>> OpenStream(FileSystem& files,
                                                       const std::string& path,
                                                       Compression packing) {
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<const RandomAccessFile> file,
                          files.NewRandomAccess(path));
  return NewByteStream(std::move(file), packing);
}

}  // namespace

absl::Status IdentityReader::Open(FileSystem&, const std::string&) {
  given_ = false;
  return absl::OkStatus();
}

absl::StatusOr<bool> IdentityReader::Next(const std::string& path,
                                          Record* record) {
  if (given_) return false;
  given_ = true;
  *record = {path, path};
  return true;
}

absl::Status WholeFileReader::Open(FileSystem& files, const std::string&) {
  files_ = &files;
  return absl::OkStatus();
}

absl::StatusOr<bool> WholeFileReader::Next(const std::string& path,
                                           Record* record) {
  if (files_ == nullptr) return false;
  SLUICE_ASSIGN_OR_RETURN(record->value, files_->ReadFile(path));
  record->key = path;
  files_ = nullptr;
  return true;
}

void ByteWindow::Start(std::unique_ptr<ByteStream> stream) {
  stream_ = std::move(stream);
  buffer_.clear();
  begin_ = 0;
}

absl::StatusOr<bool> ByteWindow::Fill(size_t n) {
  while (bytes().size() < n) {
    buffer_.erase(0, begin_);
    begin_ = 0;
    const size_t before = buffer_.size();
    // Not all of a large `n` at once: the file may be shorter than it says.
    buffer_.resize(before + kReadBytes);
    absl::StatusOr<size_t> got =
        stream_->Read(kReadBytes, buffer_.data() + before);
    buffer_.resize(before + (got.ok() ? *got : 0));
    if (!got.ok()) return got.status();
    if (*got == 0) return false;
  }
  return true;
}

absl::Status TextLineReader::Open(FileSystem& files, const std::string& path) {
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream,
                          OpenStream(files, path, Compression::kNone));
  window_.Start(std::move(stream));
  std::string header;
  for (line_ = 0; line_ < skip_; ++line_) {
    SLUICE_ASSIGN_OR_RETURN(const bool found, ReadLine(&header));
    if (!found) break;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> TextLineReader::ReadLine(std::string* line) {
  size_t searched = 0;
  size_t end;
  while ((end = window_.bytes().find('\n', searched)) ==
         std::string_view::npos) {
    searched = window_.bytes().size();
    SLUICE_ASSIGN_OR_RETURN(const bool more, window_.Fill(searched + 1));
    if (more) continue;
    if (window_.bytes().empty()) return false;
    end = searched;  // The last line has no end.
    break;
  }
  line->assign(window_.bytes().substr(0, end));
  window_.Skip(std::min(end + 1, window_.bytes().size()));
  if (line->ends_with('\r')) line->pop_back();
  return true;
}

absl::StatusOr<bool> TextLineReader::Next(const std::string& path,
                                          Record* record) {
  SLUICE_ASSIGN_OR_RETURN(const bool found, ReadLine(&record->value));
  if (found) record->key = StrCat(path, ":", ++line_);
  return found;
}

absl::Status FixedLengthRecordReader::Open(FileSystem& files,
                                           const std::string& path) {
  number_ = 0;
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stream,
                          OpenStream(files, path, layout_.packing));
  window_.Start(std::move(stream));
  return SkipBytes(layout_.header).status();
}

absl::StatusOr<bool> FixedLengthRecordReader::SkipBytes(int64_t n) {
  while (n > 0) {
    const size_t part = std::min<size_t>(n, kReadBytes);
    SLUICE_ASSIGN_OR_RETURN(const bool there, window_.Fill(part));
    window_.Skip(std::min(part, window_.bytes().size()));
    if (!there) return false;
    n -= static_cast<int64_t>(part);
  }
  return true;
}

absl::StatusOr<bool> FixedLengthRecordReader::Next(const std::string& path,
                                                   Record* record) {
  if (number_ > 0) {
    const int64_t hop = layout_.hop > 0 ? layout_.hop : layout_.record;
    SLUICE_ASSIGN_OR_RETURN(const bool there, SkipBytes(hop));
    if (!there) return false;
  }
  SLUICE_ASSIGN_OR_RETURN(const bool there,
                          window_.Fill(static_cast<size_t>(layout_.record) +
                                       static_cast<size_t>(layout_.footer)));
  if (!there) return false;
  record->value.assign(window_.bytes().substr(0, layout_.record));
  record->key = StrCat(path, ":", number_++);
  return true;
}

absl::Status TfRecordReader::Open(FileSystem& files, const std::string& path) {
  SLUICE_ASSIGN_OR_RETURN(file_, RecordReader::Open(files, path, packing_));
  return absl::OkStatus();
}

absl::StatusOr<bool> TfRecordReader::Next(const std::string& path,
                                          Record* record) {
  const uint64_t offset = file_->offset();
  SLUICE_ASSIGN_OR_RETURN(const bool found, file_->Read(&record->value));
  if (found) record->key = StrCat(path, ":", offset);
  return found;
}

}  // namespace sluice
