#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using testing::HasSubstr;

std::string Formatted(const std::string& text, std::vector<Tensor> tensors,
                      int summarize = 3) {
  OpTest op("StringFormat");
  std::vector<DType> types;
  for (Tensor& tensor : tensors) {
    types.push_back(tensor.dtype());
    op.AddInput(std::move(tensor));
  }
  op.Attr("T", types).Attr("template", text).Attr("placeholder", "{}");
  op.Attr("summarize", summarize);
  const absl::Status status = op.Run();
  if (!status.ok()) return std::string(status.message());
  return op.output(0).scalar<std::string>();
}

Tensor CountingTensor(const Shape& shape) {
  Tensor tensor(DType::kInt32, shape);
  for (int32_t i = 0; i < tensor.size(); ++i) {
    tensor.mutable_data<int32_t>()[i] = i;
  }
  return tensor;
}

TEST(StringFormat, SetsTensorsIntoTheText) {
  EXPECT_EQ(Formatted("{} and {}", {Tensor::Vector<std::string>({"hello", ""}),
                                    Tensor::Vector<float>({1.5f, 2})}),
            "[\"hello\" \"\"] and [1.5 2]");
  EXPECT_EQ(Formatted("x={}!", {Tensor::Scalar<float>(0.1f)}), "x=0.1!");
  EXPECT_EQ(Formatted("{}", {Tensor::Scalar<float>(1.0f / 3)}), "0.333333343");
  EXPECT_EQ(Formatted("{}", {Tensor::Scalar<double>(1.0 / 3)}),
            "0.33333333333333331");
  EXPECT_EQ(Formatted("no tensors", {}), "no tensors");
}

TEST(StringFormat, LeavesTheMiddleOfLongDimensionsOut) {
  EXPECT_EQ(Formatted("{}", {CountingTensor({9})}), "[0 1 2 ... 6 7 8]");
  EXPECT_EQ(Formatted("{}", {CountingTensor({6})}), "[0 1 2 3 4 5]");
  EXPECT_EQ(Formatted("{}", {CountingTensor({9})}, -1), "[0 1 2 3 4 5 6 7 8]");
  EXPECT_EQ(Formatted("{}", {CountingTensor({2, 2})}), "[[0 1]\n [2 3]]");
  EXPECT_EQ(Formatted("{}", {CountingTensor({3, 1})}, 1), "[[0]\n ...\n [2]]");
  EXPECT_EQ(Formatted("{}", {CountingTensor({2, 2, 1})}),
            "[[[0]\n  [1]]\n\n [[2]\n  [3]]]");
  EXPECT_EQ(Formatted("{}", {CountingTensor({0})}), "[]");
}

TEST(StringFormat, RefusesATextWithOtherPlaceholders) {
  EXPECT_THAT(Formatted("{} {}", {Tensor::Scalar<float>(1)}),
              HasSubstr("num placeholders in template and num inputs must "
                        "match: 2 vs. 1"));
}

}  // namespace
}  // namespace sluice
