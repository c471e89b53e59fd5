#include "sluice/autodiff/testing/gradient_check.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

Tensor Point() { return Tensor::Vector<double>({1.5, -0.25}); }

TEST(MaxGradientError, IsSmallForARightGradient) {
  const Tensor other = Tensor::Vector<double>({3, 40});
  EXPECT_LT(MaxGradientError("TestTimes", Point(), other), 1e-8);
  EXPECT_LT(MaxGradientError("TestTimes", {Point(), other}, {},
                             {.static_shapes = false}),
            1e-8);
}

TEST(MaxGradientError, IsLargeForAWrongOne) {
  EXPECT_GT(MaxGradientError("TestWrongGradient", Point()), 0.1);
}

TEST(MaxGradientError, FailsTheTestIfTheOpCannotRun) {
  EXPECT_NONFATAL_FAILURE(MaxGradientError("TestOpaque", Point()),
                          "TestOpaque");
}

}  // namespace
}  // namespace sluice
