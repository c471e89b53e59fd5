#include "sluice/base/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace sluice {
namespace {

// Bit-reflected: the lowest power of x is the highest bit.
constexpr uint32_t kPolynomial = 0x82f63b78u;
constexpr uint32_t kOne = 0x80000000u;  // x^0

// a * b modulo the polynomial.
constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b & 1) ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

// What a register is multiplied with when `bytes` zero bytes pass.
constexpr uint32_t PowerOfBytes(uint64_t bytes) {
  uint32_t power = kOne;
  uint32_t square = kOne >> 8;  // x^8: one byte.
  for (; bytes != 0; bytes >>= 1) {
    if (bytes & 1) power = Multiply(power, square);
    square = Multiply(square, square);
  }
  return power;
}

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b] is the register after byte b and k zero bytes.
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int i = 0; i < 8; ++i) {
      crc = (crc & 1) ? (crc >> 1) ^ kPolynomial : crc >> 1;
    }
    tables[0][b] = crc;
  }
  for (int k = 1; k < 8; ++k) {
    for (uint32_t b = 0; b < 256; ++b) {
      const uint32_t before = tables[k - 1][b];
      tables[k][b] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

uint64_t Load64(const char* p) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  return word;
}

uint32_t ExtendPortable(uint32_t crc, const char* p, size_t n) {
  for (; n >= 8; p += 8, n -= 8) {
    const uint64_t word = Load64(p) ^ crc;
    crc = 0;
    for (int k = 0; k < 8; ++k) {
      crc ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
    }
  }
  for (; n > 0; ++p, --n) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint8_t>(*p)) & 0xff];
  }
  return crc;
}

#if defined(__x86_64__)

// Multiplies a register with PowerOfBytes(bytes), a table look-up per byte.
class Shift {
 public:
  explicit Shift(size_t bytes) {
    const uint32_t power = PowerOfBytes(bytes);
    for (int k = 0; k < 4; ++k) {
      for (uint32_t b = 0; b < 256; ++b) {
        tables_[k][b] = Multiply(b << (8 * k), power);
      }
    }
  }
  uint32_t operator()(uint32_t crc) const {
    return tables_[0][crc & 0xff] ^ tables_[1][(crc >> 8) & 0xff] ^
           tables_[2][(crc >> 16) & 0xff] ^ tables_[3][crc >> 24];
  }

 private:
  uint32_t tables_[4][256];
};

// The instruction takes 3 cycles but can start every cycle, so three lanes of
// `lane` bytes are summed side by side and joined.
__attribute__((target("sse4.2"))) uint32_t ExtendLanes(uint32_t crc,
                                                       const char*& p,
                                                       size_t& n, size_t lane,
                                                       const Shift& shift) {
  while (n >= 3 * lane) {
    uint64_t a = crc, b = 0, c = 0;
    for (const char* end = p + lane; p < end; p += 8) {
      a = _mm_crc32_u64(a, Load64(p));
      b = _mm_crc32_u64(b, Load64(p + lane));
      c = _mm_crc32_u64(c, Load64(p + 2 * lane));
    }
    crc = shift(static_cast<uint32_t>(a)) ^ static_cast<uint32_t>(b);
    crc = shift(crc) ^ static_cast<uint32_t>(c);
    p += 2 * lane;
    n -= 3 * lane;
  }
  return crc;
}

__attribute__((target("sse4.2"))) uint32_t ExtendSse42(uint32_t crc,
                                                       const char* p,
                                                       size_t n) {
  constexpr size_t kLong = 8192;
  constexpr size_t kShort = 256;
  static const Shift long_shift(kLong);
  static const Shift short_shift(kShort);
  if (n >= 3 * kLong) crc = ExtendLanes(crc, p, n, kLong, long_shift);
  if (n >= 3 * kShort) crc = ExtendLanes(crc, p, n, kShort, short_shift);
  uint64_t wide = crc;
  for (; n >= 8; p += 8, n -= 8) wide = _mm_crc32_u64(wide, Load64(p));
  crc = static_cast<uint32_t>(wide);
  for (; n > 0; ++p, --n) crc = _mm_crc32_u8(crc, static_cast<uint8_t>(*p));
  return crc;
}

#endif

using Extender = uint32_t (*)(uint32_t, const char*, size_t);

Extender ChooseExtender() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ExtendSse42;
#endif
  return ExtendPortable;
}

}  // namespace

uint32_t Crc32cExtend(uint32_t crc, std::string_view data) {
  static const Extender extend = ChooseExtender();
  return ~extend(~crc, data.data(), data.size());
}

uint32_t Crc32cExtendPortableForTest(uint32_t crc, std::string_view data) {
  return ~ExtendPortable(~crc, data.data(), data.size());
}

uint32_t Crc32cCombine(uint32_t crc_a, uint32_t crc_b, uint64_t length_b) {
  // The inversions before and after cancel out.
  return Multiply(crc_a, PowerOfBytes(length_b)) ^ crc_b;
}

}  // namespace sluice
