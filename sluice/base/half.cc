#include "sluice/base/half.h"

namespace sluice {

float HalfBitsToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = bits >> 10 & 0x1f;
  uint32_t mantissa = bits & 0x3ff;
  uint32_t word;
  if (exponent == 0x1f) {
    word = sign | 0x7f800000u | mantissa << 13;
  } else if (exponent != 0) {
    word = sign | (exponent + 112) << 23 | mantissa << 13;
  } else if (mantissa == 0) {
    word = sign;
  } else {
    int shift = 0;
    while ((mantissa & 0x400) == 0) {
      mantissa <<= 1;
      ++shift;
    }
    word = sign | static_cast<uint32_t>(113 - shift) << 23 |
           (mantissa & 0x3ff) << 13;
  }
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}

uint16_t FloatToHalfBits(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  const uint16_t sign = static_cast<uint16_t>(word >> 16 & 0x8000u);
  const uint32_t magnitude = word & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00;
  if (magnitude >= 0x47800000u) return sign | 0x7c00;  // Overflow to infinity.
  if (magnitude < 0x38800000u) {
    // Subnormal: adding this constant lines the bits up and rounds to even.
    float f;
    std::memcpy(&f, &magnitude, 4);
    f += 0.5f;
    uint32_t sum;
    std::memcpy(&sum, &f, 4);
    return sign | static_cast<uint16_t>(sum - 0x3f000000u);
  }
  const uint32_t rounded =
      magnitude - 0x38000000u + 0xfff + (magnitude >> 13 & 1);
  return sign | static_cast<uint16_t>(rounded >> 13);
}

}  // namespace sluice
