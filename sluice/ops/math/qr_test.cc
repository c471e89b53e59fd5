#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {
namespace qr_test {

using ::testing::HasSubstr;

constexpr int kRows = 5, kColumns = 3;

double InputAt(int i, int j) { return std::sin(1 + 2 * i + 7 * j) + (i == j); }

// Of the matrix above; q has `rank` columns.
void ExpectDecomposes(OpTest& op, int rank) {
  const auto q = op.output(0).data<double>();
  const auto r = op.output(1).data<double>();
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kColumns; ++j) {
      double product = 0;
      for (int k = 0; k < rank; ++k) {
        product += q[i * rank + k] * r[k * kColumns + j];
      }
      EXPECT_NEAR(product, InputAt(i, j), 1e-12);
      if (i < rank && j < i) {
        EXPECT_EQ(r[i * kColumns + j], 0);
      }
    }
  }
  for (int a = 0; a < rank; ++a) {
    for (int b = 0; b < rank; ++b) {
      double dot = 0;
      for (int i = 0; i < kRows; ++i) dot += q[i * rank + a] * q[i * rank + b];
      EXPECT_NEAR(dot, a == b ? 1 : 0, 1e-12);
    }
  }
}

TEST(Qr, MakesAnOrthogonalAndATriangularMatrix) {
  for (const bool full : {false, true}) {
    OpTest op("Qr");
    op.Attr("full_matrices", full);
    std::vector<double> values;
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kColumns; ++j) values.push_back(InputAt(i, j));
    }
    op.AddInput(
        Tensor::Of<double>({kRows, kColumns}, std::span<const double>(values)));
    SLUICE_ASSERT_OK(op.Run());
    ExpectDecomposes(op, full ? kRows : kColumns);
  }
}

TEST(Qr, TurnsSignsAsLapackDoes) {
  OpTest op("Qr");
  op.AddInput<float>({2, 2}, {3, 0, 4, 5});
  SLUICE_ASSERT_OK(op.Run());
  ExpectClose(op.output(1), Tensor::Of<float>({2, 2}, {-5, -4, 0, 3}));
}

TEST(Qr, KeepsAShapeThatIsOnlyPartlyKnown) {
  EXPECT_EQ(InferredShape("Qr", {"[7,5,3]"}), "[7,5,3]");
  EXPECT_EQ(InferredShape("Qr", {"[?,3]"}), "[?,?]");
}

TEST(Qr, NeedsAMatrix) {
  OpTest op("Qr");
  op.AddInput<float>({2}, {3, 0});
  EXPECT_THAT(op.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("rank >= 2")));
}

}  // namespace qr_test
}  // namespace
}  // namespace sluice
