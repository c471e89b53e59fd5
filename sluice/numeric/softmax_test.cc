#include "sluice/numeric/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sluice/numeric/add_n.h"

namespace sluice::numeric {
namespace {

std::vector<double> Logits(int64_t n) {
  std::vector<double> x(n);
  for (int64_t i = 0; i < n; ++i) x[i] = std::sin(i * 1.7) * 5;
  return x;
}

template <typename T>
void ExpectSoftmax(int64_t rows, int64_t classes) {
  const std::vector<double> exact = Logits(rows * classes);
  const std::vector<T> x(exact.begin(), exact.end());
  std::vector<T> y(x.size()), log_y(x.size());
  Softmax<T>(y.data(), x.data(), rows, classes, false);
  Softmax<T>(log_y.data(), x.data(), rows, classes, true);
  for (int64_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < classes; ++j) {
      sum += std::exp(double(x[i * classes + j]));
    }
    for (int64_t j = 0; j < classes; ++j) {
      const double want = double(x[i * classes + j]) - std::log(sum);
      EXPECT_NEAR(log_y[i * classes + j], want, 1e-5);
      EXPECT_NEAR(y[i * classes + j], std::exp(want), 1e-6);
    }
  }
}

TEST(Softmax, NormalisesRowsOfAnyLength) {
  for (int64_t classes : {1, 3, 8, 10, 300}) {
    ExpectSoftmax<float>(4, classes);
    ExpectSoftmax<double>(4, classes);
  }
}

TEST(Softmax, DoesNotOverflow) {
  const std::vector<float> x = {1000, 1000, -1000};
  std::vector<float> y(3);
  Softmax<float>(y.data(), x.data(), 1, 3, false);
  EXPECT_EQ(y, (std::vector<float>{0.5, 0.5, 0}));
}

TEST(CrossEntropy, AgreesWithTheSparseForm) {
  const std::vector<double> x = Logits(6);
  const std::vector<double> one_hot = {0, 0, 1, 1, 0, 0};
  const std::vector<int32_t> labels = {2, 0};
  std::vector<double> loss(2), back(6), sparse_loss(2), sparse_back(6);
  CrossEntropy<double>(loss.data(), back.data(), {x.data(), 3, 1},
                       {one_hot.data(), 3, 1}, 2, 3);
  SparseCrossEntropy<double, int32_t>(sparse_loss.data(), sparse_back.data(),
                                      x.data(), labels.data(), 2, 3);
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(loss[i], sparse_loss[i], 1e-12);
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(back[i], sparse_back[i], 1e-12);
}

TEST(AddN, MayWriteOverAnyInput) {
  std::vector<float> a(600, 1), b(600, 2);
  const float* inputs[] = {b.data(), a.data(), a.data(), b.data(), a.data()};
  AddN<float>(a.data(), inputs, 600);
  EXPECT_EQ(a, std::vector<float>(600, 7));
}

}  // namespace
}  // namespace sluice::numeric
