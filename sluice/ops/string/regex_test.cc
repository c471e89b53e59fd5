#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using testing::HasSubstr;

TEST(RegexFullMatch, WantsTheWholeString) {
  const Tensor paths =
      Tensor::Vector<std::string>({"s3://b/c", "/tmp/s3://x", "", "s3:/"});
  const Tensor expected = Tensor::Vector<bool>({true, false, false, false});
  OpTest fixed("StaticRegexFullMatch");
  fixed.AddInput(paths).Attr("pattern", "^s3://.*");
  SLUICE_ASSERT_OK(fixed.Run());
  ExpectClose(fixed.output(0), expected);
  OpTest given("RegexFullMatch");
  given.AddInput(paths).AddInput(Tensor::Scalar<std::string>("s3://.*"));
  SLUICE_ASSERT_OK(given.Run());
  ExpectClose(given.output(0), expected);
}

TEST(RegexFullMatch, RefusesWhatIsNoPattern) {
  OpTest op("StaticRegexFullMatch");
  op.AddInput(Tensor::Scalar<std::string>("x")).Attr("pattern", "(");
  EXPECT_THAT(op.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("Invalid pattern: (")));
}

}  // namespace
}  // namespace sluice
