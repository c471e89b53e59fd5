// Half (IEEE binary16) and BFloat16: storage types. Arithmetic goes through
// float; the conversions round to nearest even.
#pragma once

#include <cstdint>
#include <cstring>

namespace sluice {

float HalfBitsToFloat(uint16_t bits);
uint16_t FloatToHalfBits(float value);

struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value) : bits(FloatToHalfBits(value)) {}
  explicit operator float() const { return HalfBitsToFloat(bits); }
  bool operator==(const Half& other) const {
    return float(*this) == float(other);
  }
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    uint32_t word;
    std::memcpy(&word, &value, 4);
    if ((word & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<uint16_t>(word >> 16 | 0x40);  // Stay a NaN.
    } else {
      bits = static_cast<uint16_t>((word + 0x7fffu + (word >> 16 & 1)) >> 16);
    }
  }
  explicit operator float() const {
    const uint32_t word = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &word, 4);
    return value;
  }
  bool operator==(const BFloat16& other) const {
    return float(*this) == float(other);
  }
};

}  // namespace sluice
