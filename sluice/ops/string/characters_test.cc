#include "sluice/kernel/testing/op_test.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Five strings and what TensorFlow makes of them.
Tensor SampleStrings() {
  return Tensor::Vector<std::string>(
      {"hello", "", "A,b,,c", "\xc3\xa9\xe4\xb8\xad", "3.5e2"});
}

std::vector<std::string> ChangedStrings(std::string_view op, const Tensor& in,
                                        const AttrMap& attrs = {}) {
  OpTest test(op);
  test.AddInput(in);
  for (const auto& [name, value] : attrs) test.Attr(name, value);
  const absl::Status status = test.Run();
  EXPECT_TRUE(status.ok()) << status;
  if (!status.ok()) return {};
  const auto out = test.output(0).data<std::string>();
  return {out.begin(), out.end()};
}

TEST(StringLength, CountsBytesOrCharacters) {
  OpTest bytes("StringLength");
  bytes.AddInput(SampleStrings());
  SLUICE_ASSERT_OK(bytes.Run());
  ExpectClose(bytes.output(0), Tensor::Vector<int32_t>({5, 0, 6, 5, 5}));
  OpTest characters("StringLength");
  characters.AddInput(SampleStrings()).Attr("unit", "UTF8_CHAR");
  SLUICE_ASSERT_OK(characters.Run());
  ExpectClose(characters.output(0), Tensor::Vector<int32_t>({5, 0, 6, 2, 5}));
}

absl::StatusOr<std::string> CutOut(const std::string& text, int32_t position,
                                   int32_t length, const char* unit) {
  OpTest op("Substr");
  op.AddInput(Tensor::Scalar<std::string>(text));
  op.AddInput(Tensor::Scalar<int32_t>(position));
  op.AddInput(Tensor::Scalar<int32_t>(length)).Attr("unit", unit);
  SLUICE_RETURN_IF_ERROR(op.Run());
  return op.output(0).scalar<std::string>();
}

TEST(Substr, CutsBytesOrCharacters) {
  EXPECT_EQ(*CutOut("hello", 1, 3, "BYTE"), "ell");
  EXPECT_EQ(*CutOut("hello", -3, 99, "BYTE"), "llo");
  EXPECT_EQ(*CutOut("hello", 5, 1, "BYTE"), "");
  EXPECT_EQ(*CutOut("a\xc3\xa9z", 1, 1, "UTF8_CHAR"), "\xc3\xa9");
  EXPECT_EQ(*CutOut("a\xc3\xa9z", -1, 1, "UTF8_CHAR"), "z");
}

TEST(Substr, RefusesPlacesOutsideTheString) {
  EXPECT_THAT(CutOut("abc", 4, 1, "BYTE").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("pos 4 out of range for string b'abc'")));
  EXPECT_FALSE(CutOut("abc", -4, 1, "UTF8_CHAR").ok());
  EXPECT_FALSE(CutOut("abc", 0, -1, "BYTE").ok());
}

TEST(Substr, TakesOnePlacePerString) {
  OpTest op("Substr");
  op.AddInput(Tensor::Vector<std::string>({"abc", "def"}));
  op.AddInput<int64_t>({2}, {0, 1}).AddInput<int64_t>({2}, {1, 2});
  SLUICE_ASSERT_OK(op.Run());
  ExpectClose(op.output(0), Tensor::Vector<std::string>({"a", "ef"}));
}

TEST(StringCase, ChangesAsciiLetters) {
  EXPECT_THAT(
      ChangedStrings("StringLower", SampleStrings()),
      ElementsAre("hello", "", "a,b,,c", "\xc3\xa9\xe4\xb8\xad", "3.5e2"));
  EXPECT_THAT(
      ChangedStrings("StringUpper", SampleStrings()),
      ElementsAre("HELLO", "", "A,B,,C", "\xc3\xa9\xe4\xb8\xad", "3.5E2"));
}

TEST(StringStrip, TakesWhiteSpaceFromBothEnds) {
  EXPECT_THAT(ChangedStrings("StringStrip",
                             Tensor::Vector<std::string>({" a b ", "\tx\n"})),
              ElementsAre("a b", "x"));
}

TEST(Base64, EncodesAndDecodes) {
  EXPECT_THAT(ChangedStrings("EncodeBase64", SampleStrings()),
              ElementsAre("aGVsbG8", "", "QSxiLCxj", "w6nkuK0", "My41ZTI"));
  EXPECT_THAT(ChangedStrings("EncodeBase64", SampleStrings(), {{"pad", true}}),
              ElementsAre("aGVsbG8=", "", "QSxiLCxj", "w6nkuK0=", "My41ZTI="));
  EXPECT_THAT(ChangedStrings("DecodeBase64", Tensor::Vector<std::string>(
                                                 {"aGVsbG8", "My41ZTI="})),
              ElementsAre("hello", "3.5e2"));
  OpTest bad("DecodeBase64");
  bad.AddInput(Tensor::Scalar<std::string>("a!"));
  EXPECT_THAT(bad.Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("Invalid character")));
}

TEST(StringToHashBucket, HashesAsTensorFlowDoes) {
  OpTest op("StringToHashBucket");
  op.AddInput(SampleStrings()).Attr("num_buckets", 1000);
  SLUICE_ASSERT_OK(op.Run());
  ExpectClose(op.output(0), Tensor::Vector<int64_t>({938, 899, 54, 259, 109}));
}

}  // namespace
}  // namespace sluice
