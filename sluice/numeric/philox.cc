#include "sluice/numeric/philox.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sluice {
namespace {

constexpr int kRounds = 10;
constexpr uint32_t kMultiplyA = 0xD2511F53;
constexpr uint32_t kMultiplyB = 0xCD9E8D57;
constexpr uint32_t kStepA = 0x9E3779B9;
constexpr uint32_t kStepB = 0xBB67AE85;

// Words are made in parts of this many and turned into numbers while they are
// in the cache.
constexpr int64_t kPart = 512;

void OneRound(uint32_t* c, uint32_t key_a, uint32_t key_b) {
  const uint64_t a = static_cast<uint64_t>(kMultiplyA) * c[0];
  const uint64_t b = static_cast<uint64_t>(kMultiplyB) * c[2];
  c[0] = static_cast<uint32_t>(b >> 32) ^ c[1] ^ key_a;
  c[1] = static_cast<uint32_t>(b);
  c[2] = static_cast<uint32_t>(a >> 32) ^ c[3] ^ key_b;
  c[3] = static_cast<uint32_t>(a);
}

#if defined(__x86_64__)
constexpr int64_t kLanes = 8;

__attribute__((target("avx2"))) inline __m256i Same(uint64_t x) {
  return _mm256_set1_epi32(static_cast<int>(static_cast<uint32_t>(x)));
}

// The upper and lower halves of eight products.
__attribute__((target("avx2"))) inline void MultiplyWide(__m256i x,
                                                         uint32_t factor,
                                                         __m256i* high,
                                                         __m256i* low) {
  const __m256i f = Same(factor);
  const __m256i even = _mm256_mul_epu32(x, f);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), f);
  *high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
  *low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

// Eight blocks whose counters differ in the lowest word only.
__attribute__((target("avx2"))) void EightBlocks(uint64_t key, uint64_t low,
                                                 uint64_t high,
                                                 uint32_t* words) {
  __m256i c0 =
      _mm256_add_epi32(Same(low), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  __m256i c1 = Same(low >> 32);
  __m256i c2 = Same(high);
  __m256i c3 = Same(high >> 32);
  uint32_t key_a = static_cast<uint32_t>(key);
  uint32_t key_b = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kRounds; ++round) {
    __m256i a_high, a_low, b_high, b_low;
    MultiplyWide(c0, kMultiplyA, &a_high, &a_low);
    MultiplyWide(c2, kMultiplyB, &b_high, &b_low);
    c0 = _mm256_xor_si256(_mm256_xor_si256(b_high, c1), Same(key_a));
    c1 = b_low;
    c2 = _mm256_xor_si256(_mm256_xor_si256(a_high, c3), Same(key_b));
    c3 = a_low;
    key_a += kStepA;
    key_b += kStepB;
  }
  // Lane i of c0…c3 becomes block i.
  const __m256i p = _mm256_unpacklo_epi32(c0, c1);
  const __m256i q = _mm256_unpackhi_epi32(c0, c1);
  const __m256i r = _mm256_unpacklo_epi32(c2, c3);
  const __m256i s = _mm256_unpackhi_epi32(c2, c3);
  const __m256i blocks_04 = _mm256_unpacklo_epi64(p, r);
  const __m256i blocks_15 = _mm256_unpackhi_epi64(p, r);
  const __m256i blocks_26 = _mm256_unpacklo_epi64(q, s);
  const __m256i blocks_37 = _mm256_unpackhi_epi64(q, s);
  const __m256i blocks[] = {
      _mm256_permute2x128_si256(blocks_04, blocks_15, 0x20),
      _mm256_permute2x128_si256(blocks_26, blocks_37, 0x20),
      _mm256_permute2x128_si256(blocks_04, blocks_15, 0x31),
      _mm256_permute2x128_si256(blocks_26, blocks_37, 0x31)};
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(words) + i, blocks[i]);
  }
}

const bool kHasAvx2 = __builtin_cpu_supports("avx2");
#endif

