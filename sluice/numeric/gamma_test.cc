#include "sluice/numeric/gamma.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sluice {
namespace {

TEST(Digamma, KnowsItsValues) {
  EXPECT_NEAR(numeric::Digamma(1), -0.57721566490153286, 1e-14);
  EXPECT_NEAR(numeric::Digamma(0.5), -1.9635100260214235, 1e-14);
  EXPECT_NEAR(numeric::Digamma(-0.5), 0.03648997397857652, 1e-14);
  EXPECT_TRUE(std::isinf(numeric::Digamma(-3)));
}

struct Derivative {
  double alpha, sample, value;
};

TEST(GammaSampleDerivative, HasTheValuesOfTensorFlow) {
  const Derivative recorded[] = {
      {0.001, 1e-6, 0.013239952850876239}, {0.001, 49, 984.7959149574464},
      {0.5, 0.1, 0.5097655670826974},      {0.5, 1.5, 2.239530253084199},
      {1, 0.9, 1.111804375883007},         {1, 51, 4.5282789269637735},
      {3, 1.5, 0.7315328635126538},        {3, 4, 1.2164969985224419},
      {50, 49, 0.9932388452214483},        {50, 51, 1.013307117039099},
      {1e4, 10001, 1.0000666660004738},    {1e6, 0.1, 1.6118097762766501e-06},
  };
  for (const Derivative& d : recorded) {
    EXPECT_NEAR(numeric::GammaSampleDerivative(d.alpha, d.sample) / d.value, 1,
                1e-11)
        << d.alpha << " " << d.sample;
  }
}

// A sample at its own large shape moves along with it: 1 + 1 / (6 alpha) + ….
TEST(GammaSampleDerivative, ConvergesForLargeShapes) {
  for (double alpha : {1e4, 1e6, 1e8}) {
    EXPECT_NEAR(numeric::GammaSampleDerivative(alpha, alpha),
                1 + 1 / (6 * alpha), 1e-8)
        << alpha;
  }
}

TEST(GammaSampleDerivative, IsZeroAtZeroAndNothingBelow) {
  EXPECT_EQ(numeric::GammaSampleDerivative(1, 0), 0);
  EXPECT_TRUE(std::isnan(numeric::GammaSampleDerivative(-1, 1)));
  EXPECT_TRUE(std::isnan(numeric::GammaSampleDerivative(0, 1)));
  EXPECT_TRUE(std::isnan(numeric::GammaSampleDerivative(2, -1)));
}

// The means and variances of 20,000 numbers, each with its 256 blocks.
template <typename Draw>
void ExpectMoments(double mean, double variance, Draw draw) {
  constexpr int kCount = 20000;
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    const double x = draw(Philox::FromSeeds(3, 4).Skip(i * 256));
    sum += x;
    squares += (x - mean) * (x - mean);
  }
  EXPECT_NEAR(sum / kCount, mean, 5 * std::sqrt(variance / kCount));
  EXPECT_NEAR(squares / kCount / variance, 1, 0.1);
}

TEST(DrawGamma, HasMeanAndVarianceOfItsShape) {
  for (double alpha : {0.3, 1.0, 2.5, 40.0}) {
    ExpectMoments(alpha, alpha,
                  [=](const Philox& s) { return DrawGamma(s, alpha); });
  }
}

TEST(DrawPoisson, HasMeanAndVarianceOfItsRate) {
  for (double rate : {0.5, 4.0, 9.99, 10.0, 1000.0}) {
    ExpectMoments(rate, rate,
                  [=](const Philox& s) { return DrawPoisson(s, rate, 1e9); });
  }
}

TEST(DrawPoisson, EndsForRatesThatAreNone) {
  const Philox stream = Philox::FromSeeds(1, 1);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(DrawPoisson(stream, 0, 1e9), 0);
  EXPECT_EQ(DrawPoisson(stream, -1, 1e9), 0);
  EXPECT_EQ(DrawPoisson(stream, infinity, 1e9), infinity);
  EXPECT_TRUE(std::isnan(DrawPoisson(stream, std::nan(""), 1e9)));
}

}  // namespace
}  // namespace sluice
