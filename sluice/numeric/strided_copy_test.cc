#include "sluice/numeric/strided_copy.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace sluice {
namespace {

struct TestDim {
  int64_t size, dst_step, src_step;
};

// Element by element, in the order the dimensions are given.
void SlowCopy(const std::vector<TestDim>& dims, size_t at, int32_t* dst,
              const int32_t* src) {
  if (at == dims.size()) {
    *dst = *src;
    return;
  }
  for (int64_t i = 0; i < dims[at].size; ++i) {
    SlowCopy(dims, at + 1, dst + i * dims[at].dst_step,
             src + i * dims[at].src_step);
  }
}

// Steps are in elements here.
void ExpectSameAsSlowCopy(const std::vector<TestDim>& dims, int64_t dst_size,
                          int64_t src_size, int64_t src_at = 0) {
  std::vector<int32_t> src(src_size), want(dst_size, -1), got(dst_size, -1);
  std::iota(src.begin(), src.end(), 0);
  SlowCopy(dims, 0, want.data(), src.data() + src_at);
  Box box;
  for (const TestDim& d : dims) box.Add(d.size, d.dst_step * 4, d.src_step * 4);
  box.Simplify(4);
  char* to = reinterpret_cast<char*>(got.data());
  const char* from = reinterpret_cast<const char*>(src.data() + src_at);
  const int64_t middle = box.outer_size() / 3;
  box.Copy(to, from, CopyRunOfSize(4), 0, middle);
  box.Copy(to, from, CopyRunOfSize(4), middle, box.outer_size());
  EXPECT_EQ(got, want);
}

TEST(StridedCopy, CopiesAWholeArray) {
  ExpectSameAsSlowCopy({{3, 20, 20}, {4, 5, 5}, {5, 1, 1}}, 60, 60);
}

TEST(StridedCopy, TransposesLargeMatricesByBlocks) {
  ExpectSameAsSlowCopy({{70, 130, 1}, {130, 1, 70}}, 9100, 9100);
  ExpectSameAsSlowCopy({{2, 9100, 9100}, {70, 130, 1}, {130, 1, 70}}, 18200,
                       18200);
}

TEST(StridedCopy, TransposesNarrowMatrices) {
  ExpectSameAsSlowCopy({{100, 3, 1}, {3, 1, 100}}, 300, 300);
  ExpectSameAsSlowCopy({{3, 100, 1}, {100, 1, 3}}, 300, 300);
}

TEST(StridedCopy, PermutesThreeDimensions) {
  // Sizes 4, 9, 10 read as (2, 0, 1).
  ExpectSameAsSlowCopy({{10, 36, 1}, {4, 9, 90}, {9, 1, 10}}, 360, 360);
  ExpectSameAsSlowCopy({{9, 40, 10}, {4, 10, 90}, {10, 1, 1}}, 360, 360);
}

TEST(StridedCopy, RepeatsElements) {
  ExpectSameAsSlowCopy({{7, 3, 1}, {3, 1, 0}}, 21, 7);
  ExpectSameAsSlowCopy({{7, 30, 0}, {30, 1, 1}}, 210, 30);
  ExpectSameAsSlowCopy({{100, 1, 0}}, 100, 1);
}

TEST(StridedCopy, ReadsBackwards) {
  ExpectSameAsSlowCopy({{5, 4, -4}, {4, 1, 1}}, 20, 20, 16);
  ExpectSameAsSlowCopy({{20, 1, -1}}, 20, 20, 19);
}

TEST(StridedCopy, CopiesNothingOfAnEmptyBox) {
  ExpectSameAsSlowCopy({{3, 5, 5}, {0, 1, 1}}, 15, 15);
}

TEST(StridedCopy, HasARunForEachElementSize) {
  for (int size : {1, 2, 4, 8, 16}) EXPECT_NE(CopyRunOfSize(size), nullptr);
  EXPECT_EQ(CopyRunOfSize(3), nullptr);
}

}  // namespace
}  // namespace sluice