// Hands the words of numbers [begin, begin + n) to `convert(words, count, i)`
// in parts; `i` counts from 0.
template <int kWordsPerNumber, typename Convert>
void ForParts(const Philox& stream, int64_t begin, int64_t n, Convert convert) {
  constexpr int64_t kNumbers = kPart / kWordsPerNumber;
  uint32_t words[kPart];
  for (int64_t i = 0; i < n; i += kNumbers) {
    const int64_t count = std::min(kNumbers, n - i);
    const int64_t first_word = (begin + i) * kWordsPerNumber;
    stream.Skip(first_word / 4).Fill((count * kWordsPerNumber + 3) / 4, words);
    convert(words, count, i);
  }
}

// 1.m - 1 with random bits m: all that floats between 1 and 2 can hold.
float UniformFloat(uint32_t word) {
  return std::bit_cast<float>(0x3f800000u | (word & 0x7fffffu)) - 1.0f;
}

// A logarithm of 0 must not come up.
constexpr double kSmallestUniform = 1e-7;

void NormalPair(const uint32_t* words, float* out) {
  const float u =
      std::max(UniformFloat(words[0]), static_cast<float>(kSmallestUniform));
  const float angle =
      static_cast<float>(2 * std::numbers::pi * UniformFloat(words[1]));
  const float radius = std::sqrt(-2.0f * std::log(u));
  out[0] = std::sin(angle) * radius;
  out[1] = std::cos(angle) * radius;
}

void NormalPair(const uint32_t* words, double* out) {
  const double u =
      std::max(UniformDouble(words[0], words[1]), kSmallestUniform);
  const double angle = 2 * std::numbers::pi * UniformDouble(words[2], words[3]);
  const double radius = std::sqrt(-2.0 * std::log(u));
  out[0] = std::sin(angle) * radius;
  out[1] = std::cos(angle) * radius;
}

template <typename T>
void FillNormals(const Philox& stream, int64_t begin, int64_t n, T* out) {
  constexpr int kWords = sizeof(T) / 4;
  ForParts<kWords>(stream, begin, n,
                   [out](const uint32_t* words, int64_t count, int64_t i) {
                     int64_t k = 0;
                     for (; k + 1 < count; k += 2) {
                       NormalPair(words + k * kWords, out + i + k);
                     }
                     if (k < count) {  // Only half of the last pair is wanted.
                       T pair[2];
                       NormalPair(words + k * kWords, pair);
                       out[i + k] = pair[0];
                     }
                   });
}

// Fills `out` from the start of `stream` on.
template <typename T>
void FillTruncatedGroup(const Philox& stream, int64_t n, T* out) {
  constexpr int kPairsPerBlock = sizeof(T) == 4 ? 2 : 1;
  int64_t found = 0;
  for (uint64_t block = 0; found < n; ++block) {
    const Philox::Block words = stream.At(block);
    for (int p = 0; p < kPairsPerBlock; ++p) {
      T pair[2];
      NormalPair(words.data() + 2 * p, pair);
      for (T value : pair) {
        if (std::abs(value) < T(2) && found < n) out[found++] = value;
      }
    }
  }
}

template <typename T>
void FillTruncatedNormals(const Philox& stream, int64_t begin, int64_t n,
                          T* out) {
  // One group is what one block gives: four floats or two doubles. Each number
  // has 64 blocks.
  constexpr int64_t kGroup = 16 / sizeof(T);
  for (int64_t i = 0; i < n; i += kGroup) {
    FillTruncatedGroup(stream.Skip((begin + i) * 64), std::min(kGroup, n - i),
                       out + i);
  }
}

}  // namespace

Philox Philox::FromStatelessSeeds(int64_t seed, int64_t seed2) {
  const Block mixed = Philox(0x02461e293ec8f720, static_cast<uint64_t>(seed),
                             static_cast<uint64_t>(seed2))
                          .At(0);
  return Philox(mixed[0] | static_cast<uint64_t>(mixed[1]) << 32, 0,
                mixed[2] | static_cast<uint64_t>(mixed[3]) << 32);
}

Philox Philox::Skip(uint64_t blocks) const {
  const uint64_t low = low_ + blocks;
  return Philox(key_, low, high_ + (low < low_ ? 1 : 0));
}

Philox::Block Philox::At(uint64_t block) const {
  const Philox from = Skip(block);
  Block c = {static_cast<uint32_t>(from.low_),
             static_cast<uint32_t>(from.low_ >> 32),
             static_cast<uint32_t>(from.high_),
             static_cast<uint32_t>(from.high_ >> 32)};
  uint32_t key_a = static_cast<uint32_t>(key_);
  uint32_t key_b = static_cast<uint32_t>(key_ >> 32);
  for (int round = 0; round < kRounds; ++round) {
    OneRound(c.data(), key_a, key_b);
    key_a += kStepA;
    key_b += kStepB;
  }
  return c;
}

