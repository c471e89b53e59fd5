#include "sluice/base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sluice {
namespace {

TEST(Half, EveryBitPatternSurvivesTheTripThroughFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = HalfBitsToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    EXPECT_EQ(FloatToHalfBits(value), bits);
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(float(Half(1.0f + 1.0f / 2048)), 1.0f);
  EXPECT_EQ(float(Half(1.0f + 3.0f / 2048)), 1.0f + 2.0f / 1024);
  EXPECT_EQ(float(Half(65519.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(float(Half(65520.0f))));
  EXPECT_TRUE(std::isnan(float(Half(NAN))));
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(float(BFloat16(1.0f + 1.0f / 256)), 1.0f);
  EXPECT_EQ(float(BFloat16(1.0f + 3.0f / 256)), 1.0f + 2.0f / 128);
  EXPECT_TRUE(std::isnan(float(BFloat16(NAN))));
}

}  // namespace
}  // namespace sluice
