#include "sluice/numeric/gemm.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace sluice::numeric {
namespace {

// Small whole numbers, so that sums are exact in any order.
template <typename T>
std::vector<T> Numbers(int64_t n, int seed) {
  std::vector<T> values(n);
  for (int64_t i = 0; i < n; ++i) {
    values[i] = static_cast<T>((i * 31 + seed * 17) % 11 - 5);
  }
  return values;
}

template <typename T>
void ExpectProduct(int64_t m, int64_t n, int64_t k, bool parallel = false) {
  const std::vector<T> a = Numbers<T>(m * k, 1);
  const std::vector<T> b = Numbers<T>(k * n, 2);
  for (int mode = 0; mode < 4; ++mode) {
    const bool ta = mode & 1, tb = mode & 2;
    std::vector<T> c(m * n, T(9));
    if (parallel) {
      ParallelMatMul<T>(c.data(), {a.data(), ta}, {b.data(), tb}, m, n, k);
    } else {
      MatMul<T>(c.data(), {a.data(), ta}, {b.data(), tb}, m, n, k);
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        T sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += (ta ? a[p * m + i] : a[i * k + p]) *
                 (tb ? b[j * k + p] : b[p * n + j]);
        }
        ASSERT_EQ(c[i * n + j], sum)
            << m << "x" << k << "x" << n << " mode " << mode;
      }
    }
  }
}

TEST(MatMul, MultipliesMatricesOfAnySizeAndOrder) {
  for (int64_t m : {1, 2, 3, 4, 6, 7, 13, 80}) {
    for (int64_t n : {1, 2, 3, 5, 16, 17, 40}) {
      for (int64_t k : {1, 2, 5, 33, 300}) ExpectProduct<float>(m, n, k);
    }
  }
}

TEST(MatMul, GoesBeyondOneBlock) {
  ExpectProduct<float>(75, 1030, 260);
  ExpectProduct<double>(80, 30, 600);
}

TEST(MatMul, MultipliesIntegersAndDoubles) {
  ExpectProduct<double>(9, 11, 20);
  ExpectProduct<int32_t>(9, 35, 20);
  ExpectProduct<int64_t>(9, 11, 20);
}

TEST(MatMul, OfNothingIsZero) {
  std::vector<float> c(6, 1.0f);
  MatMul<float>(c.data(), {nullptr}, {nullptr}, 2, 3, 0);
  EXPECT_EQ(c, std::vector<float>(6));
}

TEST(ParallelMatMul, SplitsTheLongerSide) {
  ExpectProduct<float>(300, 60, 200, true);
  ExpectProduct<float>(60, 300, 200, true);
  ExpectProduct<float>(1, 3000, 600, true);
}

TEST(MatMul, MayRunOnManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 20; ++i) ExpectProduct<float>(30 + t, 40 - t, 50 + t);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace sluice::numeric
