#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using testing::HasSubstr;

Tensor JoinWords(const Shape& shape, std::initializer_list<std::string> words) {
  return Tensor::Of<std::string>(shape, words);
}

TEST(StringJoin, JoinsElementByElementAndRepeatsScalars) {
  OpTest op("StringJoin");
  op.AddInput(JoinWords({2}, {"a", ""})).AddInput(JoinWords({}, {"x"}));
  op.AddInput(JoinWords({2}, {"b", "c"})).Attr("N", 3).Attr("separator", "-");
  SLUICE_ASSERT_OK(op.Run());
  ExpectClose(op.output(0), JoinWords({2}, {"a-x-b", "-x-c"}));
}

TEST(StringJoin, RefusesShapesThatDiffer) {
  OpTest op("StringJoin");
  op.AddInput(JoinWords({2}, {"a", "b"})).AddInput(JoinWords({1}, {"x"}));
  op.Attr("N", 2);
  EXPECT_THAT(op.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("[2] vs. [1]")));
}

TEST(StringJoin, InfersTheShapeOfWhatIsNoScalar) {
  const AttrMap three = {{"N", 3}};
  EXPECT_EQ(InferredShape("StringJoin", {"[]", "[2,?]", "[?,3]"}, three,
                          DType::kString),
            "[2,3]");
  EXPECT_EQ(
      InferredShape("StringJoin", {"[]", "?", "[3]"}, three, DType::kString),
      "?");
  EXPECT_EQ(
      InferredShape("StringJoin", {"[]", "[]", "[]"}, three, DType::kString),
      "[]");
}

Tensor ReducedJoin(std::vector<int32_t> dims, bool keep_dims) {
  OpTest op("ReduceJoin");
  op.AddInput(JoinWords({2, 2}, {"a", "b", "c", "d"}));
  op.AddInput(Tensor::Of<int32_t>({static_cast<int64_t>(dims.size())}, dims));
  op.Attr("keep_dims", keep_dims).Attr("separator", ".");
  const absl::Status status = op.Run();
  EXPECT_TRUE(status.ok()) << status;
  return status.ok() ? op.output(0) : Tensor();
}

TEST(ReduceJoin, JoinsAlongDimensionsInTheOrderTheyAreNamed) {
  ExpectClose(ReducedJoin({0}, false), JoinWords({2}, {"a.c", "b.d"}));
  ExpectClose(ReducedJoin({-1}, false), JoinWords({2}, {"a.b", "c.d"}));
  ExpectClose(ReducedJoin({1}, true), JoinWords({2, 1}, {"a.b", "c.d"}));
  ExpectClose(ReducedJoin({0, 1}, false), JoinWords({}, {"a.c.b.d"}));
  ExpectClose(ReducedJoin({1, 0}, false), JoinWords({}, {"a.b.c.d"}));
  ExpectClose(ReducedJoin({}, false), JoinWords({2, 2}, {"a", "b", "c", "d"}));
}

TEST(ReduceJoin, RefusesDimensionsThatAreNotThere) {
  OpTest op("ReduceJoin");
  op.AddInput(JoinWords({1}, {"a"})).AddInput<int32_t>({1}, {1});
  EXPECT_THAT(op.Run(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Invalid reduction dimension 1 for input with 1 "
                       "dimension(s)"));
  OpTest twice("ReduceJoin");
  twice.AddInput(JoinWords({1}, {"a"})).AddInput<int32_t>({2}, {0, -1});
  EXPECT_THAT(twice.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                    "Duplicate reduction dimension 0"));
}

}  // namespace
}  // namespace sluice
