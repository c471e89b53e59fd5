// What the recordings are too small for: tensors that are shared, large, or
// larger than memory.
#include <numeric>

#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

Tensor Counting(const Shape& shape) {
  Tensor tensor(DType::kInt32, shape);
  const auto data = tensor.mutable_data<int32_t>();
  std::iota(data.begin(), data.end(), 0);
  return tensor;
}

TEST(Slice, SharesRangesOfRows) {
  const Tensor x = Counting({40, 20});
  OpTest op("Slice");
  op.AddInput(x)
      .AddInput<int32_t>({2}, {1, 0})
      .AddInput<int32_t>({2}, {30, 20});
  SLUICE_ASSERT_OK(op.Run());
  EXPECT_EQ(op.output(0).raw(), static_cast<const int32_t*>(x.raw()) + 20);
  EXPECT_EQ(op.output(0).shape().DebugString(), "[30,20]");
}

TEST(StridedSlice, SharesRangesOfRows) {
  const Tensor x = Counting({40, 20});
  OpTest op("StridedSlice");
  op.AddInput(x)
      .AddInput<int32_t>({1}, {2})
      .AddInput<int32_t>({1}, {40})
      .AddInput<int32_t>({1}, {1});
  SLUICE_ASSERT_OK(op.Run());
  EXPECT_EQ(op.output(0).raw(), static_cast<const int32_t*>(x.raw()) + 40);
}

TEST(StridedSlice, TakesStridesThatNoDimensionHas) {
  OpTest op("StridedSlice");
  op.AddInput(Counting({4, 4}))
      .AddInput<int64_t>({2}, {1, INT64_MIN})
      .AddInput<int64_t>({2}, {INT64_MAX, INT64_MAX})
      .AddInput<int64_t>({2}, {INT64_MAX, 3});
  SLUICE_ASSERT_OK(op.Run());
  ExpectClose(op.output(0), Tensor::Of<int32_t>({1, 2}, {4, 7}));
}

TEST(Unpack, SharesTheRows) {
  const Tensor x = Counting({2, 3});
  OpTest op("Unpack");
  op.AddInput(x).Attr("num", 2);
  SLUICE_ASSERT_OK(op.Run());
  EXPECT_EQ(op.output(1).raw(), static_cast<const int32_t*>(x.raw()) + 3);
}

TEST(Split, SharesTheRows) {
  const Tensor x = Counting({4, 3});
  OpTest op("Split");
  op.AddInput<int32_t>({}, {0}).AddInput(x).Attr("num_split", 2);
  SLUICE_ASSERT_OK(op.Run());
  EXPECT_EQ(op.output(1).raw(), static_cast<const int32_t*>(x.raw()) + 6);
}

TEST(SplitV, RefusesSizesThatDoNotAddUp) {
  OpTest op("SplitV");
  op.AddInput(Counting({4}))
      .AddInput<int32_t>({2}, {6, -2})
      .AddInput<int32_t>({}, {0})
      .Attr("num_split", 2);
  EXPECT_THAT(op.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 testing::HasSubstr("must be >= 0. Got: -2")));
}

TEST(Transpose, SharesWhenOnlyOnesMove) {
  const Tensor x = Counting({2, 1, 3});
  OpTest op("Transpose");
  op.AddInput(x).AddInput<int32_t>({3}, {1, 0, 2});
  SLUICE_ASSERT_OK(op.Run());
  EXPECT_TRUE(op.output(0).SharesBufferWith(x));
  EXPECT_EQ(op.output(0).shape().DebugString(), "[1,2,3]");
}

TEST(Transpose, MovesLargeTensorsInParts) {
  const int64_t rows = 300, columns = 700;
  OpTest op("Transpose");
  op.AddInput(Counting({rows, columns})).AddInput<int32_t>({2}, {1, 0});
  SLUICE_ASSERT_OK(op.Run());
  const auto y = op.output(0).data<int32_t>();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      ASSERT_EQ(y[c * rows + r], r * columns + c);
    }
  }
}

TEST(Concat, MovesLargeTensorsInParts) {
  const Tensor x = Counting({1000, 300});
  OpTest op("ConcatV2");
  op.AddInput(x).AddInput(x).AddInput<int32_t>({}, {1});
  SLUICE_ASSERT_OK(op.Run());
  const auto y = op.output(0).data<int32_t>();
  for (int64_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(y[i / 300 * 600 + i % 300], i);
    ASSERT_EQ(y[i / 300 * 600 + 300 + i % 300], i);
  }
}

