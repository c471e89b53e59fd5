// ByteStream: bytes in order, from a file, plain or compressed with zlib.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "sluice/base/file.h"

namespace sluice {

// How the whole of a record file is packed.
enum class Compression { kNone, kZlib, kGzip };

// Of "", "ZLIB" or "GZIP", the names TensorFlow's options use.
absl::StatusOr<Compression> ParseCompression(std::string_view name);

// Thread-compatible.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Reads up to `n` bytes; fewer only at the end.
  virtual absl::StatusOr<size_t> Read(size_t n, char* out) = 0;
};

// Starts at `offset` of the file, which must be 0 for packed ones.
std::unique_ptr<ByteStream> NewByteStream(
    std::shared_ptr<const RandomAccessFile> file, Compression compression,
    uint64_t offset = 0);

// A file that packs what is appended. Flush makes all of it readable, at some
// cost in size.
std::unique_ptr<WritableFile> NewDeflatingFile(
    std::unique_ptr<WritableFile> file, Compression compression);

}  // namespace sluice
