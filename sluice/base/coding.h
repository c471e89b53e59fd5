// Numbers in bytes, as files and messages hold them: fixed-size little-endian
// and varints (7 bits a byte, low bits first).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace sluice {

static_assert(std::endian::native == std::endian::little,
              "numbers are copied as they lie in memory");

inline void AppendFixed32(uint32_t value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), 4);
}
inline void AppendFixed64(uint64_t value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), 8);
}
inline uint32_t LoadFixed32(const char* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, 4);
  return value;
}
inline uint64_t LoadFixed64(const char* bytes) {
  uint64_t value;
  std::memcpy(&value, bytes, 8);
  return value;
}

inline void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) {
    out->push_back(static_cast<char>(value | 0x80));
  }
  out->push_back(static_cast<char>(value));
}

// Takes a varint off the front of `bytes`. False, with `bytes` in no particular
// state, if it does not end or does not fit.
inline bool TakeVarint64(std::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const uint64_t byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    if (shift == 63 && byte > 1) return false;
    *value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}
inline bool TakeVarint32(std::string_view* bytes, uint32_t* value) {
  uint64_t wide;
  if (!TakeVarint64(bytes, &wide)) return false;
  *value = static_cast<uint32_t>(wide);
  return wide == *value;
}

}  // namespace sluice
