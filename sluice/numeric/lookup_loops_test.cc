// Loops over indices and bits: gather_rows, non_finite, select.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "sluice/numeric/gather_rows.h"
#include "sluice/numeric/non_finite.h"
#include "sluice/numeric/select.h"

namespace sluice {
namespace {

TEST(GatherRows, FindsTheFirstIndexOutside) {
  std::vector<int64_t> indices(3000, 5);
  EXPECT_EQ(FindIndexOutside(indices.data(), 3000, 6), -1);
  EXPECT_EQ(FindIndexOutside(indices.data(), 3000, 5), 0);
  indices[2500] = -1;
  indices[2700] = 9;
  EXPECT_EQ(FindIndexOutside(indices.data(), 3000, 6), 2500);
}

TEST(GatherRows, CopiesRowsOfAnyWidth) {
  for (const int64_t bytes : {1, 4, 8, 12, 16, 32, 64, 100}) {
    std::vector<char> table(20 * bytes), out(30 * bytes);
    for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<char>(i);
    std::vector<int32_t> indices(30);
    for (int i = 0; i < 30; ++i) indices[i] = i * 7 % 20;
    GatherRowBytes(table.data(), bytes, indices.data(), 30, out.data());
    for (int i = 0; i < 30; ++i) {
      EXPECT_EQ(std::memcmp(&out[i * bytes], &table[indices[i] * bytes], bytes),
                0);
    }
  }
}

NonFinite Find(const std::vector<float>& values) {
  std::vector<uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size() * 4);
  return FindNonFinite(bits.data(), static_cast<int64_t>(bits.size()),
                       0x7f800000u);
}

TEST(NonFinite, TellsInfinitiesFromNaNs) {
  std::vector<float> values(5000, std::numeric_limits<float>::max());
  EXPECT_FALSE(Find(values).any());
  values[10] = -std::numeric_limits<float>::infinity();
  EXPECT_TRUE(Find(values).inf);
  EXPECT_FALSE(Find(values).nan);
  values[4000] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(Find(values).inf);
  EXPECT_TRUE(Find(values).nan);
}

TEST(Select, ChoosesElementsOfEachSize) {
  const bool condition[3] = {true, false, true};
  for (const int64_t size : {1, 2, 4, 8, 16}) {
    alignas(16) char a[48], b[48], out[48];
    std::memset(a, 1, sizeof(a));
    std::memset(b, 2, sizeof(b));
    SelectElements(size, condition, a, b, out, 3);
    EXPECT_EQ(out[0], 1);
    EXPECT_EQ(out[size], 2);
    EXPECT_EQ(out[3 * size - 1], 1);
  }
}

}  // namespace
}  // namespace sluice
