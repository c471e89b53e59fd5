// Philox 4x32-10: random numbers by counter, and the distributions TensorFlow
// makes of them, bit for bit (normals as far as sin and log agree). A block of
// four words is a pure function of key and counter, so a stream may be
// computed in parts, by several threads, and stays the same.
#pragma once

#include <array>
#include <cstdint>

#include "sluice/base/half.h"

namespace sluice {

// A stream of blocks. A cheap value, immutable.
class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  // `counter` is the 128-bit counter of block 0, low half first.
  Philox(uint64_t key, uint64_t counter_low, uint64_t counter_high)
      : key_(key), low_(counter_low), high_(counter_high) {}
  // The stream of a kernel with these two seed attributes.
  static Philox FromSeeds(int64_t seed, int64_t seed2) {
    return Philox(static_cast<uint64_t>(seed), 0, static_cast<uint64_t>(seed2));
  }
  // The stream of a stateless op with these seeds. They are scrambled, so that
  // seeds that lie close together give unrelated streams.
  static Philox FromStatelessSeeds(int64_t seed, int64_t seed2);

  // The stream that starts at block `blocks` of this one.
  Philox Skip(uint64_t blocks) const;
  Block At(uint64_t block) const;
  // Blocks [0, count), one after the other.
  void Fill(int64_t count, uint32_t* words) const;

 private:
  uint64_t key_;
  uint64_t low_;
  uint64_t high_;
};

// The words of a stream in order. Thread-compatible.
class PhiloxWords {
 public:
  explicit PhiloxWords(const Philox& stream) : stream_(stream) {}
  uint32_t Next() {
    const int at = static_cast<int>(used_ % 4);
    if (at == 0) block_ = stream_.At(used_ / 4);
    ++used_;
    return block_[at];
  }

 private:
  const Philox stream_;
  Philox::Block block_ = {};
  uint64_t used_ = 0;
};

// Blocks that TensorFlow sets aside for each number a kernel gives out.
inline constexpr uint64_t kPhiloxBlocksPerNumber = 256;

// Below, `stream` is that of a whole tensor; the functions write its numbers
// [begin, begin + n) to `out`. `begin` must be a multiple of kPhiloxGroup, as
// numbers are made in groups.
inline constexpr int64_t kPhiloxGroup = 4;

// Numbers in [0, 1).
void FillUniform(const Philox& stream, int64_t begin, int64_t n, float* out);
void FillUniform(const Philox& stream, int64_t begin, int64_t n, double* out);
void FillUniform(const Philox& stream, int64_t begin, int64_t n, Half* out);
void FillUniform(const Philox& stream, int64_t begin, int64_t n, BFloat16* out);

// Integers low + [0, range), not quite even unless `range` divides 2^32 or
// 2^64, as in TensorFlow. `range` is not 0.
void FillUniformInt(const Philox& stream, int32_t low, uint32_t range,
                    int64_t begin, int64_t n, int32_t* out);
void FillUniformInt(const Philox& stream, int64_t low, uint64_t range,
                    int64_t begin, int64_t n, int64_t* out);

// Normal numbers, mean 0, deviation 1.
void FillNormal(const Philox& stream, int64_t begin, int64_t n, float* out);
void FillNormal(const Philox& stream, int64_t begin, int64_t n, double* out);
// The same without those beyond two deviations. A group of four starts 256
// blocks after the group before it.
void FillTruncatedNormal(const Philox& stream, int64_t begin, int64_t n,
                         float* out);
void FillTruncatedNormal(const Philox& stream, int64_t begin, int64_t n,
                         double* out);

// A number in [0, 1) of two words.
double UniformDouble(uint32_t first, uint32_t second);

}  // namespace sluice
