#include "sluice/ops/summary/png.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <vector>

#include "sluice/base/status.h"

namespace sluice {
namespace {
namespace png {

// Compressed bytes in one chunk.
constexpr size_t kChunk = 8192;

enum Filter { kNone, kSub, kUp, kAverage, kPaeth };
constexpr int kFilters = 5;

void AppendBigEndian(uint32_t value, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(value >> shift));
  }
}

void AppendChunk(std::string_view type, std::string_view data,
                 std::string* out) {
  AppendBigEndian(static_cast<uint32_t>(data.size()), out);
  const size_t begin = out->size();
  out->append(type);
  out->append(data);
  const auto* summed = reinterpret_cast<const Bytef*>(out->data() + begin);
  AppendBigEndian(
      static_cast<uint32_t>(crc32(0, summed, type.size() + data.size())), out);
}

// What the format predicts from the bytes to the left, above, and between.
int Predict(int filter, int left, int above, int corner) {
  switch (filter) {
    case kSub:
      return left;
    case kUp:
      return above;
    case kAverage:
      return (left + above) / 2;
    case kPaeth: {
      const int estimate = left + above - corner;
      const int to_left = std::abs(estimate - left);
      const int to_above = std::abs(estimate - above);
      const int to_corner = std::abs(estimate - corner);
      if (to_left <= to_above && to_left <= to_corner) return left;
      return to_above <= to_corner ? above : corner;
    }
    default:
      return 0;
  }
}

// Writes the filter's number and the filtered row to `out`. Returns the sum of
// the differences, which tells how well the row will compress.
int64_t FilterRow(int filter, const uint8_t* row, const uint8_t* above,
                  int64_t bytes, int pixel, uint8_t* out) {
  int64_t sum = 0;
  *out++ = static_cast<uint8_t>(filter);
  for (int64_t i = 0; i < bytes; ++i) {
    const int left = i < pixel ? 0 : row[i - pixel];
    const int corner = i < pixel ? 0 : above[i - pixel];
    const uint8_t difference =
        static_cast<uint8_t>(row[i] - Predict(filter, left, above[i], corner));
    out[i] = difference;
    sum += difference < 128 ? difference : 256 - difference;
  }
  return sum;
}

// Each row with the filter that leaves the smallest differences.
std::string FilterRows(const uint8_t* pixels, int64_t bytes, int64_t height,
                       int pixel) {
  std::string filtered;
  filtered.reserve((bytes + 1) * height);
  std::vector<uint8_t> candidate(bytes + 1), best(bytes + 1);
  const std::vector<uint8_t> zeros(bytes);
  for (int64_t y = 0; y < height; ++y) {
    const uint8_t* row = pixels + y * bytes;
    const uint8_t* above = y == 0 ? zeros.data() : row - bytes;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int filter = kNone; filter < kFilters; ++filter) {
      // libpng does not look across what is one pixel wide or high.
      if (height == 1 && filter >= kUp) continue;
      if (bytes == pixel && filter != kNone && filter != kUp) continue;
      const int64_t sum =
          FilterRow(filter, row, above, bytes, pixel, candidate.data());
      if (sum < least) {
        least = sum;
        best.swap(candidate);
      }
    }
    filtered.append(reinterpret_cast<const char*>(best.data()), best.size());
  }
  return filtered;
}

// Says in the stream's head that a small window is enough to read it.
void ShrinkWindow(size_t size, std::string* stream) {
  if (size > 16384 || stream->size() < 2) return;
  int log = 7;  // The window has 2^(log + 8) bytes.
  while (log > 0 && size <= size_t{1} << (log + 7)) --log;
  const int first = log << 4 | 8;
  int second = static_cast<uint8_t>((*stream)[1]) & 0xe0;
  second += 31 - (first * 256 + second) % 31;
  (*stream)[0] = static_cast<char>(first);
  (*stream)[1] = static_cast<char>(second);
}

absl::StatusOr<std::string> Compress(const std::string& data) {
  z_stream stream = {};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15, 8,
                   Z_FILTERED) != Z_OK) {
    return ResourceExhausted("No memory left to compress an image");
  }
  std::string out(deflateBound(&stream, data.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return Internal("zlib gave error ", result);
  ShrinkWindow(data.size(), &out);
  return out;
}

std::string Header(int64_t width, int64_t height, int channels) {
  constexpr uint8_t kColorType[] = {0, 0, 4, 2, 6};
  std::string header;
  AppendBigEndian(static_cast<uint32_t>(width), &header);
  AppendBigEndian(static_cast<uint32_t>(height), &header);
  header.push_back(8);  // Bits a channel.
  header.push_back(static_cast<char>(kColorType[channels]));
  header.append(3, '\0');  // Deflate, five filters, not interlaced.
  return header;
}

}  // namespace png
}  // namespace

absl::StatusOr<std::string> EncodePng(const uint8_t* pixels, int64_t width,
                                      int64_t height, int channels) {
  constexpr int64_t kMaxBytes = 1 << 30;  // zlib counts in 32 bits.
  if (channels < 1 || channels > 4) {
    return InvalidArgument("An image has 1 to 4 channels, not ", channels);
  }
  if (width <= 0 || height <= 0 || width > kMaxBytes / channels / height - 1) {
    return InvalidArgument("Cannot write an image of ", width, " x ", height,
                           " pixels as PNG");
  }
  SLUICE_ASSIGN_OR_RETURN(const std::string data,
                          png::Compress(png::FilterRows(
                              pixels, width * channels, height, channels)));
  std::string out = "\x89PNG\r\n\x1a\n";
  png::AppendChunk("IHDR", png::Header(width, height, channels), &out);
  for (size_t at = 0; at < data.size(); at += png::kChunk) {
    png::AppendChunk("IDAT", std::string_view(data).substr(at, png::kChunk),
                     &out);
  }
  png::AppendChunk("IEND", "", &out);
  return out;
}

}  // namespace sluice
