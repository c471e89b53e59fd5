#include "sluice/client/input.h"

#include "sluice/client/math.h"
#include "sluice/client/ops.h"
#include "sluice/client/testing/graph_fixture.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using LiteralTest = GraphFixture;

TEST_F(LiteralTest, NumbersKeepTheirTypeWhenNothingElseDecidesIt) {
  EXPECT_EQ(Literal(1).dtype(), DType::kInt32);
  EXPECT_EQ(Literal(int64_t{1}).dtype(), DType::kInt64);
  EXPECT_EQ(Literal(1LL).dtype(), DType::kInt64);
  EXPECT_EQ(Literal(1.0f).dtype(), DType::kFloat);
  EXPECT_EQ(Literal(1.0).dtype(), DType::kDouble);
  EXPECT_EQ(Literal(true).dtype(), DType::kBool);
  EXPECT_EQ(Literal("text").dtype(), DType::kString);
}

TEST_F(LiteralTest, ListsNestAndTakeTheWidestType) {
  const Literal matrix = {{1, 2, 3}, {4.5, 5, 6}};
  EXPECT_EQ(matrix.dtype(), DType::kDouble);
  const Tensor value = *matrix.As(DType::kFloat);
  EXPECT_EQ(value.shape(), (Shape{2, 3}));
  EXPECT_THAT(value.data<float>(), ElementsAre(1, 2, 3, 4.5, 5, 6));
  EXPECT_THAT(Literal({"a", "b"}).As(DType::kInvalid)->data<std::string>(),
              ElementsAre("a", "b"));
}

TEST_F(LiteralTest, RefusesListsOfDifferentLengths) {
  const Literal ragged = {{1, 2}, {3}};
  EXPECT_THAT(ragged.As(DType::kInvalid).status().message(),
              HasSubstr("differ in length"));
}

TEST_F(LiteralTest, RefusesValuesThatWouldChange) {
  EXPECT_FALSE(Literal(1.5).As(DType::kInt32).ok());
  EXPECT_FALSE(Literal(300).As(DType::kUint8).ok());
  EXPECT_FALSE(Literal(-1).As(DType::kUint32).ok());
  EXPECT_FALSE(Literal(1).As(DType::kBool).ok());
  EXPECT_FALSE(Literal(1).As(DType::kString).ok());
  EXPECT_FALSE(Literal("1").As(DType::kFloat).ok());
  EXPECT_TRUE(Literal(2.0).As(DType::kInt32).ok());
}

TEST_F(LiteralTest, TakesTheTypeOfTheOtherOperand) {
  const Output x = ops::Placeholder(root_, DType::kDouble);
  const Output sum = ops::Add(root_, x, 1);
  EXPECT_EQ(TypeOf(sum), DType::kDouble);
  EXPECT_EQ(Scalar<double>(sum, {{x, Tensor::Scalar(2.5)}}), 3.5);
  const Output reversed = ops::Sub(root_, 1, x);
  EXPECT_EQ(Scalar<double>(reversed, {{x, Tensor::Scalar(2.5)}}), -1.5);
}

TEST_F(LiteralTest, TwoLiteralsMeetAtTheWiderType) {
  EXPECT_EQ(Scalar<float>(ops::Mul(root_, 2, 1.5f)), 3.0f);
}

TEST_F(LiteralTest, IsNamedAfterTheArgumentAsInPython) {
  const Output x = ops::Const(root_, 1.0f);
  ops::Add(root_.Named("sum"), x, 2.0f);
  EXPECT_NE(graph_.FindNode("sum/y"), nullptr);
  EXPECT_NE(graph_.FindNode("sum"), nullptr);
  ops::Pack(root_, {x, 2.0f});
  EXPECT_NE(graph_.FindNode("Pack/values_1"), nullptr);
}

TEST_F(LiteralTest, OneThatDoesNotFitFailsWithTheOpAndTheArgument) {
  const Output x = ops::Placeholder(root_.Named("x"), DType::kInt32);
  const Output sum = ops::Add(root_.Named("sum"), x, 1.5);
  EXPECT_FALSE(sum);
  const absl::Status status = Eval(sum).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("Input 'y' of 'sum/' (op: 'Add')"));
  EXPECT_THAT(status.message(), HasSubstr("int32"));
}

}  // namespace
}  // namespace sluice
