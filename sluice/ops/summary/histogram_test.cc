#include "sluice/ops/summary/histogram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sluice {
namespace {

// The limit of the bucket a value is counted in.
double LimitOf(double value) {
  Histogram histogram;
  histogram.Add(std::vector<double>{value});
  pb::HistogramProto proto;
  histogram.ToProto(&proto);
  for (int i = 0; i < proto.bucket_size(); ++i) {
    if (proto.bucket(i) > 0) return proto.bucket_limit(i);
  }
  return NAN;
}

TEST(Histogram, CountsAValueInTheFirstBucketWithALimitAboveIt) {
  std::vector<double> positive;
  for (double limit = 1e-12; limit < 1e20; limit *= 1.1) {
    positive.push_back(limit);
  }
  for (size_t i = 0; i + 1 < positive.size(); ++i) {
    const double limit = positive[i];
    const double next = positive[i + 1];
    EXPECT_EQ(LimitOf(limit), next);
    EXPECT_EQ(LimitOf(std::nextafter(limit, 0)), limit);
    EXPECT_EQ(LimitOf(-next), -limit);
    EXPECT_EQ(LimitOf(std::nextafter(-next, -1e300)), -next);
  }
}

TEST(Histogram, TakesTheEdges) {
  constexpr double kMax = std::numeric_limits<double>::max();
  EXPECT_EQ(LimitOf(0), 1e-12);
  EXPECT_EQ(LimitOf(-0.0), 1e-12);
  EXPECT_EQ(LimitOf(std::numeric_limits<double>::denorm_min()), 1e-12);
  EXPECT_EQ(LimitOf(-std::numeric_limits<double>::denorm_min()), 0);
  EXPECT_EQ(LimitOf(1e20), kMax);
  EXPECT_EQ(LimitOf(kMax), kMax);
  EXPECT_LT(LimitOf(-kMax), -9e19);
}

}  // namespace
}  // namespace sluice
