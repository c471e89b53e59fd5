// What passes its input on shares the memory.
#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

Tensor TwoNumbers() { return Tensor::Of<float>({2}, {1, 2}); }

TEST(Identity, SharesItsInput) {
  for (const char* name : {"Identity", "StopGradient", "PreventGradient",
                           "Snapshot", "IdentityN"}) {
    const Tensor x = TwoNumbers();
    OpTest op(name);
    op.AddInput(x);
    SLUICE_ASSERT_OK(op.Run());
    EXPECT_TRUE(op.output(0).SharesBufferWith(x)) << name;
  }
}

TEST(DeepCopy, HasMemoryOfItsOwn) {
  const Tensor x = TwoNumbers();
  OpTest op("DeepCopy");
  op.AddInput(x);
  SLUICE_ASSERT_OK(op.Run());
  EXPECT_FALSE(op.output(0).SharesBufferWith(x));
  EXPECT_TRUE(TensorsEqual(op.output(0), x));
}

TEST(EnsureShape, NamesTheTensorThatDoesNotFit) {
  OpTest op("EnsureShape");
  op.AddInput(TwoNumbers()).Attr("shape", PartialShape({3}));
  EXPECT_THAT(op.Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Shape of tensor input0 [2] is not compatible with "
                       "expected shape [3]."));
}

TEST(Bitcast, SharesItsInputAndChecksTheLastDimension) {
  const Tensor x = Tensor::Of<float>({2, 2}, {0, 1, 2, 3});
  OpTest op("Bitcast");
  op.AddInput(x).Attr("type", DType::kDouble);
  SLUICE_ASSERT_OK(op.Run());
  EXPECT_TRUE(op.output(0).SharesBufferWith(x));
  EXPECT_EQ(op.output(0).shape().DebugString(), "[2]");

  OpTest odd("Bitcast");
  odd.AddInput<float>({3}, {1, 2, 3}).Attr("type", DType::kDouble);
  EXPECT_THAT(odd.Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Cannot bitcast from float to double: shape [3]"));
}

TEST(Reshape, SharesItsInput) {
  const Tensor x = TwoNumbers();
  for (const char* name : {"Reshape", "ExpandDims"}) {
    OpTest op(name);
    op.AddInput(x).AddInput<int32_t>({1}, {-1});
    SLUICE_ASSERT_OK(op.Run());
    EXPECT_TRUE(op.output(0).SharesBufferWith(x)) << name;
  }
}

TEST(Reshape, RefusesShapesThatAreTooLarge) {
  OpTest op("Reshape");
  op.AddInput(TwoNumbers())
      .AddInput<int64_t>({3}, {int64_t{1} << 40, int64_t{1} << 40, -1});
  EXPECT_THAT(op.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 testing::HasSubstr("too large")));
}

}  // namespace
}  // namespace sluice
