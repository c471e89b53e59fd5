#include "sluice/tensor/tensor.h"

#include <gtest/gtest.h>

#include "sluice/base/sanitizers.h"

namespace sluice {
namespace {

TEST(Tensor, CopiesShareTheBufferAndClonesDoNot) {
  const Tensor a = Tensor::Vector<float>({1, 2, 3});
  EXPECT_TRUE(a.unique());
  const Tensor b = a;
  EXPECT_FALSE(a.unique());
  EXPECT_TRUE(a.SharesBufferWith(b));
  EXPECT_FALSE(a.Clone().SharesBufferWith(a));
  EXPECT_TRUE(TensorsEqual(a, a.Clone()));
}

TEST(Tensor, StringsStartEmptyAndAreDestroyed) {
  Tensor a(DType::kString, {2});
  EXPECT_EQ(a.data<std::string>()[1], "");
  a.mutable_data<std::string>()[1] = std::string(1000, 'x');
  EXPECT_EQ(a.Clone().data<std::string>()[1].size(), 1000u);
}

TEST(Tensor, RowsAreAViewThatKeepsItsParentAlive) {
  Tensor rows;
  {
    const Tensor a = Tensor::Of<int32_t>({3, 2}, {1, 2, 3, 4, 5, 6});
    rows = a.Rows(1, 3);
  }
  EXPECT_EQ(rows.shape(), Shape({2, 2}));
  EXPECT_EQ(rows.data<int32_t>()[0], 3);
  EXPECT_FALSE(rows.Owned().buffer()->borrowed());
}

TEST(Tensor, BorrowedMemoryIsGivenBackOnce) {
  float memory[2] = {1, 2};
  int given_back = 0;
  {
    const Tensor a = Tensor::FromBuffer(
        DType::kFloat, {2},
        Buffer::Borrow(memory, sizeof(memory), [&] { ++given_back; }));
    const Tensor b = a;
  }
  EXPECT_EQ(given_back, 1);
}

TEST(Tensor, HugeShapesAreAnErrorNotACrash) {
  const Shape huge({int64_t{1} << 50, 1 << 10});
  EXPECT_EQ(Tensor::Create(DType::kDouble, huge).status().code(),
            absl::StatusCode::kResourceExhausted);
  const int64_t dims[] = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_FALSE(Shape::Create(dims).ok());
  const int64_t hidden[] = {0, int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_FALSE(Shape::Create(hidden).ok());
}

// A kernel joins sizes that it was given; a zero among them hides nothing.
TEST(Tensor, ShapesThatGrowTooLargeAreAnErrorNotACrash) {
  Shape shape({int64_t{1} << 32, 0});
  EXPECT_EQ(shape.size(), 0);
  shape.AddDim(int64_t{1} << 32);
  EXPECT_EQ(shape.size(), Shape::kTooMany);
  for (const DType dtype : {DType::kBool, DType::kFloat, DType::kString}) {
    EXPECT_EQ(Tensor::Create(dtype, shape).status().code(),
              absl::StatusCode::kResourceExhausted);
  }
  shape.RemoveDim(0);
  EXPECT_EQ(shape.size(), 0);
  shape.SetDim(0, 3);
  EXPECT_EQ(shape.size(), int64_t{3} << 32);
}

TEST(Tensor, TooManyStringsAreAnErrorNotACrash) {
  // Their bytes, 2^62 * 32, would be counted as 0.
  EXPECT_EQ(Tensor::Create(DType::kString, {int64_t{1} << 62}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

// Where the address sanitizer watches, nothing is pooled.
constexpr bool kPooled = !kAddressSanitizer;

TEST(Tensor, MemoryOfAStepServesTheNext) {
  for (int i = 0; i < 3; ++i) Tensor warm(DType::kFloat, {1000});
  const int64_t before = GetBufferPoolStats().system_allocations;
  for (int i = 0; i < 100; ++i) Tensor again(DType::kFloat, {1000});
  EXPECT_TRUE(!kPooled || GetBufferPoolStats().system_allocations == before);
}

TEST(PartialShape, MergesWhatBothSidesKnow) {
  EXPECT_EQ(PartialShape({-1, 3}).MergeWith({2, -1})->DebugString(), "[2,3]");
  EXPECT_FALSE(PartialShape({2}).MergeWith({3}).ok());
  EXPECT_EQ(PartialShape().MergeWith({4})->DebugString(), "[4]");
  EXPECT_EQ(PartialShape().DebugString(), "<unknown>");
}

TEST(DType, NamesGoBothWays) {
  for (int i = 1; i <= 23; ++i) {
    const DType type = static_cast<DType>(i);
    EXPECT_EQ(ParseDType(DTypeName(type)), type);
    EXPECT_EQ(ParseDType(DTypeName(RefType(type))), RefType(type));
  }
  EXPECT_EQ(ParseDType("DT_BFLOAT16"), DType::kBfloat16);
  EXPECT_EQ(ParseDType("float32"), DType::kFloat);
  EXPECT_EQ(ParseDType("nonsense"), DType::kInvalid);
}

}  // namespace
}  // namespace sluice
