#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> AsStrings(const Tensor& numbers,
                                   const AttrMap& attrs = {}) {
  OpTest op("AsString");
  op.AddInput(numbers);
  for (const auto& [name, value] : attrs) op.Attr(name, value);
  const absl::Status status = op.Run();
  EXPECT_TRUE(status.ok()) << status;
  if (!status.ok()) return {};
  const auto out = op.output(0).data<std::string>();
  return {out.begin(), out.end()};
}

// Expected texts are TensorFlow's.
TEST(AsString, WritesNumbersAsPrintfDoes) {
  EXPECT_THAT(AsStrings(Tensor::Vector<int32_t>({1, -20, 300})),
              ElementsAre("1", "-20", "300"));
  EXPECT_THAT(AsStrings(Tensor::Vector<int64_t>({INT64_MIN})),
              ElementsAre("-9223372036854775808"));
  EXPECT_THAT(AsStrings(Tensor::Vector<float>({1.5f, -2.25f, 1e20f, 1e-9f})),
              ElementsAre("1.500000", "-2.250000",
                          "100000002004087734272.000000", "0.000000"));
  EXPECT_THAT(AsStrings(Tensor::Vector<float>({NAN, INFINITY})),
              ElementsAre("nan", "inf"));
  EXPECT_THAT(AsStrings(Tensor::Vector<bool>({true, false})),
              ElementsAre("true", "false"));
  EXPECT_THAT(AsStrings(Tensor::Vector<std::complex<float>>({{1, 2}})),
              ElementsAre("(1.000000,2.000000)"));
}

TEST(AsString, FollowsItsAttributes) {
  EXPECT_THAT(
      AsStrings(Tensor::Vector<float>({1.5f, -2.25f}), {{"precision", 2}}),
      ElementsAre("1.50", "-2.25"));
  EXPECT_THAT(AsStrings(Tensor::Vector<float>({1.5f}), {{"scientific", true}}),
              ElementsAre("1.500000e+00"));
  EXPECT_THAT(AsStrings(Tensor::Vector<double>({1.5}), {{"shortest", true}}),
              ElementsAre("1.5"));
  EXPECT_THAT(
      AsStrings(Tensor::Vector<int32_t>({3}), {{"width", 5}, {"fill", "0"}}),
      ElementsAre("00003"));
  EXPECT_EQ(
      AsStrings(Tensor::Vector<double>({1e300}), {{"width", 400}})[0].size(),
      400u);
}

TEST(AsString, RefusesAttributesThatDoNotFit) {
  OpTest both("AsString");
  both.AddInput<float>({1}, {1});
  both.Attr("scientific", true).Attr("shortest", true);
  EXPECT_THAT(both.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("both scientific and shortest")));
  OpTest fill("AsString");
  fill.AddInput<float>({1}, {1}).Attr("fill", "x");
  EXPECT_THAT(fill.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                   "Fill argument not supported: \"x\""));
  OpTest wide("AsString");
  wide.AddInput<float>({1}, {1}).Attr("width", 1 << 30);
  EXPECT_THAT(wide.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("at most")));
}

Tensor AsNumbers(std::initializer_list<std::string> texts, DType type) {
  OpTest op("StringToNumber");
  op.AddInput(Tensor::Vector<std::string>(texts)).Attr("out_type", type);
  const absl::Status status = op.Run();
  EXPECT_TRUE(status.ok()) << status;
  return status.ok() ? op.output(0) : Tensor();
}

TEST(StringToNumber, ReadsEveryTypeOfNumber) {
  ExpectClose(AsNumbers({"1e3", "-inf", " 7 "}, DType::kFloat),
              Tensor::Vector<float>({1000, -INFINITY, 7}));
  ExpectClose(AsNumbers({"0.1"}, DType::kDouble), Tensor::Vector<double>({0.1}),
              0);
  ExpectClose(AsNumbers({"12", "-5"}, DType::kInt64),
              Tensor::Vector<int64_t>({12, -5}));
}

TEST(StringToNumber, NamesTheTextThatIsNoNumber) {
  for (const DType type : {DType::kFloat, DType::kInt32}) {
    OpTest op("StringToNumber");
    op.AddInput(Tensor::Scalar<std::string>("x1")).Attr("out_type", type);
    EXPECT_THAT(op.Run(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         "StringToNumberOp could not correctly convert "
                         "string: x1"));
  }
}

TEST(StringToNumber, KeepsAShapeThatIsOnlyPartlyKnown) {
  EXPECT_EQ(InferredShape("StringToNumber", {"[2,?]"}, {}, DType::kString),
            "[2,?]");
}

}  // namespace
}  // namespace sluice
