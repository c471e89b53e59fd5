#include "sluice/ops/summary/png.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <vector>

namespace sluice {
namespace {

// Undoes the filters; enough of a decoder for what EncodePng writes.
std::vector<uint8_t> DecodePng(const std::string& png, int width, int height,
                               int channels) {
  std::string data;
  for (size_t at = 8; at + 12 <= png.size();) {
    uint32_t length = 0;
    for (int i = 0; i < 4; ++i) {
      length = length << 8 | static_cast<uint8_t>(png[at + i]);
    }
    if (png.substr(at + 4, 4) == "IDAT") data += png.substr(at + 8, length);
    at += 12 + length;
  }
  const int row = width * channels;
  std::vector<uint8_t> filtered(static_cast<size_t>(row + 1) * height);
  uLongf size = filtered.size();
  EXPECT_EQ(
      uncompress(filtered.data(), &size,
                 reinterpret_cast<const Bytef*>(data.data()), data.size()),
      Z_OK);
  EXPECT_EQ(size, filtered.size());
  std::vector<uint8_t> pixels(static_cast<size_t>(row) * height);
  for (int y = 0; y < height; ++y) {
    const int filter = filtered[y * (row + 1)];
    for (int x = 0; x < row; ++x) {
      const int a = x < channels ? 0 : pixels[y * row + x - channels];
      const int b = y == 0 ? 0 : pixels[(y - 1) * row + x];
      const int c =
          x < channels || y == 0 ? 0 : pixels[(y - 1) * row + x - channels];
      const int p = a + b - c;
      const int nearest = abs(p - a) <= abs(p - b) && abs(p - a) <= abs(p - c)
                              ? a
                          : abs(p - b) <= abs(p - c) ? b
                                                     : c;
      const int predicted[] = {0, a, b, (a + b) / 2, nearest};
      pixels[y * row + x] = static_cast<uint8_t>(
          filtered[y * (row + 1) + 1 + x] + predicted[filter]);
    }
  }
  return pixels;
}

TEST(Png, HoldsThePixelsItWasGiven) {
  for (const int channels : {1, 2, 3, 4}) {
    for (const int width : {1, 7, 200}) {
      const int height = width == 7 ? 1 : 90;
      std::vector<uint8_t> pixels(width * height * channels);
      uint32_t state = 1;
      for (size_t i = 0; i < pixels.size(); ++i) {
        state = state * 1664525 + 1013904223;
        // Partly smooth, partly noise, so that all filters come up.
        pixels[i] =
            static_cast<uint8_t>(i % 400 < 200 ? i * i / 300 : (state >> 24));
      }
      const auto png = EncodePng(pixels.data(), width, height, channels);
      ASSERT_TRUE(png.ok()) << png.status();
      EXPECT_EQ(DecodePng(*png, width, height, channels), pixels)
          << width << " x " << height << " x " << channels;
    }
  }
}

TEST(Png, RefusesSizesThatItCannotWrite) {
  const uint8_t pixel[4] = {};
  EXPECT_FALSE(EncodePng(pixel, 0, 1, 1).ok());
  EXPECT_FALSE(EncodePng(pixel, 1, -1, 1).ok());
  EXPECT_FALSE(EncodePng(pixel, 1, 1, 5).ok());
  EXPECT_FALSE(EncodePng(pixel, 1 << 30, 1 << 30, 4).ok());
}

}  // namespace
}  // namespace sluice
