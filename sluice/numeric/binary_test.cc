#include "sluice/numeric/binary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace sluice::numeric {
namespace {

template <BinaryOp op, typename T>
T Of(T a, T b) {
  T result;
  BinaryMap<op, T>(&result, &a, 1, &b, 1, 1);
  return result;
}

TEST(BinaryMap, DividesIntegersAsPythonDoes) {
  for (int x = -7; x <= 7; ++x) {
    for (int y : {-3, -2, -1, 1, 2, 3}) {
      const int floor = static_cast<int>(std::floor(double(x) / y));
      EXPECT_EQ((Of<BinaryOp::kFloorDiv, int32_t>(x, y)), floor);
      EXPECT_EQ((Of<BinaryOp::kFloorMod, int32_t>(x, y)), x - floor * y);
      EXPECT_EQ((Of<BinaryOp::kDiv, int32_t>(x, y)), x / y);
      EXPECT_EQ((Of<BinaryOp::kTruncateMod, int32_t>(x, y)), x % y);
    }
  }
}

TEST(BinaryMap, SurvivesTheSmallestIntegerOverMinusOne) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  EXPECT_EQ((Of<BinaryOp::kDiv, int64_t>(kMin, -1)), kMin);
  EXPECT_EQ((Of<BinaryOp::kFloorDiv, int64_t>(kMin, -1)), kMin);
  EXPECT_EQ((Of<BinaryOp::kFloorMod, int64_t>(kMin, -1)), 0);
  EXPECT_EQ((Of<BinaryOp::kTruncateMod, int64_t>(kMin, -1)), 0);
}

TEST(BinaryMap, GivesTheSameForEveryLengthAndStep) {
  for (int n : {1, 7, 16, 33, 1000}) {
    std::vector<float> a(n), b(n), out(n);
    for (int i = 0; i < n; ++i) {
      a[i] = 0.5f * i - 3;
      b[i] = 2.0f - 0.25f * i;
    }
    BinaryMap<BinaryOp::kSub, float>(out.data(), a.data(), 1, b.data(), 1, n);
    for (int i = 0; i < n; ++i) EXPECT_EQ(out[i], a[i] - b[i]);
    BinaryMap<BinaryOp::kSub, float>(out.data(), a.data(), 0, b.data(), 1, n);
    for (int i = 0; i < n; ++i) EXPECT_EQ(out[i], a[0] - b[i]);
    BinaryMap<BinaryOp::kSub, float>(out.data(), a.data(), 1, b.data(), 0, n);
    for (int i = 0; i < n; ++i) EXPECT_EQ(out[i], a[i] - b[0]);
    out = a;
    BinaryMap<BinaryOp::kSub, float>(out.data(), out.data(), 1, b.data(), 1, n);
    for (int i = 0; i < n; ++i) EXPECT_EQ(out[i], a[i] - b[i]);
  }
}

TEST(BinaryMap, RaisesIntegersToPowers) {
  EXPECT_EQ((Of<BinaryOp::kPow, int32_t>(3, 4)), 81);
  EXPECT_EQ((Of<BinaryOp::kPow, int32_t>(-2, 5)), -32);
  EXPECT_EQ((Of<BinaryOp::kPow, int64_t>(0, 0)), 1);
}

TEST(BinaryMap, SquaresByTheScalarTwo) {
  std::vector<float> x = {-3, 0.1f, 5}, out(3);
  const float two = 2;
  BinaryMap<BinaryOp::kPow, float>(out.data(), x.data(), 1, &two, 0, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(out[i], x[i] * x[i]);
}

TEST(BinaryMap, ComparesAndJoinsStrings) {
  const std::string a = "ab", b = "c";
  bool equal = true;
  BinaryMap<BinaryOp::kEqual, std::string>(&equal, &a, 1, &b, 1, 1);
  EXPECT_FALSE(equal);
  std::string sum;
  BinaryMap<BinaryOp::kAdd, std::string>(&sum, &a, 1, &b, 1, 1);
  EXPECT_EQ(sum, "abc");
}

TEST(BinaryRows, WorksOnTheNamedRowsOneAfterTheOther) {
  constexpr int64_t kRows = 50, kRow = 21, kCount = 120;
  std::vector<float> table(kRows * kRow), updates(kCount * kRow);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);
  for (size_t i = 0; i < updates.size(); ++i) {
    updates[i] = static_cast<float>(i % 7);
  }
  std::vector<int32_t> at(kCount);
  for (int i = 0; i < kCount; ++i) at[i] = i * i % 37;  // Some several times.
  std::vector<float> expected = table;
  for (int64_t i = 0; i < kCount * kRow; ++i) {
    float& x = expected[at[i / kRow] * kRow + i % kRow];
    x = x * 0.5f;
    x -= updates[i];
  }
  const float half = 0.5f;
  for (int64_t i = 0; i < kCount; ++i) {
    BinaryRows<BinaryOp::kMul>(table.data(), kRow, &at[i], 1, &half, 0);
    BinaryRows<BinaryOp::kSub>(table.data(), kRow, &at[i], 1,
                               &updates[i * kRow], 1);
  }
  EXPECT_EQ(table, expected);

  std::vector<int64_t> wide(at.begin(), at.end());
  std::vector<float> by_one = table;
  BinaryRows<BinaryOp::kAdd>(table.data(), kRow, wide.data(), kCount,
                             updates.data(), 1);
  for (int64_t i = 0; i < kCount * kRow; ++i) {
    by_one[at[i / kRow] * kRow + i % kRow] += updates[i];
  }
  EXPECT_EQ(table, by_one);
}

}  // namespace
}  // namespace sluice::numeric
