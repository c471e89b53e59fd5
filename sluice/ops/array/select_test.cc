// SelectV2; Select is among the recorded ops.
#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

absl::StatusOr<Tensor> SelectV2(const Tensor& condition, const Tensor& then,
                                const Tensor& otherwise) {
  OpTest op("SelectV2");
  op.AddInput(condition);
  op.AddInput(then);
  op.AddInput(otherwise);
  SLUICE_RETURN_IF_ERROR(op.Run());
  return op.output(0);
}

TEST(SelectV2, BroadcastsAllThreeInputs) {
  const Tensor condition = Tensor::Of<bool>({2}, {true, false});
  ExpectClose(*SelectV2(condition, Tensor::Of<float>({3, 1}, {1, 2, 3}),
                        Tensor::Scalar(9.0f)),
              Tensor::Of<float>({3, 2}, {1, 9, 2, 9, 3, 9}));
  ExpectClose(*SelectV2(Tensor::Of<bool>({2, 1}, {false, true}),
                        Tensor::Of<int32_t>({3}, {1, 2, 3}),
                        Tensor::Of<int32_t>({2, 3}, {4, 5, 6, 7, 8, 9})),
              Tensor::Of<int32_t>({2, 3}, {4, 5, 6, 1, 2, 3}));
  ExpectClose(*SelectV2(Tensor::Scalar(true), Tensor::Scalar(1.0),
                        Tensor::Of<double>({2}, {2, 3})),
              Tensor::Of<double>({2}, {1, 1}));
}

TEST(SelectV2, TakesEveryTypeAndNoElements) {
  const Tensor condition = Tensor::Of<bool>({3}, {true, false, false});
  EXPECT_TRUE(
      TensorsEqual(*SelectV2(condition, Tensor::Scalar<std::string>("a"),
                             Tensor::Of<std::string>({3}, {"x", "y", "z"})),
                   Tensor::Of<std::string>({3}, {"a", "y", "z"})));
  EXPECT_TRUE(TensorsEqual(*SelectV2(condition, condition, condition),
                           Tensor::Of<bool>({3}, {true, false, false})));
  EXPECT_EQ(SelectV2(Tensor(DType::kBool, {0, 1}), Tensor::Scalar(1.0f),
                     Tensor::Of<float>({2}, {1, 2}))
                ->shape(),
            Shape({0, 2}));
}

TEST(SelectV2, KeepsShapesThatAreOnlyPartlyKnown) {
  EXPECT_EQ(InferredShape("SelectV2", {"[2,1]", "[3]", "[]"}, {}, DType::kBool),
            "[2,3]");
  EXPECT_EQ(InferredShape("SelectV2", {"[?,1]", "[?]", "[]"}, {}, DType::kBool),
            "[?,?]");
  EXPECT_EQ(InferredShape("SelectV2", {"?", "[?]", "[]"}, {}, DType::kBool),
            "?");
}

TEST(SelectV2, RejectsShapesThatDoNotFit) {
  EXPECT_THAT(
      SelectV2(Tensor::Of<bool>({2}, {true, false}),
               Tensor::Of<float>({3}, {1, 2, 3}), Tensor::Scalar(5.0f))
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               testing::HasSubstr("condition [2], then [3], and else [] must "
                                  "be broadcastable")));
}

}  // namespace
}  // namespace sluice
