// CRC-32C (Castagnoli), the checksum of TensorFlow's files. The processor's
// own instruction is used where there is one.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

// The crc of what `crc` covers followed by `data`.
uint32_t Crc32cExtend(uint32_t crc, std::string_view data);
inline uint32_t Crc32c(std::string_view data) { return Crc32cExtend(0, data); }

// The crc of A followed by B, of the crc of A, the crc of B and the length of
// B. So parts of a large buffer can be summed on several threads.
uint32_t Crc32cCombine(uint32_t crc_a, uint32_t crc_b, uint64_t length_b);

// Files store crcs masked: the crc of bytes that hold their own crc is weak.
inline uint32_t MaskCrc(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}
inline uint32_t UnmaskCrc(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

// The path without the instruction.
uint32_t Crc32cExtendPortableForTest(uint32_t crc, std::string_view data);

}  // namespace sluice
