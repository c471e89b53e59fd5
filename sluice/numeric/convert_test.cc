#include "sluice/numeric/convert.h"

#include <gtest/gtest.h>

#include <vector>

#include "sluice/base/half.h"

namespace sluice {
namespace {

template <typename To, typename From>
std::vector<To> Convert(NumberType from, NumberType to,
                        const std::vector<From>& values) {
  std::vector<To> result(values.size());
  ConvertNumbers(from, values.data(), to, result.data(),
                 static_cast<int64_t>(values.size()));
  return result;
}

TEST(Convert, CutsFractionsOff) {
  EXPECT_EQ((Convert<int32_t, float>(NumberType::kFloat, NumberType::kInt32,
                                     {1.9f, -1.9f})),
            (std::vector<int32_t>{1, -1}));
  EXPECT_EQ((Convert<int8_t, double>(NumberType::kDouble, NumberType::kInt8,
                                     {1.9, -1.9})),
            (std::vector<int8_t>{1, -1}));
}

TEST(Convert, WrapsIntegersRound) {
  EXPECT_EQ((Convert<uint8_t, int32_t>(NumberType::kInt32, NumberType::kUint8,
                                       {-1, 300})),
            (std::vector<uint8_t>{255, 44}));
}

TEST(Convert, RoundsOnce) {
  // By way of double this would become a tie and go down.
  EXPECT_EQ(
      (Convert<float, int64_t>(NumberType::kInt64, NumberType::kFloat,
                               {(int64_t{1} << 60) + (1 << 30) * 64LL + 1})),
      (std::vector<float>{0x1p60f + 0x1p37f}));
  EXPECT_EQ((Convert<double, uint64_t>(NumberType::kUint64, NumberType::kDouble,
                                       {uint64_t{1} << 63})),
            (std::vector<double>{0x1p63}));
}

TEST(Convert, GoesOverManyBlocks) {
  std::vector<int16_t> values(1000);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int16_t>(i - 500);
  }
  const auto result =
      Convert<double, int16_t>(NumberType::kInt16, NumberType::kDouble, values);
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(result[i], values[i]);
}

}  // namespace
}  // namespace sluice