void Philox::Fill(int64_t count, uint32_t* words) const {
  int64_t block = 0;
#if defined(__x86_64__)
  for (; kHasAvx2 && block + kLanes <= count; block += kLanes) {
    const Philox from = Skip(block);
    // A carry out of the lowest word, once in 2^32 blocks.
    if (static_cast<uint32_t>(from.low_) > 0xffffffffu - kLanes) break;
    EightBlocks(key_, from.low_, from.high_, words + 4 * block);
  }
#endif
  for (; block < count; ++block) {
    const Block one = At(block);
    std::memcpy(words + 4 * block, one.data(), sizeof(one));
  }
}

double UniformDouble(uint32_t first, uint32_t second) {
  const uint64_t bits = 0x3ff0000000000000u |
                        static_cast<uint64_t>(first & 0xfffffu) << 32 | second;
  return std::bit_cast<double>(bits) - 1.0;
}

void FillUniform(const Philox& stream, int64_t begin, int64_t n, float* out) {
  ForParts<1>(stream, begin, n,
              [out](const uint32_t* words, int64_t count, int64_t i) {
                for (int64_t k = 0; k < count; ++k) {
                  out[i + k] = UniformFloat(words[k]);
                }
              });
}

void FillUniform(const Philox& stream, int64_t begin, int64_t n, double* out) {
  ForParts<2>(stream, begin, n,
              [out](const uint32_t* words, int64_t count, int64_t i) {
                for (int64_t k = 0; k < count; ++k) {
                  out[i + k] = UniformDouble(words[2 * k], words[2 * k + 1]);
                }
              });
}

void FillUniform(const Philox& stream, int64_t begin, int64_t n, Half* out) {
  ForParts<1>(stream, begin, n,
              [out](const uint32_t* words, int64_t count, int64_t i) {
                for (int64_t k = 0; k < count; ++k) {
                  out[i + k] = Half((words[k] & 0x3ff) / 1024.0f);
                }
              });
}

void FillUniform(const Philox& stream, int64_t begin, int64_t n,
                 BFloat16* out) {
  ForParts<1>(stream, begin, n,
              [out](const uint32_t* words, int64_t count, int64_t i) {
                for (int64_t k = 0; k < count; ++k) {
                  out[i + k] = BFloat16((words[k] & 0x7f) / 128.0f);
                }
              });
}

void FillUniformInt(const Philox& stream, int32_t low, uint32_t range,
                    int64_t begin, int64_t n, int32_t* out) {
  ForParts<1>(stream, begin, n,
              [=](const uint32_t* words, int64_t count, int64_t i) {
                for (int64_t k = 0; k < count; ++k) {
                  out[i + k] = static_cast<int32_t>(static_cast<uint32_t>(low) +
                                                    words[k] % range);
                }
              });
}

void FillUniformInt(const Philox& stream, int64_t low, uint64_t range,
                    int64_t begin, int64_t n, int64_t* out) {
  ForParts<2>(
      stream, begin, n, [=](const uint32_t* words, int64_t count, int64_t i) {
        for (int64_t k = 0; k < count; ++k) {
          const uint64_t x =
              words[2 * k] | static_cast<uint64_t>(words[2 * k + 1]) << 32;
          out[i + k] =
              static_cast<int64_t>(static_cast<uint64_t>(low) + x % range);
        }
      });
}

void FillNormal(const Philox& stream, int64_t begin, int64_t n, float* out) {
  FillNormals(stream, begin, n, out);
}
void FillNormal(const Philox& stream, int64_t begin, int64_t n, double* out) {
  FillNormals(stream, begin, n, out);
}

void FillTruncatedNormal(const Philox& stream, int64_t begin, int64_t n,
                         float* out) {
  FillTruncatedNormals(stream, begin, n, out);
}
void FillTruncatedNormal(const Philox& stream, int64_t begin, int64_t n,
                         double* out) {
  FillTruncatedNormals(stream, begin, n, out);
}

}  // namespace sluice