TEST(Fill, RefusesTensorsThatMemoryCannotHold) {
  OpTest too_large("Fill");
  too_large.AddInput<int64_t>({2}, {int64_t{1} << 40, int64_t{1} << 40})
      .AddInput<float>({}, {1});
  EXPECT_EQ(too_large.Run().code(), absl::StatusCode::kInvalidArgument);

  OpTest large("Fill");
  large.AddInput<int64_t>({1}, {int64_t{1} << 50}).AddInput<float>({}, {1});
  EXPECT_EQ(large.Run().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Tile, RefusesSizesThatOverflow) {
  OpTest op("Tile");
  op.AddInput(Counting({4})).AddInput<int64_t>({1}, {INT64_MAX});
  EXPECT_EQ(op.Run().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Range, RefusesMoreNumbersThanThereAre) {
  OpTest op("Range");
  op.AddInput<int64_t>({}, {INT64_MIN})
      .AddInput<int64_t>({}, {INT64_MAX})
      .AddInput<int64_t>({}, {1});
  EXPECT_EQ(op.Run().code(), absl::StatusCode::kInvalidArgument);

  OpTest nan("Range");
  nan.AddInput<float>({}, {0})
      .AddInput<float>({}, {std::numeric_limits<float>::quiet_NaN()})
      .AddInput<float>({}, {1});
  EXPECT_EQ(nan.Run().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Gather, CopiesLargeTablesInParts) {
  const Tensor table = Counting({1000, 16});
  Tensor indices(DType::kInt64, {20000});
  for (int64_t i = 0; i < indices.size(); ++i) {
    indices.mutable_data<int64_t>()[i] = i * 7 % 1000;
  }
  OpTest op("GatherV2");
  op.AddInput(table).AddInput(indices).AddInput<int32_t>({}, {0});
  SLUICE_ASSERT_OK(op.Run());
  const auto y = op.output(0).data<int32_t>();
  for (int64_t i = 0; i < indices.size(); ++i) {
    for (int64_t k = 0; k < 16; ++k) {
      ASSERT_EQ(y[i * 16 + k], i * 7 % 1000 * 16 + k);
    }
  }
}

TEST(Gather, RefusesAnyIndexIntoAnEmptyTable) {
  OpTest op("GatherV2");
  op.AddInput(Counting({0, 2}))
      .AddInput<int32_t>({1}, {0})
      .AddInput<int32_t>({}, {0});
  EXPECT_THAT(op.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 "indices[0] = 0 is not in [0, 0)"));
}

TEST(Unique, FindsAllOfManyValues) {
  Tensor x(DType::kInt64, {100000});
  for (int64_t i = 0; i < x.size(); ++i) {
    x.mutable_data<int64_t>()[i] = i % 777 * 4096;
  }
  OpTest op("UniqueWithCounts");
  op.AddInput(x);
  SLUICE_ASSERT_OK(op.Run());
  ASSERT_EQ(op.output(0).size(), 777);
  for (int64_t k = 0; k < 777; ++k) {
    ASSERT_EQ(op.output(0).data<int64_t>()[k], k * 4096);
    ASSERT_EQ(op.output(2).data<int32_t>()[k], k < 100000 % 777 ? 129 : 128);
  }
  for (int64_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(op.output(1).data<int32_t>()[i], i % 777);
  }
}

TEST(DynamicStitch, FillsRowsThatNobodyNamesWithZeros) {
  OpTest op("DynamicStitch");
  op.AddInput<int32_t>({3}, {3, 0, 3})
      .AddInput<float>({3}, {1, 2, 5})
      .Attr("N", 1);
  SLUICE_ASSERT_OK(op.Run());
  ExpectClose(op.output(0), Tensor::Of<float>({4}, {2, 0, 0, 5}));
}

TEST(Cast, ConvertsLargeTensorsInParts) {
  const Tensor x = Counting({300000});
  OpTest op("Cast");
  op.AddInput(x).Attr("DstT", DType::kDouble);
  SLUICE_ASSERT_OK(op.Run());
  for (int64_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(op.output(0).data<double>()[i], static_cast<double>(i));
  }
}

}  // namespace
}  // namespace sluice
