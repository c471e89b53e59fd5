// Looking for infinities and NaNs by their bits.
#pragma once

#include <cstdint>

namespace sluice {

struct NonFinite {
  bool inf = false;
  bool nan = false;
  bool any() const { return inf || nan; }
};

// `bits` are n IEEE numbers whose exponent field is `exponent`.
NonFinite FindNonFinite(const uint16_t* bits, int64_t n, uint16_t exponent);
NonFinite FindNonFinite(const uint32_t* bits, int64_t n, uint32_t exponent);
NonFinite FindNonFinite(const uint64_t* bits, int64_t n, uint64_t exponent);

}  // namespace sluice
