#include "sluice/numeric/reduce.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <vector>

namespace sluice::numeric {
namespace {

template <ReduceOp op, typename T>
std::vector<T> Reduced(const std::vector<T>& in, std::vector<int64_t> dims,
                       const std::vector<int>& axes) {
  const auto reduced = std::make_unique<bool[]>(dims.size() + 1);
  for (int axis : axes) reduced[axis] = true;
  const ReducePlan plan(dims, {reduced.get(), dims.size()});
  std::vector<T> out(plan.kept, T(77));
  Reduce<op, T>(out.data(), in.data(), plan);
  return out;
}

// Every subset of the axes, against sums element by element.
TEST(Reduce, SumsOverAnySetOfDimensions) {
  const std::vector<int64_t> dims = {3, 4, 1, 5, 2};
  std::vector<int64_t> in(120);
  std::iota(in.begin(), in.end(), 1);
  for (int mask = 0; mask < 32; ++mask) {
    std::vector<int> axes;
    int64_t kept = 1;
    for (int d = 0; d < 5; ++d) {
      if (mask >> d & 1) {
        axes.push_back(d);
      } else {
        kept *= dims[d];
      }
    }
    std::vector<int64_t> want(kept);
    for (int64_t i = 0; i < 120; ++i) {
      int64_t rest = i, at = 0, step = 1;
      for (int d = 4; d >= 0; --d) {
        const int64_t index = rest % dims[d];
        rest /= dims[d];
        if (mask >> d & 1) continue;
        at += index * step;
        step *= dims[d];
      }
      want[at] += in[i];
    }
    EXPECT_EQ((Reduced<ReduceOp::kSum, int64_t>(in, dims, axes)), want) << mask;
  }
}

TEST(Reduce, SplitsWhatIsLarge) {
  const int64_t rows = 1500, columns = 300;
  std::vector<float> in(rows * columns);
  for (size_t i = 0; i < in.size(); ++i) in[i] = float(i % 7);
  double total = 0;
  std::vector<float> by_row(rows), by_column(columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      by_row[i] += in[i * columns + j];
      by_column[j] += in[i * columns + j];
      total += in[i * columns + j];
    }
  }
  EXPECT_EQ((Reduced<ReduceOp::kSum, float>(in, {rows, columns}, {1})), by_row);
  EXPECT_EQ((Reduced<ReduceOp::kSum, float>(in, {rows, columns}, {0})),
            by_column);
  EXPECT_EQ((Reduced<ReduceOp::kSum, float>(in, {rows, columns}, {0, 1}))[0],
            float(total));
}

TEST(Reduce, SumsAMillionFloatsExactlyEnough) {
  std::vector<float> in(1 << 20, 0.1f);
  const float sum = Reduced<ReduceOp::kSum, float>(in, {1 << 20}, {0})[0];
  EXPECT_NEAR(sum, double(0.1f) * (1 << 20), 0.2);
}

TEST(Reduce, OfNothingIsTheNeutralElement) {
  const std::vector<float> none;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ((Reduced<ReduceOp::kSum, float>(none, {2, 0}, {1})),
            (std::vector<float>{0, 0}));
  EXPECT_EQ((Reduced<ReduceOp::kProd, float>(none, {0}, {0}))[0], 1);
  EXPECT_EQ((Reduced<ReduceOp::kMax, float>(none, {0}, {0}))[0], -kInf);
  EXPECT_EQ((Reduced<ReduceOp::kMin, float>(none, {0}, {0}))[0], kInf);
}

TEST(Reduce, FindsExtremesOfLongRows) {
  std::vector<int32_t> in(100);
  for (int i = 0; i < 100; ++i) in[i] = (i * 37) % 101;
  EXPECT_EQ((Reduced<ReduceOp::kMax, int32_t>(in, {100}, {0}))[0], 100);
  EXPECT_EQ((Reduced<ReduceOp::kMin, int32_t>(in, {100}, {0}))[0], 0);
}

TEST(ArgExtreme, TakesTheFirstOfEquals) {
  const std::vector<float> in = {1, 3, 3, 0, 0, 2};
  std::vector<int64_t> out(2);
  ArgExtreme<float, int64_t>(out.data(), in.data(), 2, 3, 1, true);
  EXPECT_EQ(out, (std::vector<int64_t>{1, 2}));
  ArgExtreme<float, int64_t>(out.data(), in.data(), 2, 3, 1, false);
  EXPECT_EQ(out, (std::vector<int64_t>{0, 0}));
}

TEST(Scan, RunsBothWaysWithAndWithoutTheElement) {
  const std::vector<int32_t> in = {1, 2, 3};
  std::vector<int32_t> out(3);
  Scan<int32_t>(out.data(), in.data(), 1, 3, 1, {});
  EXPECT_EQ(out, (std::vector<int32_t>{1, 3, 6}));
  Scan<int32_t>(out.data(), in.data(), 1, 3, 1,
                {.exclusive = true, .reverse = true});
  EXPECT_EQ(out, (std::vector<int32_t>{5, 3, 0}));
  Scan<int32_t>(out.data(), in.data(), 1, 3, 1,
                {.product = true, .reverse = true});
  EXPECT_EQ(out, (std::vector<int32_t>{6, 6, 3}));
}

}  // namespace
}  // namespace sluice::numeric
