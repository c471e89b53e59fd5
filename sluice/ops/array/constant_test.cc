#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

TEST(Const, GivesItsValueWithoutACopy) {
  const Tensor value = Tensor::Of<float>({2}, {1, 2});
  OpTest op("Const");
  op.Attr("value", value).Attr("dtype", DType::kFloat);
  SLUICE_ASSERT_OK(op.Run());
  EXPECT_TRUE(op.output(0).SharesBufferWith(value));
  EXPECT_EQ(op.node().output_shape(0).DebugString(), "[2]");
}

TEST(Const, RefusesAValueOfAnotherType) {
  OpTest op("Const");
  op.Attr("value", Tensor::Scalar<float>(1)).Attr("dtype", DType::kInt32);
  EXPECT_THAT(op.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 testing::HasSubstr("Type mismatch")));
}

TEST(Placeholder, AsksForItsValue) {
  OpTest op("Placeholder");
  op.Attr("dtype", DType::kFloat).Attr("shape", PartialShape({-1, 2}));
  EXPECT_THAT(op.Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "You must feed a value for placeholder tensor 'op' with "
                       "dtype float and shape [?,2]"));
}

TEST(Placeholder, SaysNothingOfAShapeItDoesNotKnow) {
  for (const PartialShape& shape : {PartialShape(), PartialShape::Scalar()}) {
    OpTest op("Placeholder");
    op.Attr("dtype", DType::kInt64).Attr("shape", shape);
    EXPECT_THAT(op.Run(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         "You must feed a value for placeholder tensor 'op' "
                         "with dtype int64"));
  }
}

TEST(Placeholder, OfAnOldProducerIsNeverKnownToBeScalar) {
  Graph graph;
  graph.versions().producer = 21;
  const auto node = graph.AddNode(
      {"p",
       "Placeholder",
       {},
       {},
       {{"dtype", DType::kFloat}, {"shape", PartialShape::Scalar()}},
       ""});
  SLUICE_ASSERT_OK(node.status());
  EXPECT_FALSE((*node)->output_shape(0).known_rank());
}

TEST(PlaceholderWithDefault, GivesTheDefault) {
  OpTest op("PlaceholderWithDefault");
  op.AddInput<float>({2}, {1, 2}).Attr("shape", PartialShape({-1}));
  SLUICE_ASSERT_OK(op.Run());
  ExpectClose(op.output(0), Tensor::Of<float>({2}, {1, 2}));
}

}  // namespace
}  // namespace sluice
