#include "sluice/base/fingerprint.h"

#include <bit>
#include <utility>

#include "sluice/base/coding.h"

namespace sluice {
namespace {

constexpr uint64_t kA = 0xc3a5c85c97cb3127;
constexpr uint64_t kB = 0xb492b66fbe98f273;
constexpr uint64_t kC = 0x9ae16a3b2f90404f;

uint64_t Mixed(uint64_t v) { return v ^ (v >> 47); }

// Hashes 16 bytes.
uint64_t Hash16(uint64_t u, uint64_t v, uint64_t mul) {
  const uint64_t a = Mixed((u ^ v) * mul);
  return Mixed((v ^ a) * mul) * mul;
}

uint64_t HashUpTo16(const char* s, size_t n) {
  const uint64_t mul = kC + n * 2;
  if (n >= 8) {
    const uint64_t a = LoadFixed64(s) + kC;
    const uint64_t b = LoadFixed64(s + n - 8);
    return Hash16(std::rotr(b, 37) * mul + a, (std::rotr(a, 25) + b) * mul,
                  mul);
  }
  if (n >= 4) {
    return Hash16(n + (uint64_t{LoadFixed32(s)} << 3), LoadFixed32(s + n - 4),
                  mul);
  }
  if (n == 0) return kC;
  const auto byte = [s](size_t i) {
    return uint64_t{static_cast<uint8_t>(s[i])};
  };
  const uint64_t y = byte(0) + (byte(n / 2) << 8);
  const uint64_t z = n + (byte(n - 1) << 2);
  return Mixed((y * kC) ^ (z * kA)) * kC;
}

uint64_t HashUpTo32(const char* s, size_t n) {
  const uint64_t mul = kC + n * 2;
  const uint64_t a = LoadFixed64(s) * kB;
  const uint64_t b = LoadFixed64(s + 8);
  const uint64_t c = LoadFixed64(s + n - 8) * mul;
  const uint64_t d = LoadFixed64(s + n - 16) * kC;
  return Hash16(std::rotr(a + b, 43) + std::rotr(c, 30) + d,
                a + std::rotr(b + kC, 18) + c, mul);
}

uint64_t HashUpTo64(const char* s, size_t n) {
  const uint64_t mul = kC + n * 2;
  const uint64_t a = LoadFixed64(s) * kC;
  const uint64_t b = LoadFixed64(s + 8);
  const uint64_t c = LoadFixed64(s + n - 8) * mul;
  const uint64_t d = LoadFixed64(s + n - 16) * kC;
  const uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
  const uint64_t z = Hash16(y, a + std::rotr(b + kC, 18) + c, mul);
  const uint64_t e = LoadFixed64(s + 16) * mul;
  const uint64_t f = LoadFixed64(s + 24);
  const uint64_t g = (y + LoadFixed64(s + n - 32)) * mul;
  const uint64_t h = (z + LoadFixed64(s + n - 24)) * mul;
  return Hash16(std::rotr(e + f, 43) + std::rotr(g, 30) + h,
                e + std::rotr(f + a, 18) + g, mul);
}

using Pair = std::pair<uint64_t, uint64_t>;

// Hashes 32 bytes into a pair.
Pair Hash32(const char* s, uint64_t a, uint64_t b) {
  const uint64_t z = LoadFixed64(s + 24);
  a += LoadFixed64(s);
  b = std::rotr(b + a + z, 21);
  const uint64_t c = a;
  a += LoadFixed64(s + 8) + LoadFixed64(s + 16);
  b += std::rotr(a, 44);
  return {a + z, b + c};
}

}  // namespace

uint64_t Fingerprint64(std::string_view bytes) {
  const char* s = bytes.data();
  const size_t n = bytes.size();
  if (n <= 16) return HashUpTo16(s, n);
  if (n <= 32) return HashUpTo32(s, n);
  if (n <= 64) return HashUpTo64(s, n);
  constexpr uint64_t kSeed = 81;
  uint64_t x = kSeed * kC + LoadFixed64(s);
  uint64_t y = kSeed * kB + 113;
  uint64_t z = Mixed(y * kC + 113) * kC;
  Pair v, w;
  // Blocks of 64 bytes; the last ones are mixed once more, overlapping.
  const auto mix = [&](uint64_t mul, uint64_t more) {
    x = std::rotr(x + y + v.first + LoadFixed64(s + 8), 37) * mul;
    y = std::rotr(y + v.second + LoadFixed64(s + 48), 42) * mul;
    x ^= w.second * more;
    y += v.first * more + LoadFixed64(s + 40);
    z = std::rotr(z + w.first, 33) * mul;
    v = Hash32(s, v.second * mul, x + w.first);
    w = Hash32(s + 32, z + w.second, y + LoadFixed64(s + 16));
    std::swap(z, x);
  };
  for (size_t block = 0; block < (n - 1) / 64; ++block, s += 64) mix(kB, 1);
  const uint64_t mul = kB + ((z & 0xff) << 1);
  s = bytes.data() + n - 64;
  w.first += (n - 1) & 63;
  v.first += w.first;
  w.first += v.first;
  mix(mul, 9);
  return Hash16(Hash16(v.first, w.first, mul) + Mixed(y) * kA + z,
                Hash16(v.second, w.second, mul) + x, mul);
}

uint64_t SipHash(uint64_t key0, uint64_t key1, std::string_view bytes) {
  uint64_t v0 = key0 ^ 0x736f6d6570736575;
  uint64_t v1 = key1 ^ 0x646f72616e646f6d;
  uint64_t v2 = key0 ^ 0x6c7967656e657261;
  uint64_t v3 = key1 ^ 0x7465646279746573;
  const auto round = [&] {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  };
  const auto take = [&](uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  };
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) take(LoadFixed64(bytes.data() + i));
  uint64_t last = uint64_t{bytes.size()} << 56;
  for (int shift = 0; i < bytes.size(); ++i, shift += 8) {
    last |= uint64_t{static_cast<uint8_t>(bytes[i])} << shift;
  }
  take(last);
  v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) round();
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace sluice
