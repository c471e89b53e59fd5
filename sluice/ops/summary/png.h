// A small PNG writer: 8 bits a channel, no palette, no interlacing. Given the
// same zlib it makes the bytes that libpng makes.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace sluice {

// `pixels` holds height * width * channels bytes, row by row. `channels` is 1
// (grey), 2 (grey, alpha), 3 (RGB) or 4 (RGBA).
absl::StatusOr<std::string> EncodePng(const uint8_t* pixels, int64_t width,
                                      int64_t height, int channels);

}  // namespace sluice
