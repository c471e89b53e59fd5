#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "row,column=value" for each part, then the shape.
std::vector<std::string> SplitTexts(std::string_view op, const std::string& at,
                                    std::initializer_list<std::string> texts,
                                    const AttrMap& attrs = {}) {
  OpTest test(op);
  test.AddInput(Tensor::Vector<std::string>(texts));
  test.AddInput(Tensor::Scalar<std::string>(at));
  for (const auto& [name, value] : attrs) test.Attr(name, value);
  const absl::Status status = test.Run();
  EXPECT_TRUE(status.ok()) << status;
  if (!status.ok()) return {};
  std::vector<std::string> parts;
  const auto indices = test.output(0).data<int64_t>();
  for (int64_t i = 0; i < test.output(1).size(); ++i) {
    parts.push_back(StrCat(indices[2 * i], ",", indices[2 * i + 1], "=",
                           test.output(1).data<std::string>()[i]));
  }
  const auto shape = test.output(2).data<int64_t>();
  parts.push_back(StrCat(shape[0], "x", shape[1]));
  return parts;
}

TEST(StringSplit, SplitsAtAnyOfItsDelimiters) {
  EXPECT_THAT(SplitTexts("StringSplit", ",;", {"a,b;;c", "", "d"}),
              ElementsAre("0,0=a", "0,1=b", "0,2=c", "2,0=d", "3x3"));
  EXPECT_THAT(
      SplitTexts("StringSplit", ",", {"a,,c", ""}, {{"skip_empty", false}}),
      ElementsAre("0,0=a", "0,1=", "0,2=c", "2x3"));
  EXPECT_THAT(SplitTexts("StringSplit", "", {"ab"}),
              ElementsAre("0,0=a", "0,1=b", "1x2"));
}

TEST(StringSplitV2, SplitsAsPythonDoes) {
  EXPECT_THAT(SplitTexts("StringSplitV2", "<>", {"1<>2<><>3", ""}),
              ElementsAre("0,0=1", "0,1=2", "0,2=", "0,3=3", "1,0=", "2x4"));
  EXPECT_THAT(SplitTexts("StringSplitV2", "", {" a  b c ", " "}),
              ElementsAre("0,0=a", "0,1=b", "0,2=c", "2x3"));
  EXPECT_THAT(SplitTexts("StringSplitV2", ",", {"a,b,c"}, {{"maxsplit", 1}}),
              ElementsAre("0,0=a", "0,1=b,c", "1x2"));
  EXPECT_THAT(SplitTexts("StringSplitV2", "", {"a b  c "}, {{"maxsplit", 1}}),
              ElementsAre("0,0=a", "0,1=b  c ", "1x2"));
}

TEST(StringSplit, RefusesWhatIsNoVector) {
  OpTest op("StringSplit");
  op.AddInput(Tensor::Scalar<std::string>("a"));
  op.AddInput(Tensor::Scalar<std::string>(","));
  EXPECT_THAT(op.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("input must be a vector")));
}

TEST(StringSplit, InfersASparseMatrix) {
  EXPECT_EQ(InferredShape("StringSplit", {"[?]", "[]"}, {}, DType::kString),
            "[?,2]");
}

}  // namespace
}  // namespace sluice
