#include "sluice/numeric/non_finite.h"

#include <algorithm>

namespace sluice {
namespace {

// A block is looked at whole, without branches, so that the loop becomes vector
// code; few tensors hold what is searched for.
constexpr int64_t kBlock = 1024;

template <typename Word>
NonFinite Find(const Word* bits, int64_t n, Word exponent) {
  NonFinite found;
  constexpr Word kNoSign = static_cast<Word>(~Word{0}) >> 1;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t size = std::min(kBlock, n - begin);
    Word any = 0;
    for (int64_t i = 0; i < size; ++i) {
      any |= (bits[begin + i] & kNoSign) >= exponent;
    }
    if (any == 0) continue;
    for (int64_t i = begin; i < begin + size; ++i) {
      found.inf |= (bits[i] & kNoSign) == exponent;
      found.nan |= (bits[i] & kNoSign) > exponent;
    }
    if (found.inf && found.nan) break;
  }
  return found;
}

}  // namespace

NonFinite FindNonFinite(const uint16_t* bits, int64_t n, uint16_t exponent) {
  return Find(bits, n, exponent);
}
NonFinite FindNonFinite(const uint32_t* bits, int64_t n, uint32_t exponent) {
  return Find(bits, n, exponent);
}
NonFinite FindNonFinite(const uint64_t* bits, int64_t n, uint64_t exponent) {
  return Find(bits, n, exponent);
}

}  // namespace sluice
