#include "sluice/numeric/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sluice::numeric {
namespace {

// How far `got` is from `want`, in units of the last place of a float.
double Ulps(float got, double want) {
  if (got == static_cast<float>(want)) return 0;
  const double size = std::max(std::abs(want), 1.1754944e-38);
  return std::abs(got - want) / std::ldexp(1.0, std::ilogb(size) - 23);
}

TEST(VectorMath, StaysWithinThreeUlps) {
  for (int i = 0; i < 200000; ++i) {
    const float x = -100 + i * 0.00093f;
    const double d = x;
    EXPECT_LT(Ulps(Exp(x), std::exp(d)), 3) << x;
    EXPECT_LT(Ulps(Tanh(x / 10), std::tanh(double(x / 10))), 3) << x;
    EXPECT_LT(Ulps(Sigmoid(x * 0.8f), 1 / (1 + std::exp(-double(x * 0.8f)))), 3)
        << x;
    const float positive = std::exp(x / 2);
    EXPECT_LT(Ulps(Log(positive), std::log(double(positive))), 3) << x;
    EXPECT_LT(Ulps(Log1p(positive), std::log1p(double(positive))), 3) << x;
  }
}

TEST(VectorMath, KnowsTheSpecialValues) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  EXPECT_EQ(Exp(kInf), kInf);
  EXPECT_EQ(Exp(-kInf), 0);
  EXPECT_EQ(Exp(200.0f), kInf);
  EXPECT_EQ(Exp(-200.0f), 0);
  EXPECT_EQ(Exp(0.0f), 1);
  EXPECT_TRUE(std::isnan(Exp(nan)));
  EXPECT_EQ(Log(0.0f), -kInf);
  EXPECT_EQ(Log(kInf), kInf);
  EXPECT_EQ(Log(1.0f), 0);
  EXPECT_TRUE(std::isnan(Log(-1.0f)));
  EXPECT_TRUE(std::isnan(Log(nan)));
  EXPECT_EQ(Log1p(kInf), kInf);
  EXPECT_EQ(Log1p(-1.0f), -kInf);
  EXPECT_EQ(Tanh(kInf), 1);
  EXPECT_EQ(Tanh(-kInf), -1);
  EXPECT_TRUE(std::isnan(Tanh(nan)));
  EXPECT_EQ(Sigmoid(-kInf), 0);
  EXPECT_EQ(Sigmoid(kInf), 1);
}

}  // namespace
}  // namespace sluice::numeric
