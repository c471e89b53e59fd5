#include "sluice/numeric/broadcast.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::numeric {
namespace {

using Dims = std::vector<int64_t>;

// The offsets in a and b of each element of the result, by the definition.
std::vector<std::pair<int64_t, int64_t>> Expected(const Dims& a, const Dims& b,
                                                  const Dims& out) {
  std::vector<std::pair<int64_t, int64_t>> result;
  int64_t size = 1;
  for (int64_t d : out) size *= d;
  for (int64_t i = 0; i < size; ++i) {
    const auto offset = [&](const Dims& dims) {
      int64_t rest = i, at = 0, step = 1;
      for (size_t k = 1; k <= out.size(); ++k) {
        const int64_t index = rest % out[out.size() - k];
        rest /= out[out.size() - k];
        if (k > dims.size()) continue;
        const int64_t dim = dims[dims.size() - k];
        if (dim != 1) at += index * step;
        step *= dim;
      }
      return at;
    };
    result.emplace_back(offset(a), offset(b));
  }
  return result;
}

void ExpectPlanFollowsTheDefinition(const Dims& a, const Dims& b) {
  BroadcastPlan plan;
  ASSERT_TRUE(plan.Make(a, b));
  const Dims out(plan.dims().begin(), plan.dims().end());
  std::vector<std::pair<int64_t, int64_t>> got;
  const int64_t middle = plan.rows() / 2;  // Any row may come first.
  for (auto [begin, end] :
       {std::pair(int64_t{0}, middle), std::pair(middle, plan.rows())}) {
    plan.ForRows(begin, end, [&](int64_t row, int64_t x, int64_t y) {
      EXPECT_EQ(row * plan.row_size(), int64_t(got.size()));
      for (int64_t i = 0; i < plan.row_size(); ++i) {
        got.emplace_back(x + i * plan.a_step(), y + i * plan.b_step());
      }
    });
  }
  EXPECT_EQ(got, Expected(a, b, out));
}

TEST(BroadcastPlan, WalksThroughBothArraysByTheDefinition) {
  ExpectPlanFollowsTheDefinition({2, 3}, {3});
  ExpectPlanFollowsTheDefinition({2, 3}, {2, 1});
  ExpectPlanFollowsTheDefinition({3, 1}, {4});
  ExpectPlanFollowsTheDefinition({}, {2, 2});
  ExpectPlanFollowsTheDefinition({2, 1, 3, 1}, {5, 1, 4});
  ExpectPlanFollowsTheDefinition({1, 1}, {1});
  ExpectPlanFollowsTheDefinition({2, 3, 4, 5}, {3, 1, 5});
  ExpectPlanFollowsTheDefinition({2, 0, 3}, {1, 3});
}

TEST(BroadcastPlan, JoinsDimensionsThatNeitherBroadcasts) {
  BroadcastPlan plan;
  ASSERT_TRUE(plan.Make(Dims{2, 3, 4}, Dims{3, 4}));
  EXPECT_EQ(plan.row_size(), 12);
  EXPECT_EQ(plan.rows(), 2);
}

TEST(BroadcastPlan, RefusesSizesThatDiffer) {
  BroadcastPlan plan;
  EXPECT_FALSE(plan.Make(Dims{2, 3}, Dims{2, 4}));
  EXPECT_FALSE(plan.Make(Dims{2}, Dims{0}));
}

}  // namespace
}  // namespace sluice::numeric
