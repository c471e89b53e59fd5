#include "sluice/io/byte_stream.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "sluice/base/status.h"

namespace sluice {
namespace {

constexpr size_t kReadAhead = 256 << 10;

int WindowBits(Compression compression) {
  // zlib's own convention: 16 more asks for gzip's header.
  return compression == Compression::kGzip ? MAX_WBITS + 16 : MAX_WBITS;
}

class FileByteStream : public ByteStream {
 public:
  FileByteStream(std::shared_ptr<const RandomAccessFile> file, uint64_t offset)
      : file_(std::move(file)), offset_(offset) {}

  absl::StatusOr<size_t> Read(size_t n, char* out) override {
    size_t done = 0;
    while (done < n) {
      if (begin_ == end_) {
        if (n - done >= kReadAhead) {
          SLUICE_ASSIGN_OR_RETURN(const size_t got,
                                  file_->Read(offset_, n - done, out + done));
          offset_ += got;
          return done + got;
        }
        buffer_.resize(kReadAhead);
        begin_ = end_ = 0;
        SLUICE_ASSIGN_OR_RETURN(
            end_, file_->Read(offset_, kReadAhead, buffer_.data()));
        offset_ += end_;
        if (end_ == 0) break;
      }
      const size_t part = std::min(n - done, end_ - begin_);
      std::memcpy(out + done, buffer_.data() + begin_, part);
      begin_ += part;
      done += part;
    }
    return done;
  }

 private:
  const std::shared_ptr<const RandomAccessFile> file_;
  uint64_t offset_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

class InflatingByteStream : public ByteStream {
 public:
  InflatingByteStream(std::unique_ptr<ByteStream> source,
                      Compression compression)
      : source_(std::move(source)), input_(kReadAhead) {
    ready_ = inflateInit2(&zlib_, WindowBits(compression)) == Z_OK;
  }
  ~InflatingByteStream() override {
    if (ready_) inflateEnd(&zlib_);
  }

  absl::StatusOr<size_t> Read(size_t n, char* out) override {
    if (!ready_) return Internal("zlib could not start");
    size_t done = 0;
    while (done < n && !ended_) {
      if (zlib_.avail_in == 0) SLUICE_RETURN_IF_ERROR(Refill());
      if (ended_) break;
      const uInt room = static_cast<uInt>(
          std::min<size_t>(n - done, std::numeric_limits<uInt>::max()));
      zlib_.next_out = reinterpret_cast<Bytef*>(out + done);
      zlib_.avail_out = room;
      const int result = inflate(&zlib_, Z_NO_FLUSH);
      done += room - zlib_.avail_out;
      if (result == Z_STREAM_END) {
        // Another member may follow, as with gzip files put end to end.
        between_members_ = true;
        if (inflateReset(&zlib_) != Z_OK) return Internal("zlib reset failed");
      } else if (result == Z_OK) {
        between_members_ = false;
      } else if (result != Z_BUF_ERROR) {
        return DataLoss("inflate() failed with error ", result, ": ",
                        zlib_.msg == nullptr ? "" : zlib_.msg);
      }
    }
    return done;
  }

 private:
  absl::Status Refill() {
    SLUICE_ASSIGN_OR_RETURN(const size_t got,
                            source_->Read(input_.size(), input_.data()));
    if (got == 0) {
      if (!between_members_) {
        return DataLoss("The compressed stream ends early");
      }
      ended_ = true;
    }
    zlib_.next_in = reinterpret_cast<Bytef*>(input_.data());
    zlib_.avail_in = static_cast<uInt>(got);
    return absl::OkStatus();
  }

  const std::unique_ptr<ByteStream> source_;
  std::vector<char> input_;
  z_stream zlib_{};
  bool ready_ = false;
  bool between_members_ = true;
  bool ended_ = false;
};

class DeflatingFile : public WritableFile {
 public:
  DeflatingFile(std::unique_ptr<WritableFile> file, Compression compression)
      : file_(std::move(file)), output_(kReadAhead) {
    const int result =
        deflateInit2(&zlib_, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                     WindowBits(compression), 8, Z_DEFAULT_STRATEGY);
    ready_ = result == Z_OK;
    if (!ready_) status_ = Internal("zlib could not start");
  }
  ~DeflatingFile() override { Close().IgnoreError(); }

  absl::Status Append(std::string_view data) override {
    while (!data.empty() && status_.ok()) {
      const std::string_view part = data.substr(0, 1u << 30);
      Deflate(part, Z_NO_FLUSH);
      data.remove_prefix(part.size());
    }
    return status_;
  }
  absl::Status Flush() override {
    Deflate({}, Z_SYNC_FLUSH);
    if (status_.ok()) status_ = file_->Flush();
    return status_;
  }
  absl::Status Sync() override {
    Deflate({}, Z_SYNC_FLUSH);
    if (status_.ok()) status_ = file_->Sync();
    return status_;
  }
  absl::Status Close() override {
    if (!ready_) return status_;
    Deflate({}, Z_FINISH);
    deflateEnd(&zlib_);
    ready_ = false;
    const absl::Status closed = file_->Close();
    if (status_.ok()) status_ = closed;
    return status_;
  }

 private:
  void Deflate(std::string_view data, int flush) {
    if (!ready_ && status_.ok()) {
      status_ = FailedPrecondition("The compressed file is closed");
    }
    if (!status_.ok()) return;
    zlib_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
    zlib_.avail_in = static_cast<uInt>(data.size());
    do {
      zlib_.next_out = reinterpret_cast<Bytef*>(output_.data());
      zlib_.avail_out = static_cast<uInt>(output_.size());
      const int result = deflate(&zlib_, flush);
      if (result == Z_STREAM_ERROR) {
        status_ = Internal("deflate() failed");
        return;
      }
      status_ = file_->Append(
          std::string_view(output_.data(), output_.size() - zlib_.avail_out));
    } while (status_.ok() && zlib_.avail_out == 0);
  }

  const std::unique_ptr<WritableFile> file_;
  std::vector<char> output_;
  z_stream zlib_{};
  bool ready_ = false;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Compression> ParseCompression(std::string_view name) {
  if (name.empty()) return Compression::kNone;
  if (name == "ZLIB") return Compression::kZlib;
  if (name == "GZIP") return Compression::kGzip;
  return InvalidArgument("Unsupported compression_type: ", name, ".");
}

std::unique_ptr<ByteStream> NewByteStream(
    std::shared_ptr<const RandomAccessFile> file, Compression compression,
    uint64_t offset) {
  auto plain = std::make_unique<FileByteStream>(std::move(file), offset);
  if (compression == Compression::kNone) return plain;
  return std::make_unique<InflatingByteStream>(std::move(plain), compression);
}

std::unique_ptr<WritableFile> NewDeflatingFile(
    std::unique_ptr<WritableFile> file, Compression compression) {
  return std::make_unique<DeflatingFile>(std::move(file), compression);
}

}  // namespace sluice
